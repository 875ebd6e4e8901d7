"""A program finds itself and its data after it has gone to another folder."""

import os
import sys

from mpi4py import MPI

os.chdir("..")
main = sys.modules["__main__"]
print(MPI.COMM_WORLD.rank, __file__, sys.path[0], sys.argv[0], os.path.exists(__file__))
print(hasattr(main, "__cached__"), main.__spec__, type(__loader__).__name__)
