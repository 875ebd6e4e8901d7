"""Misuse made of parts: each collective operation, with each defect, on all ranks or on some.

A case is a name, ``METHOD, DEFECT of SIDE, WHO``, from which every rank makes its call.
"""

import random
from itertools import product

import numpy as np
from mpi4py import MPI

EACH = 2  # elements of a block
# Method -> what its two messages hold ("own" block, blocks of "all" ranks, "counts" of all), its root and operation.
METHODS = {
    "Bcast": ("own", "", True, False),
    "Gather": ("own", "all", True, False),
    "Gatherv": ("own", "counts", True, False),
    "Scatter": ("all", "own", True, False),
    "Scatterv": ("counts", "own", True, False),
    "Allgather": ("own", "all", False, False),
    "Allgatherv": ("own", "counts", False, False),
    "Alltoall": ("all", "all", False, False),
    "Alltoallv": ("counts", "counts", False, False),
    "Reduce": ("own", "own", True, True),
    "Allreduce": ("own", "own", False, True),
    "Reduce_scatter_block": ("all", "own", False, True),
    "Scan": ("own", "own", False, True),
    "Exscan": ("own", "own", False, True),
}
WHO = {
    "all": lambda rank, size: True,
    "root": lambda rank, size: rank == 0,
    "last": lambda rank, size: rank == size - 1,
}
UNCOMMITTED = MPI.DOUBLE.Create_contiguous(1)


def freed(count):
    kind = MPI.DOUBLE.Create_contiguous(1).Commit()
    kind.Free()
    return [np.zeros(8), count, kind]


def read_only(length):
    array = np.zeros(length)
    array.flags.writeable = False
    return array


# Defect -> the message, from its memory's length and its count or counts.
MESSAGES = {
    "nothing": lambda length, count: None,
    "a number": lambda length, count: 3,
    "a string": lambda length, count: "abcd",
    "in place": lambda length, count: MPI.IN_PLACE,
    "read-only": lambda length, count: read_only(length),
    "gaps": lambda length, count: np.zeros(2 * length)[::2],
    "big-endian": lambda length, count: np.zeros(length, ">f8"),
    "objects": lambda length, count: np.array([object()] * length),
    "no type": lambda length, count: [np.zeros(length), count, MPI.DATATYPE_NULL],
    "uncommitted": lambda length, count: [np.zeros(length), count, UNCOMMITTED],
    "freed type": lambda length, count: freed(count),
    "unknown code": lambda length, count: [np.zeros(length), count, "no such type"],
    "a fraction": lambda length, count: [np.zeros(length), 1.5, MPI.DOUBLE],
    "negative": lambda length, count: [np.zeros(length), -1, MPI.DOUBLE],
    "many words": lambda length, count: [np.zeros(length), 1, 0, MPI.DOUBLE, 3],
}
OPERATIONS = {"BAND": MPI.BAND, "MAXLOC": MPI.MAXLOC, "null": MPI.OP_NULL, "None": None, "a function": max}
ROOTS = {"beyond": 1 << 20, "negative": -5, "None": None, "a fraction": 0.5}


def names():
    """All cases."""
    found = []
    for method, (_, second, rooted, reduces) in METHODS.items():
        sides = ["first", "second"] if second else ["first"]
        defects = [f"{defect} of {side}" for defect, side in product(MESSAGES, sides)]
        defects += [f"{defect} of operation" for defect in OPERATIONS if reduces]
        defects += [f"{defect} of root" for defect in ROOTS if rooted]
        found += [f"{method}, {defect}, {who}" for defect, who in product(defects, WHO)]
    return found


def some(number, seed, who=tuple(WHO)):
    """So many cases, drawn anew for each seed, with every operation and every defect among the first."""
    left = [name for name in names() if name.rpartition(", ")[2] in who]
    random.Random(seed).shuffle(left)
    seen, first, others = set(), [], []
    for name in left:
        parts = set(name.rpartition(", ")[0].split(", "))
        (others if parts <= seen else first).append(name)
        seen |= parts
    return (first + others)[:number]


def call_of(name, rank, size):
    """What a rank calls, a function of the communicator."""
    method, defect, who = name.split(", ")
    first, second, rooted, reduces = METHODS[method]
    kind, _, side = defect.partition(" of ")
    bad = WHO[who](rank, size)
    given = [
        _message(holds, size, kind if bad and side == place else "")
        for holds, place in ((first, "first"), (second, "second"))
        if holds
    ]
    if reduces:
        given.append(OPERATIONS[kind] if bad and side == "operation" else MPI.SUM)
    if rooted:
        given.append(ROOTS[kind] if bad and side == "root" else 0)
    return lambda comm: getattr(comm, method)(*given)


def _message(holds, size, defect):
    length = EACH if holds == "own" else EACH * size
    count = [EACH] * size if holds == "counts" else EACH  # that of one block
    if defect:
        return MESSAGES[defect](length, count)
    return [np.zeros(length), count, MPI.DOUBLE]
