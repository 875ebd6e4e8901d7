"""Allreduce, reduce-scatter and allgather by rings along one dimension of a torus after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..butterfly import Butterfly, staged
from ..schedule import Schedule
from ..swing import checked_grid, other_ways
from .allgather import allgather_ring
from .allreduce import allreduce_ring
from .butterflies import by_allgather, by_allreduce, by_reduce_scatter
from .reduce_scatter import reduce_scatter_ring

__all__ = ["allgather_bucket", "allreduce_bucket", "reduce_scatter_bucket"]

Integers = NDArray[np.int64]


def allreduce_bucket(grid: ArrayLike, *, ports: int = 1, blocks: int | None = None) -> Schedule:
    """An allreduce by rings along one dimension of a torus after the other, and back.

    The bucket algorithm (Chan et al. 2007, section 6). Messages: on a torus of d places, 2 p (d1 + d2 + ... - D), one
    in and one out per rank and step, over D dimensions of d1, d2, ... places. Bytes: 2 (1 - 1/p) of the vector from
    each rank, the least possible, all between neighbours. It is fast for long and medium vectors on tori of any size.
    It requires a commutative operation. On one dimension it is a ring.

    Hosts that can fill several links at the same time run several exchanges at the same time, each with an equal part
    of the vector: they begin with other dimensions, and in opposite directions, so that they use other links.

    :param grid: rank at each place of the torus, the ranks of one place along the first of several dimensions.
    :param ports: number of links that a host can fill at the same time; more than two per dimension change nothing.
    :param blocks: number of blocks of the vector, by default one per rank and exchange; with fewer, ranks idle.
    """
    ranks = checked_grid(grid)
    ways = other_ways(ranks, backwards=True)[:ports]
    if ranks.ndim == 1:
        return allreduce_ring(ranks.size, order=ranks, rings=len(ways), blocks=blocks)
    return by_allreduce([_butterfly(way) for way in ways], "bucket", blocks)


def reduce_scatter_bucket(
    grid: ArrayLike, *, ports: int = 1, blocks: int | None = None, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter by rings along one dimension of a torus after the other.

    The bucket algorithm (Chan et al. 2007, section 6). Messages: p (d1 + d2 + ... - D), one in and one out per rank and
    step, over D dimensions of d1, d2, ... places. Bytes: (1 - 1/p) of the vector from each rank if all parts are equal,
    the least possible, all between neighbours. It is fast for long and medium vectors on tori of any size. It requires
    a commutative operation. On one dimension it is a ring.

    With several ports, each exchange of `allreduce_bucket` has an equal piece of every rank's part.

    :param grid: rank at each place of the torus, the ranks of one place along the first of several dimensions.
    :param ports: number of links that a host can fill at the same time; more than two per dimension change nothing.
    :param blocks: number of blocks of each rank's part, by default one per exchange; used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    ranks = checked_grid(grid)
    ways = other_ways(ranks, backwards=True)[:ports]
    if ranks.ndim == 1:
        blocks = len(ways) if blocks is None else blocks
        return reduce_scatter_ring(ranks.size, order=ranks, rings=len(ways), blocks=blocks, counts=counts)
    return by_reduce_scatter([_butterfly(way) for way in ways], "bucket", blocks, counts)


def allgather_bucket(
    grid: ArrayLike, *, ports: int = 1, blocks: int | None = None, counts: ArrayLike | None = None
) -> Schedule:
    """An allgather by rings along one dimension of a torus after the other.

    The reduce-scatter of that name backwards. Messages: p (d1 + d2 + ... - D), one in and one out per rank and step,
    over D dimensions of d1, d2, ... places. Bytes: all shares but its own into each rank, the least possible, all
    between neighbours. It is fast for long and medium shares on tori of any size. On one dimension it is a ring.

    With several ports, each exchange of `allreduce_bucket` has an equal piece of every rank's share.

    :param grid: rank at each place of the torus, the ranks of one place along the first of several dimensions.
    :param ports: number of links that a host can fill at the same time; more than two per dimension change nothing.
    :param blocks: number of blocks of each rank, by default one per exchange; used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    ranks = checked_grid(grid)
    ways = other_ways(ranks, backwards=True)[:ports]
    if ranks.ndim == 1:
        blocks = len(ways) if blocks is None else blocks
        return allgather_ring(ranks.size, order=ranks, rings=len(ways), blocks=blocks, counts=counts)
    return by_allgather([_butterfly(way) for way in ways], "bucket", blocks, counts)


def _butterfly(grid: Integers) -> Butterfly:
    rings = [np.moveaxis(grid, axis, 0).reshape(size, -1) for axis, size in enumerate(grid.shape) if size > 1]
    return staged(rings, grid.size, in_rings=True)
