"""Calls that one rank alone refuses leave no message behind: the same call is right after them, by every algorithm."""

from itertools import product

import numpy as np
from mpi4py import MPI

from tests.programs.planlife import new_executor
from topompi.mpi.execution import objects, running
from topompi.mpi.execution.eligibility import can_run
from topompi.mpi.execution.planning import part_of
from topompi.mpi.execution.specs import CALLS
from topompi.schedules import ALGORITHMS

WORLD = MPI.Intracomm(MPI.COMM_WORLD)
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
LAST = SIZE - 1
BLOCK = 3  # elements


def fixed(number):
    array = np.zeros(number)
    array.flags.writeable = False
    return array


# What is wrong with a receive buffer, from the number of elements that it should hold.
BAD = {
    "none": lambda number: None,
    "gaps": lambda number: np.zeros(2 * number)[::2],
    "read-only": fixed,
    "no type": lambda number: [np.zeros(number), MPI.DATATYPE_NULL],
    "short": lambda number: [np.zeros(1), number // SIZE if number > BLOCK else number, MPI.DOUBLE],
}
# Of which calls such a rank can take its part, since it knows how much comes, or is told.
REFUSED = {
    "Bcast": ("read-only", "short"),
    "Gather": tuple(BAD),
    "Gatherv": ("none", "gaps", "read-only", "no type"),
    "Reduce": tuple(BAD),
    "Scatter": ("read-only", "short"),
    "Allgather": ("gaps", "no type"),
    "Alltoall": ("none", "no type"),
    "Allreduce": ("read-only", "no type"),
    "Reduce_scatter_block": ("short",),
}


def arguments(method, receive, root):
    """Those of a call, with the receive buffer made by a function of its elements; and what it should hold then."""
    own = np.full(BLOCK, RANK + 1.0)
    if method == "Bcast":
        message = own if root == RANK else receive(BLOCK)
        return (message, root), message, np.full(BLOCK, root + 1.0)
    if method in ("Gather", "Gatherv"):
        message = receive(BLOCK * SIZE) if root == RANK else None
        return (own, message, root), message, np.arange(BLOCK * SIZE) // BLOCK + 1.0
    every = np.arange(BLOCK * SIZE) // BLOCK + 1.0
    if method in ("Scatter", "Scatterv"):
        message = receive(BLOCK)
        return (every if root == RANK else None, message, root), message, own
    if method in ("Allgather", "Allgatherv", "Alltoall"):
        message = receive(BLOCK * SIZE)
        return (np.full(BLOCK * SIZE, RANK + 1.0) if method == "Alltoall" else own, message), message, every
    if method in ("Allreduce", "Reduce_scatter_block"):
        message, sent = receive(BLOCK), own if method == "Allreduce" else np.full(BLOCK * SIZE, RANK + 1.0)
        return (sent, message, MPI.SUM), message, np.full(BLOCK, SIZE * (SIZE + 1) / 2)
    message = receive(BLOCK) if root == RANK else None
    return (own, message, MPI.SUM, root), message, np.full(BLOCK, SIZE * (SIZE + 1) / 2)


def refuses(executor, method, algorithm, bad, root):
    """One rank, the root or a receiver of what the root sends, has the bad buffer."""
    there = (root + 1) % SIZE if method == "Bcast" or (method == "Scatter" and bad == "short") else root
    given, *_ = arguments(method, BAD[bad] if there == RANK else np.zeros, root)
    try:
        running.run(executor, method, algorithm, given)
    except Exception:
        assert there == RANK, (method, algorithm, bad)
    else:
        assert there != RANK, (method, algorithm, bad)
    WORLD.Barrier()
    left = executor.groups.channel(0).comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG)
    WORLD.Barrier()  # before anything is sent again
    assert not left, (method, algorithm, bad, RANK)


def is_right(executor, method, algorithm, root):
    given, message, wanted = arguments(method, np.zeros, root)
    assert running.run(executor, method, algorithm, given) in (algorithm, "native")
    assert message is None or (message == wanted).all(), (method, algorithm, message, wanted)


def objects_that_the_last_rank_cannot_combine_leave_nothing(executor):
    """No other rank waits for its part, and it has not received all of theirs when its operation fails."""

    ran = set()

    def fails(one, other):
        if RANK == LAST:
            raise ArithmeticError
        return one + other

    for algorithm, _ in product(ALGORITHMS["scan"], range(2)):
        part = WORLD.bcast(part_of(executor, "scan", algorithm, None, None, ordered=True, blocks=1), LAST)
        if isinstance(part, str) or ((part.rows[:, 1] == LAST) & (part.rows[:, 2] != LAST)).any():
            continue
        ran.add(algorithm)
        try:
            objects.combine(executor, "scan", algorithm, -100, fails)
        except ArithmeticError:
            assert RANK == LAST
        WORLD.Barrier()
        got = objects.combine(executor, "scan", algorithm, RANK + 1, lambda one, other: one + other)
        assert got == (RANK + 1) * (RANK + 2) // 2, (algorithm, got)
    assert ran


def a_request_that_one_rank_refuses_meets_no_later_one(executor):
    """The others have started theirs; each has a tag of its own."""
    held = []
    for algorithm in ("doubling", "ring"):
        for receive in (fixed(BLOCK) if RANK == LAST else np.zeros(BLOCK), np.zeros(BLOCK)):
            own = np.full(BLOCK, RANK + 1.0)
            request = running.prepare(executor, "Allreduce", algorithm, (own, receive, MPI.SUM))
            if request is None:  # the library's own method is called then, which refuses the buffer
                assert RANK == LAST
                continue
            request.Start()
            held.append((request, own, receive))
        held[-1][0].Wait()
        assert (receive == SIZE * (SIZE + 1) / 2).all(), (algorithm, receive)
    assert len(held) == (2 if RANK == LAST else 4)


def main():
    executor, cases = new_executor(), 0
    for method, bads in REFUSED.items():
        names = [name for name in ALGORITHMS[CALLS[method].collective] if can_run(method, name)]
        for algorithm, bad, root in product(names, bads, (0, LAST) if CALLS[method].rooted else (LAST,)):
            refuses(executor, method, algorithm, bad, root)
            is_right(executor, method, algorithm, root)
            cases += 1
    objects_that_the_last_rank_cannot_combine_leave_nothing(executor)
    a_request_that_one_rank_refuses_meets_no_later_one(executor)
    if RANK == 0:
        print(f"all right: {cases} refusals", flush=True)


if __name__ == "__main__":
    main()
