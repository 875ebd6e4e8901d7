/* Times calls: `monitored pingpong TURNS` messages of 8 bytes between ranks 0 and 1, `monitored alltoall TURNS` blocks of
   64 KiB. For each byte that a rank reads from the pipe TURNS, it takes part in one round, whose first calls do not
   count; rank 0 prints the seconds of a call. Between rounds all ranks sleep, so that jobs can take turns. */
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 65536 };

static char *out, *in;

static void pingpong(int rank) {
    for (int turn = 0; turn < 2 && rank < 2; turn++)
        if (turn == rank)
            MPI_Send(out, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(in, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double seconds(int pings, int rank, int calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int call = 0; call < calls; call++)
        if (pings)
            pingpong(rank);
        else
            MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / calls;
}

int main(int argc, char **argv) {
    int rank, size;
    char turn;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int turns = argc == 3 ? open(argv[2], O_RDONLY) : -1;
    if (turns < 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int pings = !strcmp(argv[1], "pingpong"), calls = pings ? 10000 : 100;
    out = calloc(size, BLOCK), in = calloc(size, BLOCK);
    while (read(turns, &turn, 1) == 1) {
        seconds(pings, rank, calls / 10);
        double found = seconds(pings, rank, calls);
        if (rank == 0) {
            printf("%.12f\n", found);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
