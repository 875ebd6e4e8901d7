/* Brings a Python: starts it after MPI, or only ends it, as LAMMPS does, or has one of another version. */
#include <mpi.h>
#include <stdio.h>

#ifdef OTHER_VERSION
int Py_IsInitialized(void) { return 0; }
const char *Py_GetVersion(void) { return "3.5.2 (default)"; }
#else
int Py_IsInitialized(void);
void Py_Initialize(void);
int Py_FinalizeEx(void);
int PyRun_SimpleString(const char *);
#endif

int main(int argc, char **argv) {
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef STARTS
    Py_Initialize();
    if (PyRun_SimpleString("import decimal; total = sum(range(100))")) return 9;
#endif
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
#ifndef OTHER_VERSION
    if (Py_IsInitialized()) Py_FinalizeEx();
#endif
    if (!rank) printf("rank 0: %d\n", sum);
    return 0;
}
