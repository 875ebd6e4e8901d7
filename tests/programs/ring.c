/* Each rank sends 3 messages of 40 bytes to the next, and all take part in an alltoall of 800 bytes a pair. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, size, out[10] = {0}, back[10];
    static char sent[8 * 800], received[8 * 800];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3; i++)
        MPI_Sendrecv(out, 10, MPI_INT, (rank + 1) % size, 0, back, 10, MPI_INT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Alltoall(sent, 800, MPI_CHAR, received, 800, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
