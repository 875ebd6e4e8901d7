"""mpipool's executor and pool: tasks with results, and one that raises."""

from mpi4py import MPI
from mpipool import MPIExecutor, MPIPool


def square(number):
    """A task."""
    return number * number


def divide(number):
    """A task that raises for zero."""
    return 12 // number


with MPIExecutor() as executor:
    if executor.is_main():
        print("executor", list(executor.map(square, range(20))))
        failed = executor.submit(divide, 0).exception()
        print("executor", type(failed).__name__, executor.submit(divide, 4).result())
MPI.COMM_WORLD.Barrier()
with MPIPool() as pool:
    if pool.is_main():
        print("pool", list(pool.map(square, range(20))))
print("rank", MPI.COMM_WORLD.rank, MPI.COMM_WORLD.allreduce(1))
