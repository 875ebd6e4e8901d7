"""schwimmbad's MPI pool: a map with a callback, on the world, or on a copy of it: ``pool_map.py [copy]``."""

import sys

from mpi4py import MPI
from schwimmbad import MPIPool


def square(number):
    """A task."""
    return number * number


comm = MPI.COMM_WORLD.Dup() if "copy" in sys.argv else None
with MPIPool(comm=comm) as pool:  # where workers stay until their process ends
    heard = []
    print(pool.size, pool.rank, list(pool.map(square, range(30), callback=heard.append)), sorted(heard)[-3:])
