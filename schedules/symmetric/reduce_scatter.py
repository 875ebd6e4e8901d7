"""Reduce-scatter: ring in tree order, recursive halving with the near dimensions first, leaders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import Cube, checked_order, clustered, halving, moves, ring, runs, starts
from ..phases import Grid, Phases, sequence
from ..rooted.reduction import climb
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import local_moves, shares, transfers
from ..trees import leaders

__all__ = ["reduce_scatter_halving", "reduce_scatter_leaders", "reduce_scatter_ring"]

Integers = NDArray[np.int64]


def reduce_scatter_ring(
    size: int, *, order: ArrayLike | None = None, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """Each rank adds its part to what it received and hands it on (Chan et al. 2007, the bucket algorithm).

    Messages: p (p - 1), one in and one out for each rank and step. Bytes: (1 - 1/p) of the vector out of each rank, the
    least there is; in depth-first order so much over each border of the tree, each way. It wins for long vectors. For
    commutative operations only: each part is summed from where it begins on, round the ring.

    :param size: number of ranks, p.
    :param order: ranks along the ring, shape (p,), by default ascending; ``trees.depth_first`` gives the tree's.
    :param blocks: blocks of each rank's part where there are no counts.
    :param counts: blocks of each rank, shape (p,).
    """
    ranks, share = checked_order(size, order), shares(size, blocks, counts)
    begin, buffer = starts(share)[ranks], np.full(size, SCRATCH)
    phases = sequence(
        local_moves(0, ranks, (INPUT, 0), (SCRATCH, 0), int(share.sum())),
        ring(ranks, begin, share[ranks], buffer, REDUCE),
        local_moves(0, ranks, (SCRATCH, begin), (OUTPUT, 0), share[ranks]),
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
    """Neighbours first exchange halves of the vector, then twice as far ones quarters, and so on.

    The order of Iannello 1997 and Träff 2005 (the mirrored one): each vector is first brought into bit-reversed order,
    so that what neighbours exchange is one message. Where p is no power of two, surplus ranks hand their vector to a
    neighbour and get their part from it. Messages: p log2 p, in log2 p steps; up to two steps more where p is no power
    of two. Bytes: as the ring, and a whole vector for each surplus rank. It wins for short and medium vectors.

    Keeps rank order where ``order`` ascends and neighbours exchange first.

    :param size: number of ranks, p.
    :param order: ranks by nearness, shape (p,), by default ascending.
    :param near_first: whether neighbours exchange first; else last (Thakur, Rabenseifner, Gropp 2005, section 4.2.2),
        for operations that commute.
    :param blocks: blocks of each rank's part where there are no counts.
    :param counts: blocks of each rank, shape (p,).
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


def reduce_scatter_leaders(
    size: int,
    clusters: Sequence[ArrayLike] = (),
    *,
    radix: int = 2,
    blocks: int = 1,
    counts: ArrayLike | None = None,
) -> Schedule:
    """Clusters reduce at their leaders, innermost first; the outermost leaders run a ring; parts spread inwards.

    After Subramoni 2013, section 3, with k-nomial trees at each level inside. Messages: 2 (p - c) inside the c
    outermost clusters, and c (c - 1) between them. Bytes: each border of an outermost cluster carries (1 - 1/c) of the
    vector, each way. It wins where few links leave a cluster; inside, the whole vector climbs each edge. For
    commutative operations only.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers; none: all ranks exchange.
    :param radix: k of the trees inside.
    :param blocks: blocks of each rank's part where there are no counts.
    :param counts: blocks of each rank, shape (p,).
    """
    share, tree = shares(size, blocks, counts), leaders(clusters, size, radix=radix)
    layout, top, edges = clustered(tree, clusters)
    total, above = int(share.sum()), tree.parent[edges]
    buffer, at = np.full(size, SCRATCH), np.empty_like(layout)
    at[layout] = starts(share[layout])[:-1]
    weight, below = np.diff(np.append(at[top], total)), tree.below(share)[edges]
    phases = sequence(
        # Vectors in rank order, while they climb, lie behind the one in the order of the layout.
        climb(tree, edges, buffer, total, total),
        _to_layout(top, SCRATCH, layout, share, total),
        ring(top, at[top], weight, buffer, REDUCE),
        transfers(tree.down[edges], above, edges, (SCRATCH, at[edges]), (SCRATCH, at[edges]), below),
        local_moves(0, layout, (SCRATCH, at[layout]), (OUTPUT, 0), share[layout]),
    )
    return _schedule(size, "leaders", phases, blocks, counts)


def _to_layout(ranks: Integers, buffer: int, layout: Integers, share: Integers, base: int = 0) -> Grid:
    """Each of some ranks moves a whole vector in rank order to its scratch, in the order of a layout."""
    here, there, count = runs(layout, share)
    return moves(ranks, buffer, base + there, SCRATCH, here, count)


def _schedule(size: int, algorithm: str, phases: Phases, blocks: int, counts: ArrayLike | None) -> Schedule:
    given = None if counts is None else np.asarray(counts, dtype=np.int64)
    return Schedule.from_phases("reduce_scatter", size, algorithm, phases, blocks=blocks, counts=given)
