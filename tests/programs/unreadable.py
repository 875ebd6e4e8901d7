"""One rank's own argument cannot be read in the first calls on a communicator, or in a trial: no rank waits for it."""

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
BAD = object()


def room(items):
    return np.full(items, 1.0 + RANK)


# Calls after which the library lets the other ranks go on, and the rank that raises in each; on 3 ranks.
CASES = {
    "a leaf of Bcast": (2, lambda comm: comm.Bcast(BAD if RANK == 2 else room(3), 0)),
    "a leaf of Scatter": (
        2,
        lambda comm: comm.Scatter(room(9) if RANK == 0 else None, BAD if RANK == 2 else room(3), 0),
    ),
    "the root of Gather": (0, lambda comm: comm.Gather(room(3), None, 0)),
    "a root in place": (0, lambda comm: comm.Gather(MPI.IN_PLACE if RANK == 0 else room(3), None, 0)),
    "a root whose room is no multiple": (
        0,
        lambda comm: comm.Gather(MPI.IN_PLACE if RANK == 0 else room(3), room(4) if RANK == 0 else None, 0),
    ),
    "the root of Gatherv": (0, lambda comm: comm.Gatherv(room(3), BAD if RANK == 0 else None, 0)),
}
for name, (refuses, call) in CASES.items():
    for before in (False, True):
        comm = WORLD.Dup()
        if before:
            comm.Barrier()
        try:
            call(comm)
        except Exception:
            assert refuses == RANK, name
        else:
            assert refuses != RANK, name
        total = np.zeros(3)
        comm.Allreduce(room(3), total)  # another method: as natively, it meets nothing of the call that was refused
        assert (total == sum(1.0 + rank for rank in range(SIZE))).all(), (name, total)
        # Not freed: MPICH would give its context, with what was left in it, to the next communicator.

# The same in the midst of calls that may be a trial's: every rank still knows what the others run.
comm = WORLD.Dup()
for number in range(300):
    refused = number % 7 == 3
    given, taken = np.full(3, 2.0), np.zeros(3 * SIZE)
    try:
        comm.Gather(given, (BAD if refused else taken) if RANK == 0 else None, 0)
    except Exception:
        assert refused
        assert RANK == 0
    else:
        assert RANK or not refused
        assert RANK or (taken == 2.0).all(), (number, taken)
WORLD.Barrier()
print("done", flush=True)
