"""Alltoallv by carriers against the MPI library's own call, on ranks placed anywhere, in every spelling and datatype.

``carried.py SEED CASES``: rank 0 prints ``all right`` with the number of cases. Run on 1 to 8 ranks.
"""

import signal
import sys
from itertools import chain, product
from random import Random
from time import sleep

import numpy as np
from mpi4py import MPI

import topompi
from tests.covering import covering
from topompi.errors import TopompiError
from topompi.mpi.communicator.state import working
from topompi.mpi.execution import carriers, running
from topompi.topology import TopologyInterface

WORLD = MPI.Intracomm(MPI.COMM_WORLD)
RANK, SIZE = WORLD.rank, WORLD.size
GAPS = MPI.INT.Create_vector(2, 1, 3).Commit()  # two of four integers
WIDE = MPI.INT.Create_resized(0, 12).Commit()
TYPES = (MPI.INT, GAPS, WIDE)
ROOM = 1 << 14  # integers of a buffer


def places(numbers, counts, reverse, gap):
    """Displacements in entries, in the order of ranks or against it, with gaps between blocks."""
    order = np.arange(SIZE)[:: -1 if reverse else 1]
    displs = np.empty(SIZE, dtype=int)
    displs[order] = np.cumsum([0, *(counts[order][:-1] + gap)])
    return displs + numbers


def draw(random, in_place):
    """One case, the same on all ranks: what each sends, how sizes and placements differ."""
    largest = int(random.choice([1, 3, 40]))
    counts = random.integers(0, largest + 1, (SIZE, SIZE)) * (random.random((SIZE, SIZE)) < random.choice([0.3, 1.0]))
    if in_place:
        counts = np.maximum(counts, counts.T)
    kinds = random.integers(0, len(TYPES), 2)
    layout = [(int(random.integers(0, 3)), bool(random.integers(2)), int(random.integers(0, 4))) for _ in range(2)]
    return counts, kinds, layout


def message(buffer, counts, kind, layout):
    start, reverse, gap = layout
    return [buffer, (counts.tolist(), places(start, counts, reverse, gap).tolist()), TYPES[kind]]


def equals_native(executor, random):
    in_place = bool(random.integers(4) == 0)
    counts, kinds, layout = draw(random, in_place)
    if kinds[0] != kinds[1] and GAPS in (TYPES[kinds[0]], TYPES[kinds[1]]):
        kinds = kinds[[0, 0]]  # an entry has as many integers at both ends
    own = np.arange(ROOM, dtype=np.int32) + RANK * ROOM
    results = []
    for run in (lambda *a: WORLD.Alltoallv(*a), lambda *a: running.run(executor, "Alltoallv", "node_aware", a)):
        room = own.copy() if in_place else np.full(ROOM, -1, dtype=np.int32)
        received = message(room, counts[:, RANK], kinds[1], layout[1])
        sent = MPI.IN_PLACE if in_place else message(own, counts[RANK], kinds[0], layout[0])
        assert run(sent, received) in (None, "node_aware")
        results.append(room)
    assert (results[0] == results[1]).all(), (RANK, counts, kinds, layout, in_place)


def refusing():
    """A fault, and whether each rank has it: the whole product on up to five ranks.

    Beyond that each rank alone, because a rank that several others tell misses none of them; and all pairs of values.
    """
    factors = {"bad": ("send", "receive", "unreadable", "negative"), **{str(r): (False, True) for r in range(SIZE)}}
    if SIZE <= 5:
        return product(*factors.values())
    pairs = covering(factors, lambda both: False, lambda one, other: True, Random(1))
    alone = ((bad, *row) for bad, row in product(factors["bad"], np.eye(SIZE, dtype=bool)))
    return chain(alone, (case.values() for case in pairs))


