"""A rank frees its communicators without waiting for ranks that free them in another order, or never."""

import numpy as np
from mpi4py import MPI

from topompi.mpi.dispatch.state import attached

world = MPI.COMM_WORLD  # topompi's
odd = bool(world.rank % 2)
for _ in range(20):
    first, second, third = made = [world.Split() for _ in range(3)]
    for comm in made:
        comm.Bcast(np.zeros(4))
        state = attached(comm)
        assert comm.size == 1 or (state is not None and state.groups.connected)
    early, late = (first, second) if odd else (second, first)
    early.Free()
    world.Barrier()
    late.Free()
    if not odd:
        third.Free()
print("freed", flush=True)
