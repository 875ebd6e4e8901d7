/* Times calls: `monitored pingpong` messages of 8 bytes between ranks 0 and 1, `monitored alltoall` blocks of 64 KiB.
   Rank 0 prints the median seconds of a round, of 15 rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, BLOCK = 65536 };

static int ascending(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

int main(int argc, char **argv) {
    int rank, size, calls;
    double seconds[ROUNDS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int pings = argc > 1 && !strcmp(argv[1], "pingpong");
    char *out = calloc(size, BLOCK), *in = calloc(size, BLOCK);
    calls = pings ? 20000 : 30;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int call = 0; call < calls; call++) {
            if (!pings)
                MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
            else if (rank == 0) {
                MPI_Send(out, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
                MPI_Recv(in, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (rank == 1) {
                MPI_Recv(in, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(out, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
        }
        seconds[round] = (MPI_Wtime() - begin) / calls;
    }
    qsort(seconds, ROUNDS, sizeof(double), ascending);
    if (rank == 0)
        printf("%.9f\n", seconds[ROUNDS / 2]);
    MPI_Finalize();
    return 0;
}