def refusals(executor):
    """Whichever ranks refuse: no rank waits; who expects data from one of them says so; the next call is right."""
    for bad, *who in refusing():
        counts = np.ones((SIZE, SIZE), dtype=int)
        counts[0, -1] = counts[-1, 0] = 0  # the first and the last rank have nothing for each other
        own, room = np.arange(SIZE, dtype=np.int32) + 100 * RANK, np.full(SIZE, -1, dtype=np.int32)
        given = [[own, counts[RANK].tolist(), MPI.INT], [room, (counts[:, RANK].tolist(), np.arange(SIZE)), MPI.INT]]
        if who[RANK]:
            negative = [own, [-1] * SIZE, MPI.INT]  # found when the blocks are packed
            given[bad == "receive"] = {"unreadable": 5, "negative": negative}.get(bad, [own, (-1, [0] * SIZE), MPI.INT])
        told = any(who[rank] and counts[rank, RANK] for rank in range(SIZE))
        wanted = "refused" if who[RANK] else "told" if told else "node_aware"
        try:
            got = running.run(executor, "Alltoallv", "node_aware", tuple(given))
        except TopompiError:
            got = "told"
        except (TypeError, ValueError, MPI.Exception):
            got = "refused"
        assert got == wanted, (bad, who, got, wanted)
        if not who[RANK]:
            sound = [rank for rank in range(SIZE) if counts[rank, RANK] and not who[rank]]
            assert room[sound].tolist() == [100 * rank + sum(counts[rank, :RANK]) for rank in sound]
        equals_native(executor, np.random.default_rng(1))


def one_buffer_may_be_sent_and_received(executor):
    """Blocks are packed before any arrives; Open MPI lets it pass, too."""
    both, counts = np.full(SIZE, RANK, dtype=np.int32), np.ones(SIZE, dtype=int)
    assert running.run(executor, "Alltoallv", "node_aware", ([both, counts], [both, counts])) == "node_aware"
    assert both.tolist() == list(range(SIZE))


def too_much_is_an_error_where_it_arrives(executor):
    """Rank 0 sends two entries to the last rank, which expects one; all others have what they expect."""
    sent, expected = np.ones((2, SIZE, SIZE), dtype=int)
    sent[0, -1] = 2
    own, room = np.arange(2 * SIZE, dtype=np.int32), np.full(SIZE, -1, dtype=np.int32)
    got = 0
    try:
        running.run(executor, "Alltoallv", "node_aware", ([own, sent[RANK]], [room, expected[:, RANK]]))
    except MPI.Exception as error:
        got = error.Get_error_class()
    assert got == (MPI.ERR_TRUNCATE if RANK == SIZE - 1 else 0)
    if not got:
        assert room.tolist() == [RANK] * SIZE


def a_handler_that_raises_leaves_no_message(executor):
    """Rank 0 is interrupted while it waits for the others; the next call is right."""
    counts = np.ones(SIZE, dtype=int)
    own, room = np.full(SIZE, RANK, dtype=np.int32), np.full(SIZE, -1, dtype=np.int32)
    before = signal.signal(signal.SIGALRM, interrupted)
    if RANK == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
    else:
        sleep(0.5)
    got = ""
    try:
        running.run(executor, "Alltoallv", "node_aware", ([own, counts], [room, counts]))
    except InterruptedError:
        got = "interrupted"
    signal.signal(signal.SIGALRM, before)
    assert got == ("interrupted" if RANK == 0 else "")
    assert RANK == 0 or room.tolist() == list(range(SIZE))
    WORLD.Barrier()
    equals_native(executor, np.random.default_rng(2))


def interrupted(number, frame):
    raise InterruptedError


def main():
    seed, cases = map(int, sys.argv[1:])
    random = np.random.default_rng(seed)
    for case in range(cases):
        hosts = [f"h{host}" for host in random.integers(0, random.integers(1, SIZE + 1), SIZE)]
        comm = topompi.Intracomm(WORLD.Dup(), TopologyInterface.place(hosts))
        executor = working(comm).executor
        carriers.LARGEST_COUNT = 4096 if case % 2 else carriers.LARGEST_COUNT
        for _ in range(10):
            equals_native(executor, random)
        if case == 0 and SIZE > 1:
            refusals(executor)
            too_much_is_an_error_where_it_arrives(executor)
            one_buffer_may_be_sent_and_received(executor)
            a_handler_that_raises_leaves_no_message(executor)
        assert not executor.groups.channel(0).comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG)
        WORLD.Barrier()
        comm.Free()
    if RANK == 0:
        print(f"all right: {10 * cases} cases", flush=True)


if __name__ == "__main__":
    main()
