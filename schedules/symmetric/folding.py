"""Reductions of MPI libraries by halving and doubling in rank order, for numbers of ranks, p, that are no power of two.

If n is the largest power of two below p, the first 2 (p - n) ranks form pairs, of which one rank takes part in the
halving or doubling, and the other is a surplus rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import Cube, checked_root, combine, doubling, halving, starts
from ..phases import Phases, sequence
from ..rooted.rankorder import handed_on
from ..rooted.reduction import gathered
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares, transfers

__all__ = [
    "allreduce_doubling_even",
    "allreduce_halves",
    "reduce_halves",
    "reduce_scatter_butterfly",
    "reduce_scatter_far",
    "reduce_scatter_outside",
]

Integers = NDArray[np.int64]


def allreduce_doubling_even(size: int, *, blocks: int = 1) -> Schedule:
    """An allreduce in which pairs exchange and add whole vectors, neighbours first, for any number of ranks.

    It differs from `allreduce.allreduce_doubling` if p is no power of two: if n is the largest power of two up to p,
    the first 2 (p - n) ranks form pairs, and the even rank of each pair, instead of the odd one, takes no part in the
    exchange. It keeps rank order.

    :param size: number of ranks, p.
    :param blocks: number of blocks of the vector.
    """
    cube, buffer = _odd_heads(size), np.full(size, OUTPUT)
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), blocks),
        cube.inward(buffer, 0, blocks, REDUCE),
        combine(cube.heads, buffer, blocks),
        cube.outward(buffer, 0, blocks),
    )
    return Schedule.from_phases("allreduce", size, "recursive doubling, even aside", phases, blocks=blocks)


def allreduce_halves(size: int, *, blocks: int | None = None) -> Schedule:
    """Rabenseifner's allreduce, in which the two ranks of a pair first add one half of the vector each.

    Rabenseifner 2004, as `allreduce.allreduce_halving`. If n is the largest power of two up to p, the first 2 (p - n)
    ranks form pairs, and the odd rank of a pair takes no part between the first addition and the result, which it
    receives from the even one. Messages: 2 n log2 n, and 4 per pair.

    :param size: number of ranks, p.
    :param blocks: number of blocks of the vector, by default n.
    """
    cube, buffer = Cube.over(np.arange(size), reverse=True), np.full(size, OUTPUT)
    total = len(cube.heads) if blocks is None else blocks
    bounds = np.arange(len(cube.heads) + 1) * total // len(cube.heads)
    phases = sequence(
        _by_halves(cube, buffer, total),
        halving(cube.heads, bounds, buffer),
        doubling(cube.heads, bounds, buffer),
        cube.outward(buffer, 0, total),
    )
    return Schedule.from_phases("allreduce", size, "halving and doubling, folded by halves", phases, blocks=total)


def reduce_halves(size: int, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """Rabenseifner's reduction, in which the two ranks of a pair first add one half of the vector each.

    As `reduction.reduce_halving`. If n is the largest power of two up to p, the first 2 (p - n) ranks form pairs, and
    the odd rank of a pair takes no part after the first addition, except that an odd root takes the place of rank 0 in
    the gather. Messages: n log2 n + n - 1, and 3 per pair.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of the vector, by default n.
    """
    cube = Cube.over(np.arange(size), reverse=True)
    buffer = np.where(np.arange(size) == checked_root(size, root), OUTPUT, SCRATCH)
    total = len(cube.heads) if blocks is None else blocks
    bounds = np.arange(len(cube.heads) + 1) * total // len(cube.heads)
    took = root if root in cube.surplus else 0  # rank that gathers in the place of rank 0
    phases = sequence(
        _by_halves(cube, buffer, total),
        halving(cube.heads, bounds, buffer),
        transfers(0, 0, took, (buffer[0], 0), (buffer[took], 0), bounds[1] * (took != 0)),
        gathered(np.append(took, cube.heads[1:]), bounds, buffer, root),
    )
    return Schedule.from_phases("reduce", size, "halving, folded by halves", phases, root=root, blocks=total)


def _by_halves(cube: Cube, buffer: Integers, total: int) -> Phases:
    """Phases in which every rank copies its vector, and the head of each pair ends with the sum of both vectors."""
    ranks, half, folded = np.arange(len(buffer)), total // 2, np.flatnonzero(cube.surplus >= 0)
    even, odd = cube.heads[folded], cube.surplus[folded]
    return sequence(
        local_moves(0, ranks, (INPUT, 0), (buffer, 0), total),
        np.concatenate(
            (
                transfers(0, odd, even, (buffer[odd], 0), (buffer[even], 0), half, REDUCE),
                transfers(0, even, odd, (buffer[even], half), (buffer[odd], half), total - half, REDUCE),
            )
        ),
        transfers(0, odd, even, (buffer[odd], half), (buffer[even], half), total - half),
    )


def reduce_scatter_far(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """A reduce-scatter by recursive halving in which far ranks exchange first.

    Thakur, Rabenseifner, Gropp 2005, section 4.4. If n is the largest power of two up to p, the first 2 (p - n) ranks
    form pairs, and the even rank of each pair takes no part in the exchange. Messages: n log2 n, and 2 per pair. It
    requires a commutative operation.

    :param size: number of ranks, p.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    share, cube = shares(size, blocks, counts), _odd_heads(size)
    begin, buffer = starts(share), np.full(size, SCRATCH)
    phases = sequence(
        _folded(cube, int(begin[-1])),
        halving(cube.heads, _bounds(cube, begin), buffer),
        _parts(cube.heads, cube, begin, share),
    )
    return _schedule(size, "recursive halving, far first", phases, blocks, counts)


