"""petsc4py on communicators from mpi4py: the world, a half of it, a grid and what a handle says of itself."""

import sys

import numpy as np
import petsc4py

petsc4py.init(sys.argv)
from mpi4py import MPI  # noqa: E402
from petsc4py import PETSc  # noqa: E402

world = MPI.COMM_WORLD
half = world.Split(world.rank % 2, world.rank)
grid = world.Create_cart([world.size], [True])


def solution(comm):
    """The norm of -u'' = 1 on 40 points, solved by conjugate gradients on these ranks."""
    matrix = PETSc.Mat().createAIJ([40, 40], nnz=3, comm=comm)
    for row in range(*matrix.getOwnershipRange()):
        for column in range(max(row - 1, 0), min(row + 2, 40)):
            matrix[row, column] = 2.0 if column == row else -1.0
    matrix.assemble()
    found, wanted = matrix.createVecs()
    wanted.set(1.0)
    solver = PETSc.KSP().create(comm)
    solver.setOperators(matrix)
    solver.setType("cg")
    solver.setTolerances(rtol=1e-10)
    solver.solve(wanted, found)
    return found.norm(), solver.getConvergedReason() > 0


for name, comm in (("world", world), ("half", half), ("grid", grid), ("self", MPI.COMM_SELF), ("copy", world.Dup())):
    vector = PETSc.Vec().createMPI(12, comm=comm)
    vector.set(1.0)
    again = vector.getComm().tompi4py()
    norm, converged = solution(comm)
    told = [vector.sum(), vector.comm.size == comm.size, MPI.Comm.Compare(again, comm) in (MPI.IDENT, MPI.CONGRUENT)]
    if world.rank == 0:
        print(name, *told, f"{norm:.6f}", converged)

total = np.zeros(4)
half.Allreduce(np.full(4, world.rank, float), total)
if world.rank == 0:
    print("half's ranks", total)
