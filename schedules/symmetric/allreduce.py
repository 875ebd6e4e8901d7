"""Allreduces: on a ring in depth-first order, by recursive doubling, Rabenseifner's algorithm, and over leaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import Cube, checked_order, clustered, combine, doubling, halving, ring, with_second_heads
from ..phases import Phases, sequence
from ..rooted.inorder import in_order
from ..rooted.reduction import climb
from ..schedule import INPUT, OUTPUT, REDUCE, Schedule
from ..transfers import local_moves, transfers
from ..trees import leaders

__all__ = ["allreduce_doubling", "allreduce_halving", "allreduce_leaders", "allreduce_ring"]

Integers = NDArray[np.int64]


def allreduce_ring(size: int, *, order: ArrayLike | None = None, rings: int = 1, blocks: int | None = None) -> Schedule:
    """An allreduce by a reduce-scatter and an allgather on one ring (Patarasuk and Yuan 2009), or one each way.

    Messages: 2 p (p - 1), one in and one out per rank and step. Bytes: 2 (1 - 1/p) of the vector from each rank, the
    least possible; in depth-first order of the cluster tree the same amount enters and leaves each cluster. It is fast
    for long vectors. It requires a commutative operation, because the sum of each part of the vector begins at another
    rank of the ring.

    :param size: number of ranks, p.
    :param order: ranks along the ring, shape (p,), by default ascending; ``trees.depth_first`` gives the tree's order.
    :param rings: 1, or 2 for hosts that can fill two links at the same time: half of the vector runs the other way.
    :param blocks: number of blocks of the vector, by default one per rank and ring; with fewer, ranks idle.
    """
    if rings not in (1, 2):
        raise ValueError(f"expecting 1 or 2 rings, got {rings}")
    total, ranks = rings * size if blocks is None else blocks, checked_order(size, order)
    return _everywhere(size, "ring", total, _ring(ranks, total) if rings == 1 else _both_ways(ranks, total))


def allreduce_doubling(size: int, *, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """An allreduce in which pairs exchange and add whole vectors, neighbours first.

    Thakur, Rabenseifner, Gropp 2005, section 4.5. If p is no power of two, the surplus ranks beyond the largest power
    of two below p each send their vector to a neighbour and receive the sum from it. Messages: about p log2 p, in log2
    p exchanges, and up to two further steps. Bytes: log2 p vectors from each rank. It is fast for short vectors.

    It keeps rank order if ``order`` ascends.

    :param size: number of ranks, p.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending.
    :param blocks: number of blocks of the vector.
    """
    return _everywhere(size, "recursive doubling", blocks, _doubling(checked_order(size, order), blocks))


def allreduce_halving(size: int, *, order: ArrayLike | None = None, blocks: int | None = None) -> Schedule:
    """An allreduce by recursive halving, then an allgather by recursive doubling (Rabenseifner 2004).

    In the paper the halving begins between far ranks or between near ones; here neighbours in ``order`` exchange
    halves, and the farthest ranks exchange the smallest parts. If p is no power of two, and n is the largest power of
    two below it, p - n surplus ranks send their vector to a neighbour and receive the sum from it. Messages: 2 n log2 n
    among the other n ranks, the corners of a hypercube, and two per surplus rank. Bytes: 2 (1 - 1/n) of the vector from
    each of the n ranks. It is fast for medium vectors, because start-ups are few and, if p is a power of two, bytes are
    the least possible.

    It keeps rank order if ``order`` ascends.

    :param size: number of ranks, p.
    :param order: ranks in an order that keeps near ranks together, shape (p,), by default ascending.
    :param blocks: number of blocks of the vector, by default one per corner of the cube; with fewer, corners idle.
    """
    total = 1 << size.bit_length() - 1 if blocks is None else blocks
    return _everywhere(size, "halving and doubling", total, _halving(checked_order(size, order), total))


def allreduce_leaders(
    size: int,
    clusters: Sequence[ArrayLike] = (),
    *,
    exchange: str = "doubling",
    radix: int = 2,
    ordered: bool = False,
    second_heads: bool = False,
    blocks: int = 1,
) -> Schedule:
    """An allreduce by reductions in clusters, an allreduce among the outermost leaders, and broadcasts inside clusters.

    After Subramoni 2013, section 3, with k-nomial trees among the leaders of each level. Messages: 2 (p - c) of the
    whole vector inside the c outermost clusters, and those of the exchange among their c leaders. It is fast if many
    ranks share few links out of a cluster. It is slow for long vectors, because inside a cluster of m ranks a leader
    receives and sends about log m whole vectors.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers; if empty, all ranks take
        part in the exchange.
    :param exchange: algorithm among the outermost leaders: ``ring``, ``doubling`` or ``halving``.
    :param radix: k of the k-nomial trees; a rank receives from, or sends to, up to k - 1 others at once.
    :param ordered: whether to keep rank order, for operations that do not commute; each cluster must then be a range of
        ranks, and ``exchange`` not ``ring``.
    :param second_heads: whether, if the number of leaders is no power of two and some of them form pairs of which one
        takes part in the exchange, that is the second leader of a pair, as in MPICH; by default it is the first.
    :param blocks: number of blocks of the vector.
    """
    if exchange not in _EXCHANGES:
        raise ValueError(f"expecting exchange {', '.join(map(repr, _EXCHANGES))}, got {exchange!r}")
    if ordered and exchange == "ring":
        raise ValueError("expecting another exchange than 'ring' for an operation that does not commute")
    tree = (in_order if ordered else leaders)(clusters, size, radix=radix)
    _, top, edges = clustered(tree, clusters)
    top = with_second_heads(top) if second_heads else top
    spread = transfers(tree.down[edges], tree.parent[edges], edges, (OUTPUT, 0), (OUTPUT, 0), blocks)
    phases = sequence(climb(tree, edges, np.full(size, OUTPUT), blocks), _EXCHANGES[exchange](top, blocks), spread)
    return Schedule.from_phases("allreduce", size, f"leaders, {exchange}", phases, blocks=blocks)


def _everywhere(size: int, algorithm: str, blocks: int, exchange: Phases) -> Schedule:
    """An allreduce in which every rank copies its input to its output before a given exchange of outputs."""
    phases = sequence(local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), blocks), exchange)
    return Schedule.from_phases("allreduce", size, algorithm, phases, blocks=blocks)


def _outputs(ranks: Integers) -> Integers:
    return np.full(int(ranks.max()) + 1, OUTPUT)


def _ring(ranks: Integers, blocks: int) -> Phases:
    bounds, buffer = np.arange(len(ranks) + 1) * blocks // len(ranks), _outputs(ranks)
    part = bounds[:-1], np.diff(bounds), buffer
    return sequence(ring(ranks, *part, REDUCE), ring(ranks, *part))


def _both_ways(ranks: Integers, blocks: int) -> Phases:
    bounds, buffer = np.arange(2 * len(ranks) + 1) * blocks // (2 * len(ranks)), _outputs(ranks)
    begin, count = bounds[:-1].reshape(2, -1), np.diff(bounds).reshape(2, -1)
    ways = list(zip((ranks, ranks[::-1]), begin, count, strict=True))
    return sequence(
        tuple((0, ring(*way, buffer, REDUCE)) for way in ways), tuple((0, ring(*way, buffer)) for way in ways)
    )


def _doubling(ranks: Integers, blocks: int) -> Phases:
    cube, buffer = Cube.over(ranks), _outputs(ranks)
    into, out = cube.inward(buffer, 0, blocks, REDUCE), cube.outward(buffer, 0, blocks)
    return sequence(into, combine(cube.heads, buffer, blocks), out)


def _halving(ranks: Integers, blocks: int) -> Phases:
    cube, buffer = Cube.over(ranks, reverse=True), _outputs(ranks)
    bounds = np.arange(len(cube.heads) + 1) * blocks // len(cube.heads)
    return sequence(
        cube.inward(buffer, 0, blocks, REDUCE),
        halving(cube.heads, bounds, buffer),
        doubling(cube.heads, bounds, buffer),
        cube.outward(buffer, 0, blocks),
    )


_EXCHANGES: dict[str, Callable[[Integers, int], Phases]] = {"ring": _ring, "doubling": _doubling, "halving": _halving}
