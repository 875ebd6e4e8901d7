"""Every collective that topompi runs over levels, against the same call of the plain communicator, byte by byte.

Runs at up to 16 ranks, over the roots given as arguments, by default all. Each case is a function that makes, for one
rank, the arguments of one call and the buffer to look at afterwards; it is called twice with equal results, once for
each communicator.
"""

import itertools
import sys

import numpy as np
from mpi4py import MPI

import topompi
from topompi.selection import Choice
from topompi.topology import TopologyInterface, load

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()


def placements():
    """Hosts of the ranks, over a fabric of three levels with two hosts a leaf and two leaves a pod."""
    hosts = [f"h{i}" for i in range(8)]
    rng = np.random.default_rng(7)
    hosts += hosts if SIZE > 8 else []
    uneven = [host for host, ranks in zip(hosts[:8:2], (1, 3, 4, 8), strict=True) for _ in range(ranks)]
    yield "block", [hosts[rank // 2] for rank in range(SIZE)]
    yield "cyclic", [hosts[rank % 3 * 2] for rank in range(SIZE)]
    yield "random", [hosts[i] for i in rng.integers(0, 8, SIZE)]
    yield "uneven", uneven[:SIZE]
    yield "uneven, shuffled", [uneven[i] for i in rng.permutation(SIZE)]
    yield "one a host", hosts[:SIZE]
    yield "one host", hosts[:1] * SIZE


def pattern(kind, rank, count):
    """Bytes that tell rank and index apart, in the memory of ``count`` items of a numpy type."""
    data = np.frombuffer(np.random.default_rng(1000 * rank + count).bytes(count * np.dtype(kind).itemsize), np.uint8)
    return data.view(kind).copy() if kind != "?" else (data % 2).view("?").copy()


def empty(kind, count):
    """A receive buffer in which untouched items can be told."""
    return np.full(count * np.dtype(kind).itemsize, 0x55, np.uint8).view(kind).copy()


def columns(count):
    """A datatype of ``count`` doubles, each followed by a hole, as one column of a matrix of two."""
    return MPI.DOUBLE.Create_vector(count, 1, 2).Create_resized(0, count * 16).Commit()


KINDS = ("d", "i2", "u1", "?", "c16")
COUNTS = (0, 1, 5)


def block_messages(kind, count, blocks, data):
    """The spellings of a message of ``blocks`` blocks that stands in the whole of ``data``."""
    code = MPI.Datatype.fromcode(memoryview(data).format.lstrip("@=<"))
    yield data
    yield [data, code]
    yield [data, memoryview(data).format]
    yield [data, count]
    yield [data, count, code]
    yield [data, (count, 0), code]
    yield [data, count, 0, code]
    if kind != "?":
        yield [data.view(np.uint8), count * data.itemsize, MPI.BYTE]


def gather_cases(root):
    for kind, count in itertools.product(KINDS, COUNTS):
        for spelling in range(8 if kind == "d" else 1):

            def make(kind=kind, count=count, spelling=spelling):
                send, receive = pattern(kind, RANK, count), empty(kind, count * SIZE)
                sent = list(block_messages(kind, count, 1, send))[spelling]
                received = list(block_messages(kind, count, SIZE, receive))[spelling] if root == RANK else None
                return "Gather", (sent, received, root), receive

            yield f"Gather {kind} {count} spelling {spelling}", make

    def in_place():
        receive = empty("d", 3 * SIZE)
        receive[3 * RANK : 3 * RANK + 3] = pattern("d", RANK, 3)
        if root == RANK:
            return "Gather", (MPI.IN_PLACE, receive, root), receive
        return "Gather", (receive[3 * RANK : 3 * RANK + 3], None, root), receive

    def derived_to_plain():
        send, receive = pattern("d", RANK, 6), empty("d", 3 * SIZE)
        return "Gather", ([send, 1, columns(3)], receive if root == RANK else None, root), receive

    def plain_to_derived():
        send, receive = pattern("d", RANK, 3), empty("d", 6 * SIZE)
        return "Gather", (send, [receive, 1, columns(3)] if root == RANK else None, root), receive

    def derived_in_place():
        receive = empty("d", 6 * SIZE)
        receive[6 * RANK : 6 * RANK + 6] = pattern("d", RANK, 6)
        if root == RANK:
            return "Gather", (MPI.IN_PLACE, [receive, 1, columns(3)], root), receive
        return "Gather", ([receive[6 * RANK :], 1, columns(3)], None, root), receive

    def displaced():
        send, receive = pattern("d", RANK, 9), empty("d", 2 * SIZE + 4)
        received = [receive, (2, 4), MPI.DOUBLE] if root == RANK else None
        return "Gather", ([send, (2, 7), MPI.DOUBLE], received, root), receive

    def large():
        send, receive = pattern("d", RANK, 20000), empty("d", 20000 * SIZE)
        return "Gather", (send, receive if root == RANK else None, root), receive

    for make in (in_place, derived_to_plain, plain_to_derived, derived_in_place, displaced, large):
        yield f"Gather {make.__name__}", make


COUNT_OF = [3, 0, 5, 1, 0, 7, 2, 4] * 2


def vector_messages(counts, data, displs):
    yield [data, counts]
    yield [data, (counts, None)]
    yield [data, counts, MPI.DOUBLE]
    yield [data, (counts, displs), MPI.DOUBLE]
    yield [data, counts, displs, MPI.DOUBLE]
    yield [data, (np.array(counts), np.array(displs)), "d"]


def gatherv_cases(root):
    counts = COUNT_OF[:SIZE]
    reversed_displs = [sum(counts[i + 1 :]) + 2 * (SIZE - i) for i in range(SIZE)]
    for spelling in range(6):

        def make(spelling=spelling):
            send, receive = pattern("d", RANK, counts[RANK]), empty("d", sum(counts) + 2 * SIZE + 2)
            received = list(vector_messages(counts, receive, reversed_displs))[spelling]
            return "Gatherv", (send, received if root == RANK else None, root), receive

        yield f"Gatherv spelling {spelling}", make

    def shared_out():
        receive = empty("d", 2 * SIZE + 1)
        send = pattern("d", RANK, 2 + (RANK < 1))
        return "Gatherv", (send, receive if root == RANK else None, root), receive

    def strided():
        send, receive = pattern("d", RANK, 2), empty("d", 5 * SIZE)
        return "Gatherv", (send, [receive, 2, 5, MPI.DOUBLE] if root == RANK else None, root), receive

    def in_place():
        receive = empty("d", sum(counts))
        start = sum(counts[:RANK])
        receive[start : start + counts[RANK]] = pattern("d", RANK, counts[RANK])
        if root == RANK:
            return "Gatherv", (MPI.IN_PLACE, [receive, counts], root), receive
        return "Gatherv", (receive[start : start + counts[RANK]], None, root), receive

    def derived():
        send, receive = pattern("d", RANK, 2 * counts[RANK] + 2), empty("d", 2 * sum(counts) + 2)
        received = [receive, counts, columns(1)] if root == RANK else None
        return "Gatherv", ([send, counts[RANK], columns(1)], received, root), receive

    def nothing():
        receive = empty("d", 1)
        return "Gatherv", ([empty("d", 0), 0], [receive, [0] * SIZE] if root == RANK else None, root), receive

    for make in (shared_out, strided, in_place, derived, nothing):
        yield f"Gatherv {make.__name__}", make


def scatter_cases(root):
    for kind, count in itertools.product(KINDS, COUNTS):
        for spelling in range(8 if kind == "d" else 1):

            def make(kind=kind, count=count, spelling=spelling):
                send, receive = pattern(kind, root, count * SIZE), empty(kind, count)
                sent = list(block_messages(kind, count, SIZE, send))[spelling] if root == RANK else None
                received = list(block_messages(kind, count, 1, receive))[spelling]
                return "Scatter", (sent, received, root), receive

            yield f"Scatter {kind} {count} spelling {spelling}", make

    def in_place():
        data = pattern("d", root, 3 * SIZE) if root == RANK else empty("d", 3)
        if root == RANK:
            return "Scatter", (data, MPI.IN_PLACE, root), data
        return "Scatter", (None, data, root), data

    def derived():
        send, receive = pattern("d", root, 6 * SIZE), empty("d", 6)
        return "Scatter", ([send, 1, columns(3)] if root == RANK else None, [receive, 1, columns(3)], root), receive

    def read_only():
        send, receive = pattern("d", root, 2 * SIZE), empty("d", 2)
        send.flags.writeable = False
        return "Scatter", (send if root == RANK else None, receive, root), receive

    def large():
        send, receive = pattern("d", root, 20000 * SIZE), empty("d", 20000)
        return "Scatter", (send if root == RANK else None, receive, root), receive

    for make in (in_place, derived, read_only, large):
        yield f"Scatter {make.__name__}", make


def scatterv_cases(root):
    counts = COUNT_OF[:SIZE]
    reversed_displs = [sum(counts[i + 1 :]) + 2 * (SIZE - i) for i in range(SIZE)]
    for spelling in range(6):

        def make(spelling=spelling):
            send, receive = pattern("d", root, sum(counts) + 2 * SIZE + 2), empty("d", counts[RANK])
            sent = list(vector_messages(counts, send, reversed_displs))[spelling]
            return "Scatterv", (sent if root == RANK else None, receive, root), receive

        yield f"Scatterv spelling {spelling}", make

    def in_place():
        data = pattern("d", root, sum(counts)) if root == RANK else empty("d", counts[RANK])
        if root == RANK:
            return "Scatterv", ([data, counts], MPI.IN_PLACE, root), data
        return "Scatterv", (None, data, root), data

    def derived():
        send, receive = pattern("d", root, 2 * sum(counts) + 2), empty("d", 2 * counts[RANK] + 2)
        sent = [send, counts, columns(1)] if root == RANK else None
        return "Scatterv", (sent, [receive, counts[RANK], columns(1)], root), receive

    for make in (in_place, derived):
        yield f"Scatterv {make.__name__}", make


def bcast_cases(root):
    for kind, count in itertools.product(KINDS, (*COUNTS, 3000)):

        def make(kind=kind, count=count):
            data = pattern(kind, root, count) if root == RANK else empty(kind, count)
            return "Bcast", (data, root), data

        yield f"Bcast {kind} {count}", make

    def derived():
        data = pattern("d", root, 6) if root == RANK else empty("d", 6)
        return "Bcast", ([data, 1, columns(3)], root), data

    def read_only_at_root():
        data = pattern("d", root, 6) if root == RANK else empty("d", 6)
        data.flags.writeable = root != RANK
        return "Bcast", ([data, (2, 3), MPI.DOUBLE], root), data

    def bottom():
        data = pattern("d", root, 4) if root == RANK else empty("d", 4)
        absolute = MPI.DOUBLE.Create_hindexed([4], [MPI.Get_address(data)]).Commit()
        return "Bcast", ([MPI.BOTTOM, 1, absolute], root), data

    for make in (derived, read_only_at_root, bottom):
        yield f"Bcast {make.__name__}", make


class Levels:
    """A selector that always answers: over the levels. It stands in for a communicator's own."""

    def choose(self, *_, **__):
        return Choice("levels", "forced")


def main():
    fabric = load("xgft:2,2,2;1,1,1")
    names = fabric.fabric.hosts
    failures, cases = [], 0
    for placement, hosts in placements():
        ours_hosts = [names[int(host[1:])] for host in hosts]
        native = WORLD.Dup()
        interface = TopologyInterface.place(ours_hosts, fabric.routes, virtual=True)
        ours = topompi.Intracomm(native.Dup(), topology=interface)
        ours._held.selector = Levels()
        for root in map(int, sys.argv[1:] or range(SIZE)):
            for generate in (gather_cases, gatherv_cases, scatter_cases, scatterv_cases, bcast_cases):
                for name, make in generate(root):
                    results = []
                    for comm in (native, ours):
                        method, arguments, look_at = make()
                        getattr(comm, method)(*arguments)
                        results.append(look_at.tobytes())
                    cases += 1
                    if results[0] != results[1]:
                        failures.append(f"rank {RANK}: {placement}, root {root}: {name}")
        ours.Free()
        native.Free()
    everyone = WORLD.gather(failures)
    if RANK == 0:
        found = [failure for of_rank in everyone for failure in of_rank]
        print("\n".join(found[:20]))
        print(f"{cases} cases on {SIZE} ranks, {len(found)} failures", flush=True)
    sys.exit(WORLD.bcast(1 if RANK == 0 and any(everyone) else 0 if RANK == 0 else None))


if __name__ == "__main__":
    main()
