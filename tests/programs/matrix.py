"""Every collective, as topompi runs it by every algorithm, against the plain communicator, byte by byte.

``matrix.py [all]`` runs at up to 8 ranks: collectives, message spellings, roots and placements; the algorithms and the
forms (blocking, persistent, non-blocking) take turns from call to call, so that each meets each; with ``all`` every
case meets every algorithm and form. Each case is a function that makes, for one rank, the arguments of one call and
the buffer to look at afterwards, as in ``collectives``.
"""

import itertools
import sys
from collections import Counter

import numpy as np
from collectives import (
    COUNT_OF,
    RANK,
    SIZE,
    WORLD,
    bcast_cases,
    block_messages,
    columns,
    empty,
    gather_cases,
    gatherv_cases,
    pattern,
    placements,
    scatter_cases,
    scatterv_cases,
    vector_messages,
)
from mpi4py import MPI

import topompi
from topompi.execution import running as planned
from topompi.execution.specs import CALLS
from topompi.schedules import ALGORITHMS
from topompi.schedules.segments import cuttable
from topompi.selection import Choice
from topompi.topology import TopologyInterface, load

KINDS = ("d", "i2", "c16")
COUNTS = (0, 1, 5)
FORMS = ("blocking", "persistent", "non-blocking")


class Forced:
    """A selector that answers with one algorithm wherever that can run; it stands in for a communicator's own."""

    def __init__(self):
        self.algorithm = "native"

    def choose(self, method, nbytes, *, root=None, commutative=True, measurable=True):
        able = planned.can_run(method, self.algorithm, commutative=commutative)
        return Choice(self.algorithm if able else "native", "forced")

    def typical(self, method, own):
        return 0


RAN = Counter()  # calls by method and the algorithm that ran, which is native where another could not
_run = planned.run


def noted(levels, method, algorithm, arguments):
    """``planned.run``, and what it says."""
    name = _run(levels, method, algorithm, arguments)
    RAN[method, name] += 1
    return name


def allgather_cases():
    for kind, count in itertools.product(KINDS, COUNTS):
        for spelling in range(8 if kind == "d" else 1):

            def make(kind=kind, count=count, spelling=spelling):
                send, receive = pattern(kind, RANK, count), empty(kind, count * SIZE)
                sent = list(block_messages(kind, count, 1, send))[spelling]
                received = list(block_messages(kind, count, SIZE, receive))[spelling]
                return "Allgather", (sent, received), receive

            yield f"Allgather {kind} {count} spelling {spelling}", make

    def in_place():
        receive = empty("d", 3 * SIZE)
        receive[3 * RANK : 3 * RANK + 3] = pattern("d", RANK, 3)
        return "Allgather", (MPI.IN_PLACE, receive), receive

    def derived():
        send, receive = pattern("d", RANK, 6), empty("d", 6 * SIZE)
        return "Allgather", ([send, 1, columns(3)], [receive, 1, columns(3)]), receive

    def derived_to_plain():
        send, receive = pattern("d", RANK, 6), empty("d", 3 * SIZE)
        return "Allgather", ([send, 1, columns(3)], receive), receive

    for make in (in_place, derived, derived_to_plain):
        yield f"Allgather {make.__name__}", make


def allgatherv_cases():
    counts = COUNT_OF[:SIZE]
    displs = [sum(counts[i + 1 :]) + 2 * (SIZE - i) for i in range(SIZE)]
    for spelling in range(6):

        def make(spelling=spelling):
            send, receive = pattern("d", RANK, counts[RANK]), empty("d", sum(counts) + 2 * SIZE + 2)
            return "Allgatherv", (send, list(vector_messages(counts, receive, displs))[spelling]), receive

        yield f"Allgatherv spelling {spelling}", make

    def in_place():
        receive = empty("d", sum(counts))
        start = sum(counts[:RANK])
        receive[start : start + counts[RANK]] = pattern("d", RANK, counts[RANK])
        return "Allgatherv", (MPI.IN_PLACE, [receive, counts]), receive

    def derived():
        send, receive = pattern("d", RANK, 2 * counts[RANK] + 2), empty("d", 2 * sum(counts) + 2)
        return "Allgatherv", ([send, counts[RANK], columns(1)], [receive, counts, columns(1)]), receive

    def nothing():
        receive = empty("d", 1)
        return "Allgatherv", ([empty("d", 0), 0], [receive, [0] * SIZE]), receive

    for make in (in_place, derived, nothing):
        yield f"Allgatherv {make.__name__}", make


