"""A demo of dolfinx, unmodified, on a newer mpi4py than it was compiled for: ``dolfinx_demo.py DEMO``.

Debian's dolfinx refuses an ``MPI.Op`` of fewer than mpi4py 3.1's 56 bytes, though it uses none: it is told of as many.
"""

import ctypes
import runpy
import sys

from mpi4py import MPI

BASIC_SIZE = 32  # where a type object holds it, in CPython 3.11 on 64 bits

ctypes.c_ssize_t.from_address(id(MPI.Op) + BASIC_SIZE).value = 56
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
