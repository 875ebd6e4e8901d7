/* The job of the study: rounds of one pattern of messages, timed from a barrier to a barrier.
 *
 *     exchange alltoall BYTES ROUNDS  each rank sends BYTES to each other rank
 *     exchange stencil BYTES ROUNDS   each rank sends BYTES to each of its neighbours in a periodic grid, numbered by
 *                                     rows, that is as square as possible
 *
 * Rank 0 prints the seconds of all rounds, the number of ranks, the number of hosts, and the share of the bytes whose
 * two ranks have the same host.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int size, rank;

static void *allocate(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

/* Ranks of the neighbours of this rank; returns their number. */
static int neighbours(int *found)
{
    int rows = 1, count = 0;
    for (int one = 1; one * one <= size; one++)
        if (size % one == 0)
            rows = one;
    int columns = size / rows, row = rank / columns, column = rank % columns;
    int around[4] = {row * columns + (column + 1) % columns, row * columns + (column + columns - 1) % columns,
                     (row + 1) % rows * columns + column, (row + rows - 1) % rows * columns + column};
    for (int way = 0; way < 4; way++)
        if (around[way] != rank)
            found[count++] = around[way];
    return count;
}

/* Share of the bytes that stay inside hosts; also counts the hosts. */
static double inside(const int *peers, int count, int *hosts)
{
    char name[256] = "", *names = allocate((size_t)size * sizeof name);
    gethostname(name, sizeof name - 1);
    MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, MPI_COMM_WORLD);
    double mine[2] = {0, count}, sum[2];
    for (int at = 0; at < count; at++)
        mine[0] += strcmp(name, names + (size_t)peers[at] * sizeof name) == 0;
    *hosts = 0;
    for (int at = 0; at < size; at++) {
        int before = 0;
        while (strcmp(names + (size_t)before * sizeof name, names + (size_t)at * sizeof name))
            before++;
        *hosts += before == at;
    }
    MPI_Allreduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(names);
    return sum[1] > 0 ? sum[0] / sum[1] : 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int all = strcmp(argv[1], "alltoall") == 0, bytes = atoi(argv[2]), rounds = atoi(argv[3]), count = 0, hosts;
    int *peers = allocate((size + 4) * sizeof(int));
    if (!all)
        count = neighbours(peers);
    for (int step = 1; all && step < size; step++)
        peers[count++] = (rank + step) % size;
    double share = inside(peers, count, &hosts);
    char *out = allocate((size_t)bytes * (all ? size : 4)), *in = allocate((size_t)bytes * (all ? size : 4));
    MPI_Request requests[8];
    double begin = 0;
    for (int round = -1; round < rounds; round++) { /* the first makes the connections */
        if (round == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
        }
        if (all) {
            MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
            continue;
        }
        /* The k-th message between two ranks that are neighbours twice matches the k-th receive. */
        for (int at = 0; at < count; at++)
            MPI_Irecv(in + (size_t)at * bytes, bytes, MPI_CHAR, peers[at], 0, MPI_COMM_WORLD, &requests[at]);
        for (int at = 0; at < count; at++)
            MPI_Isend(out + (size_t)at * bytes, bytes, MPI_CHAR, peers[at], 0, MPI_COMM_WORLD, &requests[count + at]);
        MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("seconds %.6f\nranks %d\nhosts %d\ninside %.6f\n", MPI_Wtime() - begin, size, hosts, share);
    MPI_Finalize();
    return 0;
}