def alltoall_cases():
    for kind, count in itertools.product(KINDS, COUNTS):
        for spelling in range(8 if kind == "d" else 1):

            def make(kind=kind, count=count, spelling=spelling):
                send, receive = pattern(kind, RANK, count * SIZE), empty(kind, count * SIZE)
                sent, received = (list(block_messages(kind, count, SIZE, one))[spelling] for one in (send, receive))
                return "Alltoall", (sent, received), receive

            yield f"Alltoall {kind} {count} spelling {spelling}", make

    def in_place():
        receive = pattern("d", RANK, 3 * SIZE)
        return "Alltoall", (MPI.IN_PLACE, receive), receive

    def derived():
        send, receive = pattern("d", RANK, 6 * SIZE), empty("d", 6 * SIZE)
        return "Alltoall", ([send, 1, columns(3)], [receive, 1, columns(3)]), receive

    def displaced():
        send, receive = pattern("d", RANK, 2 * SIZE + 3), empty("d", 2 * SIZE + 4)
        return "Alltoall", ([send, (2, 3), MPI.DOUBLE], [receive, (2, 4), MPI.DOUBLE]), receive

    def large():
        send, receive = pattern("d", RANK, 3000 * SIZE), empty("d", 3000 * SIZE)
        return "Alltoall", (send, receive), receive

    for make in (in_place, derived, displaced, large):
        yield f"Alltoall {make.__name__}", make


def exchanged(source, target):
    """Entries that one rank sends another in the v-forms, some of them none."""
    return (3 * source + 5 * target) % 4


def alltoallv_cases():
    send_counts = [exchanged(RANK, rank) for rank in range(SIZE)]
    receive_counts = [exchanged(rank, RANK) for rank in range(SIZE)]
    displs = [[sum(counts[:i]) + 2 * i for i in range(SIZE)] for counts in (send_counts, receive_counts)]
    for spelling in range(6):

        def make(spelling=spelling):
            send, receive = (pattern("d", RANK, 3 * SIZE + 2 * SIZE), empty("d", 5 * SIZE))
            sent = list(vector_messages(send_counts, send, displs[0]))[spelling]
            return "Alltoallv", (sent, list(vector_messages(receive_counts, receive, displs[1]))[spelling]), receive

        yield f"Alltoallv spelling {spelling}", make

    def derived():
        send, receive = pattern("d", RANK, 6 * SIZE + 2), empty("d", 6 * SIZE + 2)
        return "Alltoallv", ([send, send_counts, columns(1)], [receive, receive_counts, columns(1)]), receive

    def nothing():
        receive = empty("d", 1)
        return "Alltoallv", ([empty("d", 0), [0] * SIZE], [receive, [0] * SIZE]), receive

    def in_place():
        counts = [(RANK + rank) % 3 for rank in range(SIZE)]
        receive = pattern("d", RANK, 2 * SIZE)
        return "Alltoallv", (MPI.IN_PLACE, [receive, counts]), receive

    for make in (derived, nothing, in_place):
        yield f"Alltoallv {make.__name__}", make


def alltoallw_cases():
    """Integers that even ranks send as integers and odd ones as bytes, in places of their own."""
    kinds, scales = (MPI.INT, MPI.BYTE), (1, 4)
    for more in range(6):

        def make(more=more):
            send, receive = pattern("i4", RANK, 9 * SIZE), empty("i4", 9 * SIZE)
            sent = [(exchanged(RANK, rank) + more) * scales[rank % 2] for rank in range(SIZE)]
            received = [(exchanged(rank, RANK) + more) * scales[RANK % 2] for rank in range(SIZE)]
            displs = range(0, 36 * SIZE, 36)
            types = [kinds[rank % 2] for rank in range(SIZE)], [kinds[RANK % 2]] * SIZE
            return "Alltoallw", ([send, (sent, displs), types[0]], [receive, (received, displs), types[1]]), receive

        yield f"Alltoallw {more} more", make


def barrier_cases():
    for number in range(6):
        yield f"Barrier {number}", lambda: ("Barrier", (), empty("d", 1))


