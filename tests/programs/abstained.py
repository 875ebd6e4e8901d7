"""Communicators are freed without unreceived messages, although every rank refused calls on them."""

import numpy as np
import pytest
from mpi4py import MPI

from topompi.mpi.dispatch.state import attached
from topompi.mpi.execution.groups import ROLL_CALL
from topompi.mpi.execution.rollcall import settle

world = MPI.COMM_WORLD  # topompi's
plain = MPI.Intracomm(world).Dup()
left = np.zeros(2, dtype=np.int64)  # ranks with an unreceived message, before and after the end of the roll calls
for _ in range(3):
    comm = world.Split()
    for _ in range(3):
        with pytest.raises(MPI.Exception) as refused:
            comm.Bcast(np.zeros(4), comm.size)
        assert refused.value.Get_error_class() == MPI.ERR_ROOT
    state = attached(comm)
    context, tag = state.groups.channel(ROLL_CALL)
    for when, end in enumerate((lambda: None, state.roll_call.end)):
        end()
        plain.Barrier()
        settle() if when else None
        left[when] += context.Iprobe(MPI.ANY_SOURCE, tag)
        plain.Barrier()
    comm.Free()
    mates = plain.Split(plain.rank % 2)  # gets the number of a freed communicator
    mates.Barrier()
    mates.Free()
plain.Allreduce(MPI.IN_PLACE, left)
assert left[0], "expecting abstentions, got none"
assert not left[1], f"expecting no message, got some on {left[1]} ranks"
print("nothing left", flush=True)
