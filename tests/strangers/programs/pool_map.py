"""schwimmbad's MPI pool: maps with and without callbacks, on the world and on another communicator."""

from mpi4py import MPI
from schwimmbad import MPIPool


def square(number):
    """A task."""
    return number * number


for name, comm in (("default", None), ("copy", MPI.COMM_WORLD.Dup())):
    with MPIPool(comm=comm) as pool:
        if not pool.is_master():
            pool.wait()
        else:
            heard = []
            print(name, pool.size, list(pool.map(square, range(30), callback=heard.append)), sorted(heard)[-3:])
print("rank", MPI.COMM_WORLD.rank, MPI.COMM_WORLD.allreduce(1))