def numbers(kind, rank, count):
    """Small whole numbers, whose sums and products are exact in any order."""
    return np.random.default_rng(77 * rank + count).integers(1, 3, count).astype(kind)


def compose(first, second, datatype):
    """Affine maps x -> a x + b modulo a prime, each as 97 a + b: an operation that does not commute."""
    one, two = (np.frombuffer(data, np.int64) for data in (first, second))
    a, b, c, d = one // 97, one % 97, two // 97, two % 97
    two[:] = a * c % 97 * 97 + (a * d + b) % 97


COMPOSE = MPI.Op.Create(compose, commute=False)
OPERATIONS = {"sum": MPI.SUM, "product": MPI.PROD, "largest": MPI.MAX, "in order": COMPOSE}


def spelled(data, count, spelling):
    code = MPI.Datatype.fromcode(data.dtype.char)
    return (data, [data, count], [data, count, code], [data, (count, 0), code], [data, data.dtype.char])[spelling]


def vectors(kind, count, name):
    """A rank's contribution to a reduction and room for its result."""
    send = numbers(kind, RANK, count)
    if name == "in order":
        send = np.random.default_rng(RANK).integers(97, 97 * 97, count)
    return send, empty(send.dtype, count), count


def reductions():
    """Kinds of data, lengths, operations and spellings of reductions, not all with all."""
    for kind, count, name in itertools.product(("i4", "d"), (0, 1, 6, 17), OPERATIONS):
        yield kind, count, name, 0
    for spelling in range(1, 5):
        yield "d", 6, "sum", spelling
    yield "d", 5000, "sum", 0


def reduce_cases(root):
    for kind, count, name, spelling in reductions():

        def make(kind=kind, count=count, name=name, spelling=spelling):
            send, receive, count = vectors(kind, count, name)
            into = spelled(receive, count, spelling) if root == RANK else None
            return "Reduce", (spelled(send, count, spelling), into, OPERATIONS[name], root), receive

        yield f"Reduce {kind} {count} {name} spelling {spelling}", make

    def in_place():
        data = numbers("d", RANK, 7)
        arguments = (MPI.IN_PLACE, data) if root == RANK else (data, None)
        return "Reduce", (*arguments, MPI.SUM, root), data

    def least_and_where():
        send = np.zeros(4, dtype=[("value", "f8"), ("rank", "i4")])
        send["value"], send["rank"] = numbers("d", RANK, 4), RANK
        receive = np.zeros_like(send)
        pair = MPI.DOUBLE_INT
        return "Reduce", ([send, 4, pair], [receive, 4, pair] if root == RANK else None, MPI.MINLOC, root), receive

    yield "Reduce in place", in_place
    if MPI.DOUBLE_INT.Get_extent()[1] == 12:
        yield "Reduce least and where", least_and_where


def allreduce_cases():
    for method in ("Allreduce", "Scan"):
        for kind, count, name, spelling in reductions():

            def make(method=method, kind=kind, count=count, name=name, spelling=spelling):
                send, receive, count = vectors(kind, count, name)
                sent, received = spelled(send, count, spelling), spelled(receive, count, spelling)
                return method, (sent, received, OPERATIONS[name]), receive

            yield f"{method} {kind} {count} {name} spelling {spelling}", make

        for name in ("sum", "in order"):

            def in_place(method=method, name=name):
                data = numbers("i8", RANK, 8)
                return method, (MPI.IN_PLACE, data, OPERATIONS[name]), data

            yield f"{method} in place, {name}", in_place


