"""Allreduce, reduce-scatter and allgather by halving over clusters of any sizes, with the fewest bytes between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..groups import grouped
from ..schedule import Schedule
from .butterflies import by_allgather, by_allreduce, by_reduce_scatter

__all__ = ["allgather_grouped", "allreduce_grouped", "reduce_scatter_grouped"]

Integers = NDArray[np.int64]


def allreduce_grouped(
    size: int, clusters: Sequence[ArrayLike] | Integers = (), *, blocks: int | None = None
) -> Schedule:
    """An allreduce by halving over clusters of any sizes: inside them first, then across; then backwards.

    See `schedules.groups.grouped`. Messages: one or two per rank and step, more for ranks of a cluster that is much
    smaller than the one it is joined with, in at most 2 ceil(log2 p) + 2 steps. Bytes: 2 (1 - 1/p) of the vector
    from each rank; 2 (g - 1) vectors between the g outermost clusters. Both are the least possible. It is fast for
    medium and long vectors where links between clusters are scarce. It requires a commutative operation.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers.
    :param blocks: number of blocks of the vector, by default one per rank; with fewer, ranks idle.
    """
    return by_allreduce([grouped(size, clusters)], "grouped", blocks)


def reduce_scatter_grouped(
    size: int, clusters: Sequence[ArrayLike] | Integers = (), *, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter by halving over clusters of any sizes: inside them first, then across.

    See `schedules.groups.grouped`. Messages: one or two per rank and step, more for ranks of a cluster that is much
    smaller than the one it is joined with, in at most ceil(log2 p) + 1 steps. Bytes: (1 - 1/p) of the vector from
    each rank if all parts are equal; (g - 1) vectors between the g outermost clusters. Both are the least possible. It
    is fast for medium and long vectors where links between clusters are scarce. It requires a commutative operation.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    return by_reduce_scatter([grouped(size, clusters)], "grouped", blocks, counts)


def allgather_grouped(
    size: int, clusters: Sequence[ArrayLike] | Integers = (), *, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """An allgather by doubling over clusters of any sizes: across them first, then inside.

    The reduce-scatter of that name backwards, see `schedules.groups.grouped`. Messages: one or two per rank and
    step, more for ranks of a cluster that is much smaller than the one it is joined with, in at most ceil(log2 p) + 1
    steps. Bytes: all shares but its own into each rank; each share enters each outermost cluster once. Both are the
    least possible. It is fast for medium and long shares where links between clusters are scarce.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    return by_allgather([grouped(size, clusters)], "grouped", blocks, counts)
