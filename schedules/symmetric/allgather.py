"""Allgathers: on a ring in depth-first order, by recursive doubling with neighbours last, and over leaders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import Cube, checked_order, clustered, doubling, moves, ring, runs, starts, working
from ..phases import GridPhase, Phases, sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import local_moves, shares, transfers
from ..trees import leaders

__all__ = ["allgather_doubling", "allgather_leaders", "allgather_ring"]

Integers = NDArray[np.int64]


def allgather_ring(
    size: int,
    *,
    order: ArrayLike | None = None,
    pieces: int = 1,
    rings: int = 1,
    blocks: int = 1,
    counts: ArrayLike | None = None,
) -> Schedule:
    """An allgather on a ring (Chan et al. 2007, bucket algorithm): each rank sends on the share received last.

    A share is the blocks of one rank. Messages: p (p - 1), one in and one out per rank and step. Bytes: each share is
    sent p - 1 times, the least possible. In depth-first order of the cluster tree, only one message enters and one
    leaves each cluster in a step, for any number of ranks in it. It is fast for long vectors; its p - 1 start-ups are
    slow for short ones.

    :param size: number of ranks, p.
    :param order: ranks along the ring, shape (p,), by default ascending; ``trees.depth_first`` gives the tree's order.
    :param pieces: number of messages into which each share is divided; they go in the same step.
    :param rings: 1, or 2 for hosts that can fill two links at the same time: every other piece runs the other way.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    ranks, share, buffer = checked_order(size, order), shares(size, blocks, counts), np.full(size, OUTPUT)
    begin, pieces = starts(share)[:-1], pieces * rings
    cuts = itertools.pairwise(share * np.arange(pieces + 1)[:, None] // pieces)
    own = local_moves(0, ranks, (INPUT, 0), (OUTPUT, begin[ranks]), share[ranks])
    ways = zip((ranks, ranks[::-1])[:rings] * (pieces // rings), cuts, strict=True)
    every = (ring(way, (begin + low)[way], (high - low)[way], buffer) for way, (low, high) in ways)
    phases = sequence(own, tuple((0, one) for one in every))
    return _schedule(size, "ring", phases, blocks, counts)


def allgather_doubling(
    size: int,
    *,
    order: ArrayLike | None = None,
    near_last: bool = True,
    blocks: int = 1,
    counts: ArrayLike | None = None,
) -> Schedule:
    """An allgather by recursive doubling: pairs of ranks exchange all shares that they have, which double in each step.

    Thakur, Rabenseifner, Gropp 2005, section 4.1, with two changes. Distances decrease, so that the largest messages
    stay between neighbours in ``order``; shares then arrive in bit-reversed order and are moved to their places at the
    end. And if p is no power of two, the p - n surplus ranks beyond the largest power of two, n, each send their share
    to a neighbour, and receive all shares from it at the end.

    Messages: p log2 p, in log2 p steps; up to two steps more if p is no power of two. Bytes: each share is sent p - 1
    times, as on a ring, and all shares once more per surplus rank. Unlike on a ring, all pairs across a cluster's
    border exchange at once. It is fast for short vectors.

    :param size: number of ranks, p.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending;
        ``trees.depth_first`` gives the tree's order.
    :param near_last: whether neighbours exchange last; else they exchange first, which saves the moves at the end.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    share = shares(size, blocks, counts)
    cube = Cube.over(checked_order(size, order), reverse=near_last)
    layout, buffer = cube.layout, working(cube.layout)
    phases = sequence(
        local_moves(0, layout, (INPUT, 0), (buffer[layout], starts(share[layout])[:-1]), share[layout]),
        _double(cube, share, buffer),
        _to_places(cube.heads, layout, share),
        cube.outward(np.full(size, OUTPUT), 0, int(share.sum())),
    )
    return _schedule(size, "recursive doubling", phases, blocks, counts)


def allgather_leaders(
    size: int,
    clusters: Sequence[ArrayLike] = (),
    *,
    exchange: str = "ring",
    radix: int = 2,
    blocks: int = 1,
    counts: ArrayLike | None = None,
) -> Schedule:
    """An allgather by a gather in clusters, an exchange among the outermost leaders, and a broadcast inside clusters.

    After Subramoni 2013, section 3, with k-nomial trees among the leaders of each level. Messages: 2 (p - c) inside the
    c outermost clusters, and c (c - 1) for ``ring`` or about c log2 c for ``doubling`` between them. Bytes: each share
    enters an outermost cluster once, and all shares are sent once to each rank inside. (With ``doubling``, if c is no
    power of two, the leaders beyond the largest power of two receive all shares at the end.) It is fast for short
    vectors with many ranks in a cluster, for which recursive doubling would send the same share over a border many
    times. Long vectors are slow, because all data pass through the leaders.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers; if empty, all ranks take
        part in the exchange.
    :param exchange: algorithm among the outermost leaders, ``ring`` or ``doubling``.
    :param radix: k of the k-nomial trees; a rank receives from, or sends to, up to k - 1 others at once.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    if exchange not in ("ring", "doubling"):
        raise ValueError(f"expecting exchange 'ring' or 'doubling', got {exchange!r}")
    share, tree = shares(size, blocks, counts), leaders(clusters, size, radix=radix)
    layout, top, edges = clustered(tree, clusters)
    at, buffer, above, total = np.empty_like(layout), working(layout), tree.parent[edges], int(share.sum())
    at[layout] = starts(share[layout])[:-1]
    weight = np.zeros_like(share)
    weight[top] = np.diff(np.append(at[top], total))
    below = tree.below(share)[edges]
    cube = Cube.over(top) if exchange == "doubling" else Cube(top, np.full(len(top), -1))
    phases = sequence(
        local_moves(0, layout, (INPUT, 0), (buffer[layout], at[layout]), share[layout]),
        transfers(tree.up[edges], edges, above, (buffer[edges], at[edges]), (buffer[above], at[edges]), below),
        _double(cube, weight, buffer) if exchange == "doubling" else ring(top, at[top], weight[top], buffer),
        _to_places(cube.heads, layout, share),
        cube.outward(np.full(size, OUTPUT), 0, total),
        transfers(tree.down[edges], above, edges, (OUTPUT, 0), (OUTPUT, 0), total),
    )
    return _schedule(size, f"leaders, {exchange}", phases, blocks, counts)


def _double(cube: Cube, weight: Integers, buffer: Integers) -> Phases:
    """The phases of an allgather by recursive doubling among the heads of a cube, in the order of the cube's layout.

    :param cube: hypercube over the ranks.
    :param weight: number of blocks of each rank's share, shape (p,).
    :param buffer: working buffer of each rank, shape (p,).
    """
    bounds = cube.bounds(weight)
    into = cube.inward(buffer, bounds[:-1] + weight[cube.heads], weight[cube.surplus])
    return sequence(into, doubling(cube.heads, bounds, buffer))


def _to_places(ranks: Integers, layout: Integers, share: Integers) -> GridPhase | Phases:
    """A phase in which each given rank moves all shares from a layout to its output in rank order, if necessary."""
    if (working(layout) == OUTPUT).all():
        return ()
    here, there, count = runs(layout, share)
    return moves(ranks, SCRATCH, here, OUTPUT, there, count)


def _schedule(size: int, algorithm: str, phases: Phases, blocks: int, counts: ArrayLike | None) -> Schedule:
    given = None if counts is None else np.asarray(counts, dtype=np.int64)
    return Schedule.from_phases("allgather", size, algorithm, phases, blocks=blocks, counts=given)