def reduce_scatter_butterfly(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """A reduce-scatter by recursive halving in which neighbours exchange first, and parts then go to their owners.

    Träff 2005, "An improved algorithm for (non-commutative) reduce-scatter with an application", without the move into
    bit-reversed order that would make the last exchange unnecessary. If n is the largest power of two up to p, the
    first 2 (p - n) ranks form pairs, and the even rank of each pair takes no part in the halving. It keeps rank order.
    Messages: n log2 n, up to n at the end, and 2 per pair.

    :param size: number of ranks, p.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    share, cube = shares(size, blocks, counts), _odd_heads(size)
    begin, buffer = starts(share), np.full(size, SCRATCH)
    dimensions = len(cube.heads).bit_length() - 1
    bits = np.arange(len(cube.heads))[:, None] >> np.arange(dimensions) & 1
    mirrored = cube.heads[bits @ (1 << np.arange(dimensions)[::-1])]
    phases = sequence(
        _folded(cube, int(begin[-1])),
        halving(mirrored, _bounds(cube, begin), buffer),
        _parts(mirrored, cube, begin, share),
    )
    return _schedule(size, "butterfly", phases, blocks, counts)


def reduce_scatter_outside(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """A reduce-scatter by recursive doubling: groups of ranks exchange their sums of all parts but the senders' own.

    Thakur, Rabenseifner, Gropp 2005, section 4.4, for operations that do not commute: it keeps rank order. If p is no
    power of two, ranks without a partner receive the missing sums from ranks of their own group. Messages: about p
    log2 p. Bytes: about log2 p - 1 vectors from each rank. Outgoing parts are packed to one message.

    :param size: number of ranks, p.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    share, ranks = shares(size, blocks, counts), np.arange(size)
    begin = starts(share)
    tables = [local_moves(0, ranks, (INPUT, 0), (SCRATCH, 0), int(begin[-1]))]
    for step in range((size - 1).bit_length()):
        tables += _outside(size, 1 << step, begin)
    tables.append(local_moves(0, ranks, (SCRATCH, begin[:-1]), (OUTPUT, 0), share))
    return _schedule(size, "recursive doubling", sequence(*tables), blocks, counts)


def _outside(size: int, mask: int, begin: Integers) -> list[Rows]:
    """The rows that pack, exchange, forward and add the parts outside the sender's sub-tree of ``mask`` ranks.

    The scratch buffer contains the working vector, then the packed outgoing parts, then the incoming parts.

    :param size: number of ranks, p.
    :param mask: number of ranks of a sub-tree, a power of two.
    :param begin: first block of each rank's part, and the end, shape (p + 1,).
    """
    total = int(begin[-1])
    ranks = np.arange(size)
    here = ranks[ranks ^ mask < size]
    low, high = _range(here, mask, size)
    first, second = begin[low], total - begin[high]
    tables = [
        np.concatenate(
            (
                local_moves(0, here, (SCRATCH, 0), (SCRATCH, total), first),
                local_moves(0, here, (SCRATCH, begin[high]), (SCRATCH, total + first), second),
            )
        ),
        transfers(0, here, here ^ mask, (SCRATCH, total), (SCRATCH, 2 * total), first + second),
    ]
    got = here
    for source, target, start in handed_on(size, mask):
        count = total - (begin[-1] - begin[start])
        tables.append(transfers(0, source, target, (SCRATCH, 2 * total), (SCRATCH, 2 * total), count))
        got = np.append(got, target)
    low, high = _range(got ^ mask, mask, size)
    first, second = begin[low], total - begin[high]
    adds = np.concatenate(
        (
            local_moves(0, got, (SCRATCH, 2 * total), (SCRATCH, 0), first),
            local_moves(0, got, (SCRATCH, 2 * total + first), (SCRATCH, begin[high]), second),
        )
    )
    adds[:, 8] = REDUCE
    return [*tables, adds]


def _range(rank: Integers, mask: int, size: int) -> tuple[Integers, Integers]:
    """The first rank of the sub-tree of ``mask`` ranks that contains a rank, and the rank behind its last."""
    low = rank // mask * mask
    return low, np.minimum(low + mask, size)


def _odd_heads(size: int) -> Cube:
    """A cube in which the second rank of each pair is the head; corners are in rank order."""
    cube = Cube.over(np.arange(size))
    has = cube.surplus >= 0
    return Cube(np.where(has, cube.surplus, cube.heads), np.where(has, cube.heads, -1))


def _folded(cube: Cube, total: int) -> Phases:
    """Phases in which every rank copies its vector to its scratch, and surplus ranks send theirs to their heads."""
    size = len(cube.layout)
    own = local_moves(0, np.arange(size), (INPUT, 0), (SCRATCH, 0), total)
    return sequence(own, cube.inward(np.full(size, SCRATCH), 0, total, REDUCE))


def _bounds(cube: Cube, begin: Integers) -> Integers:
    """The first block of the parts of each corner's ranks, and the end, shape (n + 1,)."""
    first = np.where(cube.surplus >= 0, cube.surplus, cube.heads)
    return np.append(begin[first], begin[-1])


def _parts(holder: Integers, cube: Cube, begin: Integers, share: Integers) -> Rows:
    """The rows by which the holder of each corner's parts sends them to the corner's ranks."""
    folded = np.flatnonzero(cube.surplus >= 0)
    source = np.concatenate((holder, holder[folded]))
    target = np.concatenate((cube.heads, cube.surplus[folded]))
    return transfers(0, source, target, (SCRATCH, begin[target]), (OUTPUT, 0), share[target])


def _schedule(size: int, algorithm: str, phases: Phases, blocks: int, counts: ArrayLike | None) -> Schedule:
    given = None if counts is None else np.asarray(counts, dtype=np.int64)
    return Schedule.from_phases("reduce_scatter", size, algorithm, phases, blocks=blocks, counts=given)
