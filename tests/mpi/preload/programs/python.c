/* Brings a Python, or something like one: a libpython that it ends after MPI, as LAMMPS does, or one of another version. */
#include <mpi.h>
#include <stdio.h>

#ifdef OTHER_VERSION
int Py_IsInitialized(void) { return 0; }
const char *Py_GetVersion(void) { return "3.5.2 (default)"; }
#else
int Py_IsInitialized(void);
int Py_FinalizeEx(void);
#endif

int main(int argc, char **argv) {
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
#ifndef OTHER_VERSION
    if (Py_IsInitialized()) Py_FinalizeEx();
#endif
    if (!rank) printf("rank 0: %d\n", sum);
    return 0;
}
