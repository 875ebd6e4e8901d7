"""Every algorithm as a plan against the same call of the plain communicator, byte by byte.

Arguments: a seed, and which share of all combinations of method, algorithm, placement, root and kind of case to try.
The cases are drawn with one generator that runs alike on all ranks; how a rank spells its messages is drawn with one of
its own. Each case is made anew with equal contents for a native call, for ours, for ours once more with what was bound
by then, and for a persistent collective that is started twice.
"""

import sys
from functools import partial

import numpy as np
from mpi4py import MPI

from topompi.dispatch.state import State
from topompi.execution import running as planned
from topompi.execution.specs import CALLS
from topompi.schedules import ALGORITHMS
from topompi.schedules.segments import cuttable
from topompi.topology import TopologyInterface, load

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
ROOTED = ("Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce")
REDUCTIONS = ("Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block")
KINDS = ("d", "i2", "u1", "c16")
COUNTS = (0, 1, 2, 7, 40, 3001)


def placements():
    """Hosts of the ranks over a fabric of three levels with two hosts a leaf and two leaves a pod."""
    yield "block", [rank // 2 % 8 for rank in range(SIZE)]
    yield "cyclic", [rank % 3 * 2 for rank in range(SIZE)]
    yield "uneven", [(0, 2, 2, 2, 5, 5, 7, 7)[rank % 8] for rank in range(SIZE)][::-1]


def contents(kind, rank, items):
    """Small whole numbers that tell ranks and places apart; sums of them are exact in every type."""
    return ((np.arange(items) * 7 + 13 * rank) % 31 + 1).astype(kind)


def code(kind):
    return MPI.Datatype.fromcode(np.dtype(kind).char if kind != "u1" else "B")


TYPES = []
MEMORY = []  # what messages from MPI.BOTTOM point to


def gapped(kind):
    """A datatype of one item followed by a hole of its size."""
    TYPES.append(code(kind).Create_resized(0, 2 * np.dtype(kind).itemsize).Commit())
    return TYPES[-1]


def contiguous(kind, items):
    TYPES.append(code(kind).Create_contiguous(items).Commit())
    return TYPES[-1]


OPEN_MPI = MPI.get_vendor()[0] == "Open MPI"
SPELLINGS = ("plain", "typed", "displaced", "gapped", "contiguous", "bottom")


def spelled(spelling, data, blocks):
    """A message of some blocks that holds ``data``, and the memory where it stands."""
    kind, each = data.dtype.char if data.dtype != np.uint8 else "u1", len(data) // blocks
    if spelling == "plain" and each:
        memory = data.copy()
        return memory, memory
    if spelling == "displaced":
        memory = np.concatenate((np.full(3, 99).astype(kind), data, np.full(2, 98).astype(kind)))
        return [memory, (each, 3), code(kind)], memory
    if spelling == "gapped":
        memory = np.full(2 * len(data), 97).astype(kind)
        memory[::2] = data
        return [memory, each, gapped(kind)], memory
    memory = data.copy()
    if spelling == "contiguous" and each:
        return [memory, 1, contiguous(kind, each)], memory
    if spelling == "bottom" and len(data):
        MEMORY.append(memory)
        TYPES.append(code(kind).Create_hindexed([each], [MPI.Get_address(memory)]))
        TYPES.append(TYPES[-1].Create_resized(0, each * memory.itemsize).Commit())
        return [MPI.BOTTOM, 1, TYPES[-1]], memory
    return [memory, each, code(kind)], memory


def draw_block(method, root, rng, mine):
    """A case of the methods with blocks of one size."""
    kind, count, in_place = rng.choice(KINDS), int(rng.choice(COUNTS)), rng.random() < 0.3
    sending, receiving = mine.choice(SPELLINGS, 2)
    rooted, at_root = method in ROOTED, root == RANK
    if method == "Bcast":
        spec, memory = spelled(sending, contents(kind, 0 if at_root else 1, count), 1)
        return (spec, root), memory
    many = {"Gather": (1, SIZE), "Scatter": (SIZE, 1), "Allgather": (1, SIZE), "Alltoall": (SIZE, SIZE)}[method]
    send, _ = spelled(sending, contents(kind, RANK, count * many[0]), many[0])
    receive, memory = spelled(receiving, contents(kind, 50 + RANK, count * many[1]), many[1])
    if in_place and method in ("Gather", "Scatter"):
        send, receive = (MPI.IN_PLACE if at_root else send, receive) if method == "Gather" else (send, receive)
        if method == "Scatter" and at_root:
            receive = MPI.IN_PLACE
            send, memory = spelled(sending, contents(kind, RANK, count * many[0]), many[0])
    elif in_place:
        send = MPI.IN_PLACE
    if method == "Gather" and not at_root:
        receive = None
    if method == "Scatter" and not at_root:
        send = None
    return ((send, receive, root) if rooted else (send, receive)), memory


def places(counts, rng):
    """Displacements of blocks in some order, with gaps, and the entries that they span."""
    order, gaps = rng.permutation(len(counts)), rng.integers(0, 3, len(counts))
    if rng.random() < 0.4:
        order, gaps = np.arange(len(counts)), 0 * gaps
    displs = np.zeros(len(counts), dtype=int)
    ends = np.cumsum((counts + gaps)[order])
    displs[order] = ends - counts[order]
    return displs, int(ends[-1])


def vector_message(counts, kind, rank, mine):
    displs, span = places(counts, mine)
    wide = mine.random() < 0.3
    memory = contents(kind, rank, max(1, span) * (2 if wide else 1))
    return [memory, (counts, displs), gapped(kind) if wide else code(kind)], memory


def draw_vector(method, root, rng, mine):
    """A case of the methods with blocks of many sizes."""
    kind = rng.choice(KINDS)
    counts = rng.integers(0, 9, (SIZE, SIZE)) * (rng.random((SIZE, SIZE)) < 0.7)
    in_place = rng.random() < 0.3
    at_root = root == RANK
    if method == "Alltoallv":
        send, _ = vector_message(counts[RANK], kind, RANK, mine)
        receive, memory = vector_message(counts[:, RANK], kind, 50, mine)
        return (send, receive), memory
    counts = counts[0]
    spelling = mine.choice(SPELLINGS)
    if method == "Allgatherv" and OPEN_MPI and spelling in ("contiguous", "bottom"):
        # Open MPI takes the size of this rank's datatype for all ranks' to choose its algorithm: ranks whose datatypes
        # have other sizes choose another, and all wait.
        spelling = "plain"
    own, own_memory = spelled(spelling, contents(kind, RANK, counts[RANK]), 1)
    whole, memory = vector_message(counts, kind, 20 + RANK, mine)
    if method == "Allgatherv":
        return (MPI.IN_PLACE if in_place else own, whole), memory
    if method == "Gatherv":
        if not at_root:
            return (own, None, root), memory
        return (MPI.IN_PLACE if in_place else own, whole, root), memory
    if not at_root:
        return (None, own, root), own_memory
    if in_place:
        return (whole, MPI.IN_PLACE, root), memory
    return (whole, own, root), own_memory


def draw_typed(method, root, rng, mine):
    """A case of Alltoallw: rows of a matrix to columns of another."""
    rows = int(rng.integers(1, 4))
    send, memory = contents("d", RANK, rows * SIZE), contents("d", 40, rows * SIZE)
    empty = rng.random((SIZE, SIZE)) < 0.2
    column = MPI.DOUBLE.Create_vector(rows, 1, SIZE).Commit()
    TYPES.append(column)
    sent = [send, (np.where(empty[RANK], 0, rows), 8 * rows * np.arange(SIZE)), [MPI.DOUBLE] * SIZE]
    received = [memory, (np.where(empty[:, RANK], 0, 1), 8 * np.arange(SIZE)), [column] * SIZE]
    return (sent, received), memory


def multiply(low, high, datatype):
    """Products of 2 x 2 matrices modulo 101: associative, and not commutative."""
    a = np.frombuffer(low, dtype="i8").reshape(-1, 2, 2)
    b = np.frombuffer(high, dtype="i8").reshape(-1, 2, 2)
    b[:] = a @ b % 101


def largest(low, high, datatype):
    a, b = np.frombuffer(low, dtype="i8"), np.frombuffer(high, dtype="i8")
    np.maximum(a, b, out=b)


MATRICES, LARGEST = MPI.Op.Create(multiply, commute=False), MPI.Op.Create(largest, commute=True)
MATRIX = MPI.INT64_T.Create_contiguous(4).Commit()
OPERATIONS = ("sum", "max", "own", "minloc", "matrices")


def operand(operation, rank, count):
    """The memory, datatype and operation of ``count`` entries."""
    if operation == "minloc":
        memory = np.zeros(count, dtype=np.dtype([("value", "f8"), ("place", "i4")], align=True))
        memory["value"], memory["place"] = contents("d", rank, count), rank
        return memory.view(np.uint8), MPI.DOUBLE_INT, MPI.MINLOC
    if operation == "matrices":
        return contents("i8", rank, 4 * count), MATRIX, MATRICES
    kind = {"sum": "d", "max": "i2", "own": "i8"}[operation]
    op = {"sum": MPI.SUM, "max": MPI.MAX, "own": LARGEST}[operation]
    return contents(kind, rank, count), code(kind), op


def draw_reduction(method, root, rng, mine, operation):
    count, in_place, at_root = int(rng.choice(COUNTS)), rng.random() < 0.3, root == RANK
    if method in ("Reduce", "Allreduce"):
        send, kind, op = operand(operation, RANK, count)
        memory, _, _ = operand(operation, RANK if in_place else 70, count)
        sent, received = [send, count, kind], [memory, count, kind]
        if in_place and (at_root or method == "Allreduce"):
            sent = MPI.IN_PLACE
        if method == "Allreduce":
            return (sent, received, op), memory
        return (sent, received if at_root else None, op, root), memory
    counts = np.full(SIZE, count) if method.endswith("block") else rng.integers(0, 9, SIZE)
    total, own = int(counts.sum()), int(counts[RANK])
    send, kind, op = operand(operation, RANK, total)
    memory, _, _ = operand(operation, RANK if in_place else 70, total if in_place else own)
    more = () if method.endswith("block") else (counts.tolist() if in_place or rng.random() < 0.5 else None,)
    if not in_place:
        return ([send, total // (SIZE if not more else 1), kind], [memory, own, kind], *more, op), memory
    # What is behind a rank's own share is anybody's.
    share = len(memory) // max(total, 1) * own
    return (MPI.IN_PLACE, [memory, count if not more else total, kind], *more, op), memory, slice(share)


METHODS = {name: spec.collective for name, spec in CALLS.items() if spec.collective in ALGORITHMS}


def compare(comm, state, method, algorithm, make, seeds):
    """Run one case natively and as a plan; what differs, by name."""
    results = {}
    native = None
    for way in ("native", "first", "again", "persistent"):
        arguments, memory, *shown = make(np.random.default_rng(seeds), np.random.default_rng([*seeds, RANK]))
        if way == "native":
            getattr(comm, method)(*arguments)
            native = memory[shown[0] if shown else ...].tobytes()
            continue
        if way == "persistent":
            request = planned.prepare(state.executor, method, algorithm, arguments)
            before = memory.copy()
            for _ in range(2):
                memory[:] = before
                request.Start()
                request.Wait()
            request.Free()
        else:
            planned.run(state.executor, method, algorithm, arguments)
        results[way] = memory[shown[0] if shown else ...].tobytes() == native
    MEMORY.clear()
    while TYPES:
        TYPES.pop().Free()
    return [way for way, same in results.items() if not same]


def draws(method, algorithm, root):
    """A function for each kind of case of a method."""
    if method in REDUCTIONS:
        commuting = [name for name in OPERATIONS if name != "matrices"]
        allowed = OPERATIONS if planned.can_run(method, algorithm, commutative=False) else commuting
        return [partial(draw_reduction, method, root, operation=name) for name in allowed]
    if method == "Alltoallw":
        return [partial(draw_typed, method, root)]
    if method in ("Allgatherv", "Gatherv", "Scatterv", "Alltoallv"):
        return [partial(draw_vector, method, root)]
    return [partial(draw_block, method, root)]


def main():
    seed, share = int(sys.argv[1]), float(sys.argv[2])
    chosen = np.random.default_rng([seed, SIZE])
    fabric = load("xgft:2,2,2;1,1,1")
    failures, cases = [], 0
    for placement, hosts in placements():
        names = [fabric.fabric.hosts[host] for host in hosts]
        comm = WORLD.Dup()
        state = State(WORLD.Dup(), TopologyInterface.place(names, fabric.routes, virtual=True))
        for method, collective in METHODS.items():
            cut = [f"{name}/{size}" for name in cuttable(collective) for size in (3, 16)]
            for algorithm in [*ALGORITHMS[collective], *cut, "levels"]:
                if not planned.can_run(method, algorithm):
                    continue
                for root in range(SIZE) if method in ROOTED else [0]:
                    for kind, draw in enumerate(draws(method, algorithm, root)):
                        if chosen.random() >= share:
                            continue
                        cases += 1
                        wrong = compare(comm, state, method, algorithm, draw, [seed, root, kind, cases])
                        if wrong:
                            failures.append(f"rank {RANK}: {placement}: {method} {algorithm} from {root}, {wrong}")
        state.comm.Barrier()
        state.free()
        comm.Free()
    everyone = WORLD.gather(failures)
    if RANK == 0:
        found = [failure for of_rank in everyone for failure in of_rank]
        print("\n".join(found[:20]))
        print(f"{cases} cases on {SIZE} ranks, {len(found)} failures", flush=True)
    sys.exit(WORLD.bcast(1 if RANK == 0 and any(everyone) else 0 if RANK == 0 else None))


if __name__ == "__main__":
    main()
