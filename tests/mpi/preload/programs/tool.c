/* A tool: counts the calls that a program makes. */
#include <mpi.h>
#include <stdio.h>

static int reductions, broadcasts, freed, begun;

int MPI_Init(int *argc, char ***argv) {
    begun++;
    return PMPI_Init(argc, argv);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    reductions++;
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    broadcasts++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Comm_free(MPI_Comm *comm) {
    freed++;
    return PMPI_Comm_free(comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank) printf("tool: %d begun, %d reductions, %d broadcasts, %d freed\n", begun, reductions, broadcasts, freed), fflush(stdout);
    return PMPI_Finalize();
}