def reduce_scatter_cases():
    for kind, count, name in itertools.product(("i4", "d"), (0, 1, 6), OPERATIONS):

        def blocks(kind=kind, count=count, name=name):
            send, _, length = vectors(kind, 2 * count * SIZE, name)
            receive = empty(send.dtype, length // SIZE)
            return "Reduce_scatter_block", (send, receive, OPERATIONS[name]), receive

        def parts(kind=kind, count=count, name=name):
            counts = [2 * ((rank + count) % 3) for rank in range(SIZE)]
            send, _, _ = vectors(kind, sum(counts), name)
            receive = empty(send.dtype, counts[RANK])
            return "Reduce_scatter", (send, receive, counts, OPERATIONS[name]), receive

        yield f"Reduce_scatter_block {kind} {count} {name}", blocks
        yield f"Reduce_scatter {kind} {count} {name}", parts

    def blocks_in_place():
        data = numbers("d", RANK, 3 * SIZE)
        return "Reduce_scatter_block", (MPI.IN_PLACE, data, MPI.SUM), data[:3]

    def parts_in_place():
        counts = [1 + rank % 2 for rank in range(SIZE)]
        data = numbers("d", RANK, sum(counts))
        return "Reduce_scatter", (MPI.IN_PLACE, data, counts, MPI.SUM), data[: counts[RANK]]

    def counts_not_given():
        send, receive = numbers("d", RANK, 2 * SIZE), empty("d", 2)
        return "Reduce_scatter", (send, receive, None, MPI.SUM), receive

    for make in (blocks_in_place, parts_in_place, counts_not_given):
        yield f"Reduce_scatter {make.__name__}", make


ROOTED = (gather_cases, gatherv_cases, scatter_cases, scatterv_cases, bcast_cases, reduce_cases)
SYMMETRIC = (
    allgather_cases,
    allgatherv_cases,
    alltoall_cases,
    alltoallv_cases,
    alltoallw_cases,
    barrier_cases,
    allreduce_cases,
    reduce_scatter_cases,
)


def cases():
    """All cases of all collectives: root or nothing, name, and what makes the arguments."""
    roots = sorted({0, SIZE // 2, SIZE - 1})
    for root, generate in itertools.product(roots, ROOTED):
        for name, make in generate(root):
            yield f"root {root}: {name}", make
    for generate in SYMMETRIC:
        yield from generate()


def algorithms(method):
    """Names of all that may run a method."""
    collective = CALLS[method].collective
    cut = [f"{name}/8" for name in cuttable(collective)]
    names = ["native", "levels", *ALGORITHMS.get(collective, ()), *cut]
    return [name for name in names if planned.can_run(method, name)]


def call(comm, method, arguments, form):
    """One call in one of its forms."""
    if form == "blocking":
        getattr(comm, method)(*arguments)
    elif form == "persistent":
        request = getattr(comm, f"{method}_init")(*arguments)
        request.Start()
        request.Wait()
        request.Free()
    else:
        getattr(comm, f"I{method.lower()}")(*arguments).Wait()


def main():
    everything = sys.argv[1:] == ["all"]
    fabric = load("xgft:2,2,2;1,1,1")
    names = fabric.fabric.hosts
    failures, calls, turn = [], 0, Counter()
    planned.run = noted
    for placement, hosts in placements():
        native, inner = WORLD.Dup(), WORLD.Dup()
        placed = [names[int(host[1:])] for host in hosts]
        ours = topompi.Intracomm(inner, TopologyInterface.place(placed, fabric.routes, virtual=True))
        forced = ours._held.selector = Forced()
        for name, make in cases():
            method, arguments, expected = make()
            getattr(native, method)(*arguments)
            options = list(itertools.product(algorithms(method), FORMS))
            turn[method] += 1
            few = method in ("Alltoallv", "Alltoallw")  # cases, and many algorithms
            for algorithm, form in options if everything or few else [options[turn[method] % len(options)]]:
                forced.algorithm = algorithm
                ours._held.calls.clear()
                for _ in range(2 if form == "blocking" and calls % 4 == 0 else 1):  # the second as one already known
                    _, arguments, found = make()
                    call(ours, method, arguments, form)
                    calls += 1
                    if found.tobytes() != expected.tobytes():
                        failures.append(f"rank {RANK}: {placement}: {name}: {algorithm}, {form}")
        ours.Free()
        native.Free()
    everyone = WORLD.gather(failures)
    if RANK == 0:
        found = [failure for of_rank in everyone for failure in of_rank]
        print("\n".join(found[:20]))
        missing = [
            (method, name)
            for method in CALLS
            for name in algorithms(method)
            if SIZE > 1 and name != "native" and not RAN[method, name]
        ]
        print(f"never ran: {missing}" if missing else "every algorithm ran")
        print(f"{calls} calls on {SIZE} ranks, {len(found)} failures", flush=True)
    sys.exit(WORLD.bcast(any(everyone) if RANK == 0 else None))


if __name__ == "__main__":
    main()
