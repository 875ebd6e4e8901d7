"""A minimum by NuMPI's parallel L-BFGS and reductions: the program knows nothing of topompi."""

import numpy as np
from mpi4py import MPI
from NuMPI.Optimization import l_bfgs
from NuMPI.Tools import Reduction

comm = MPI.COMM_WORLD
pnp = Reduction(comm)
whole = 24
mine = slice(whole * comm.rank // comm.size, whole * (comm.rank + 1) // comm.size)
wanted = np.sin(np.arange(whole))[mine]


def value_and_gradient(x):
    away = x.ravel() - wanted
    return float(pnp.sum(away**2 + away**4)), (2 * away + 4 * away**3).reshape(x.shape)


result = l_bfgs(value_and_gradient, np.zeros((mine.stop - mine.start, 1)), jac=True, comm=comm, gtol=1e-9)
assert result.success
parts = comm.gather(result.x.ravel())
if comm.rank == 0:
    print(result.success, np.array_repr(np.concatenate(parts).round(7)))
