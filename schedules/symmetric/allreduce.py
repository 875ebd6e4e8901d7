"""Allreduce: ring in tree order, recursive doubling, Rabenseifner with the near dimensions innermost, leaders."""

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


def allreduce_ring(size: int, *, order: ArrayLike | None = None, blocks: int | None = None) -> Schedule:
    """A reduce-scatter and an allgather on one ring (Patarasuk and Yuan 2009).

    Messages: 2 p (p - 1), one in and one out for each rank and step. Bytes: 2 (1 - 1/p) of the vector out of each
    rank, the least there is; in depth-first order so much over each border of the tree, each way. It wins for long
    vectors. For commutative operations only: each part is summed from where it begins on, round the ring.

    :param size: number of ranks, p.
    :param order: ranks along the ring, shape (p,), by default ascending; ``trees.depth_first`` gives the tree's.
    :param blocks: blocks of the vector, by default one for each rank; fewer leave ranks idle.
    """
    total = size if blocks is None else blocks
    return _everywhere(size, "ring", total, _ring(checked_order(size, order), total))


def allreduce_doubling(size: int, *, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """Pairs exchange and add up whole vectors, neighbours first (Thakur, Rabenseifner, Gropp 2005, section 4.5).

    Where p is no power of two, surplus ranks hand their vector to a neighbour and get the sum from it. Messages: p
    log2 p, in log2 p exchanges, and up to two more; bytes: log2 p vectors out of each rank. It wins for short vectors.

    Keeps rank order where ``order`` ascends.

    :param size: number of ranks, p.
    :param order: ranks by nearness, shape (p,), by default ascending.
    :param blocks: blocks of the vector.
    """
    return _everywhere(size, "recursive doubling", blocks, _doubling(checked_order(size, order), blocks))


def allreduce_halving(size: int, *, order: ArrayLike | None = None, blocks: int | None = None) -> Schedule:
    """Reduce-scatter by recursive halving, allgather by recursive doubling (Rabenseifner 2004).

    The paper halves over the far distance first or the near one; here neighbours in ``order`` exchange the halves,
    and the far ends the smallest parts. Where p is no power of two, surplus ranks hand their vector to a neighbour and
    get the sum from it. Messages: 2 n log2 n for the n ranks of the cube; bytes: 2 (1 - 1/n) of the vector out of
    each. It wins for medium vectors: few start-ups, and the least bytes for a power of two.

    Keeps rank order where ``order`` ascends.

    :param size: number of ranks, p.
    :param order: ranks by nearness, shape (p,), by default ascending.
    :param blocks: blocks of the vector, by default one for each corner of the cube; fewer leave corners idle.
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
    """Clusters reduce at their leaders, innermost first; the outermost leaders reduce to all; the sum spreads inwards.

    After Subramoni 2013, section 3, with k-nomial trees at each level inside. Messages: 2 (p - c) of the whole vector
    inside the c outermost clusters, and those of the exchange between c ranks. It wins where many ranks share few links
    out of a cluster; inside, a leader takes part in about log2 whole vectors, which long vectors pay for.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers; none: all ranks exchange.
    :param exchange: ``ring``, ``doubling`` or ``halving`` among the outermost leaders.
    :param radix: k of the trees inside.
    :param ordered: keep rank order, for operations that do not commute; then each cluster must be a range of ranks,
        and the exchange no ring.
    :param second_heads: of an exchange that pairs surplus leaders with neighbours, whether the second of a pair stands
        for both, as in MPICH, and not the first.
    :param blocks: blocks of the vector.
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
    """Every rank copies its input to its output, then an exchange among all outputs."""
    phases = sequence(local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), blocks), exchange)
    return Schedule.from_phases("allreduce", size, algorithm, phases, blocks=blocks)


def _outputs(ranks: Integers) -> Integers:
    return np.full(int(ranks.max()) + 1, OUTPUT)


def _ring(ranks: Integers, blocks: int) -> Phases:
    bounds, buffer = np.arange(len(ranks) + 1) * blocks // len(ranks), _outputs(ranks)
    part = bounds[:-1], np.diff(bounds), buffer
    return sequence(ring(ranks, *part, REDUCE), ring(ranks, *part))


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
