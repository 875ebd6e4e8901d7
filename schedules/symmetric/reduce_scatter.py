"""Reduce-scatters: on a ring in depth-first order, by recursive halving with neighbours first, and over leaders."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import Cube, checked_order, halving, moves, ring, runs, starts
from ..phases import GridPhase, Phases, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import local_moves, shares, transfers

__all__ = ["reduce_scatter_halving", "reduce_scatter_ring"]

Integers = NDArray[np.int64]


def reduce_scatter_ring(
    size: int, *, order: ArrayLike | None = None, rings: int = 1, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter on a ring: each rank adds its data to the received part and sends it on.

    Chan et al. 2007, the bucket algorithm. Messages: p (p - 1), one in and one out per rank and step. Bytes: (1 - 1/p)
    of the vector from each rank, the least possible; in depth-first order of the cluster tree the same amount enters
    and leaves each cluster. It is fast for long vectors. It requires a commutative operation, because the sum of each
    part begins at another rank of the ring.

    :param size: number of ranks, p.
    :param order: ranks along the ring, shape (p,), by default ascending; ``trees.depth_first`` gives the tree's order.
    :param rings: 1, or 2 for hosts that can fill two links at the same time: half of each part runs the other way.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    ranks, share, buffer = checked_order(size, order), shares(size, blocks, counts), np.full(size, SCRATCH)
    begin, cuts = starts(share)[:-1], pairwise(share * np.arange(rings + 1)[:, None] // rings)
    ways = zip((ranks, ranks[::-1])[:rings], cuts, strict=True)
    phases = sequence(
        local_moves(0, ranks, (INPUT, 0), (SCRATCH, 0), int(share.sum())),
        tuple((0, ring(way, (begin + low)[way], (high - low)[way], buffer, REDUCE)) for way, (low, high) in ways),
        local_moves(0, ranks, (SCRATCH, begin[ranks]), (OUTPUT, 0), share[ranks]),
    )
    return _schedule(size, "ring", phases, blocks, counts)


def reduce_scatter_halving(
    size: int,
    *,
    order: ArrayLike | None = None,
    near_first: bool = True,
    blocks: int = 1,
    counts: ArrayLike | None = None,
) -> Schedule:
    """A reduce-scatter in which neighbours exchange halves of the vector, then ranks twice as far quarters, etc.

    The (mirrored) order of Iannello 1997 and Träff 2005: each vector is first brought into bit-reversed order, so that
    the data that neighbours exchange are consecutive. If p is no power of two, the surplus ranks beyond the largest
    power of two below p each send their vector to a neighbour and receive their part from it. Messages: p log2 p, in
    log2 p steps; up to two steps more if p is no power of two. Bytes: (1 - 1/p) of the vector from each rank, as on a
    ring, and a whole vector from each surplus rank. It is fast for short and medium vectors.

    It keeps rank order if ``order`` ascends and neighbours exchange first.

    :param size: number of ranks, p.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending.
    :param near_first: whether neighbours exchange first; else they exchange last (Thakur, Rabenseifner, Gropp 2005,
        section 4.2.2), which requires a commutative operation.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    share = shares(size, blocks, counts)
    cube = Cube.over(checked_order(size, order), reverse=near_first)
    layout, heads, bounds, buffer = cube.layout, cube.heads, cube.bounds(share), np.full(size, SCRATCH)
    folded = np.flatnonzero(cube.surplus >= 0)
    behind, surplus = bounds[folded] + share[heads[folded]], cube.surplus[folded]
    phases = sequence(
        _to_layout(np.arange(size), INPUT, layout, share),
        cube.inward(buffer, 0, int(share.sum()), REDUCE),
        halving(heads, bounds, buffer),
        np.concatenate(
            (
                local_moves(0, heads, (SCRATCH, bounds[:-1]), (OUTPUT, 0), share[heads]),
                transfers(0, heads[folded], surplus, (SCRATCH, behind), (OUTPUT, 0), share[surplus]),
            )
        ),
    )
    return _schedule(size, "recursive halving", phases, blocks, counts)


def _to_layout(ranks: Integers, buffer: int, layout: Integers, share: Integers, base: int = 0) -> GridPhase:
    """A phase in which each given rank moves a whole vector from rank order to the order of a layout in its scratch."""
    here, there, count = runs(layout, share)
    return moves(ranks, buffer, base + there, SCRATCH, here, count)


def _schedule(size: int, algorithm: str, phases: Phases, blocks: int, counts: ArrayLike | None) -> Schedule:
    given = None if counts is None else np.asarray(counts, dtype=np.int64)
    return Schedule.from_phases("reduce_scatter", size, algorithm, phases, blocks=blocks, counts=given)
