"""slepc4py on communicators from mpi4py: the smallest eigenvalues of a chain, on the world and on a half of it."""

import sys

import slepc4py

slepc4py.init(sys.argv)
from mpi4py import MPI  # noqa: E402
from petsc4py import PETSc  # noqa: E402
from slepc4py import SLEPc  # noqa: E402

world = MPI.COMM_WORLD
for name, comm in (("world", world), ("half", world.Split(world.rank % 2, world.rank)), ("copy", world.Dup())):
    matrix = PETSc.Mat().createAIJ([30, 30], nnz=3, comm=comm)
    for row in range(*matrix.getOwnershipRange()):
        for column in range(max(row - 1, 0), min(row + 2, 30)):
            matrix[row, column] = 2.0 if column == row else -1.0
    matrix.assemble()
    solver = SLEPc.EPS().create(comm=comm)
    solver.setOperators(matrix)
    solver.setProblemType(SLEPc.EPS.ProblemType.HEP)
    solver.setWhichEigenpairs(SLEPc.EPS.Which.SMALLEST_REAL)
    solver.setDimensions(3)
    solver.setTolerances(1e-10, 1000)
    solver.solve()
    values = comm.bcast([round(solver.getEigenvalue(index).real, 6) for index in range(3)])
    if world.rank == 0:
        print(name, *values)
