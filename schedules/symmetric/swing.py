"""Allreduce, reduce-scatter and allgather by Swing on tori, and on a ring of ranks in any order (Bine)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..butterfly import Butterfly, staged
from ..schedule import Schedule
from ..swing import checked_grid, other_ways, swings
from .butterflies import by_allgather, by_allreduce, by_reduce_scatter

__all__ = ["allgather_swing", "allreduce_swing", "reduce_scatter_swing"]


Integers = NDArray[np.int64]


def allreduce_swing(grid: ArrayLike, *, ports: int = 1, blocks: int | None = None) -> Schedule:
    """An allreduce by Swing: pairs at distances 1, 1, 3, 5, 11, ... along a torus divide the vector, then collect it.

    De Sensi and others 2024, see `schedules.swing.swings`. On one dimension it is the butterfly of Bine (De Sensi and
    others 2025). Messages: 2 p log2 p in 2 log2 p steps if all dimensions are powers of two. Bytes: 2 (1 - 1/p) of the
    vector from each rank, the least possible. It is fast on tori at all sizes but the shortest. It requires a
    commutative operation.

    Hosts that can fill several links at the same time run several exchanges at the same time, each with an equal part
    of the vector: they begin with other dimensions, and in opposite directions, so that they use other links.

    :param grid: rank at each place of the torus; of one dimension for a ring.
    :param ports: number of links that a host can fill at the same time; more than two per dimension change nothing.
    :param blocks: number of blocks of the vector, by default one per rank and exchange; with fewer, ranks idle.
    """
    ranks = checked_grid(grid)
    return by_allreduce([_butterfly(one) for one in other_ways(ranks)[:ports]], "swing", blocks)


def reduce_scatter_swing(
    grid: ArrayLike, *, ports: int = 1, blocks: int | None = None, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter by Swing: pairs at distances 1, 1, 3, 5, 11, ... along a torus divide what they hold.

    De Sensi and others 2024, see `schedules.swing.swings`. On one dimension it is the butterfly of Bine (De Sensi and
    others 2025). Messages: p log2 p in log2 p steps if all dimensions are powers of two. Bytes: (1 - 1/p) of the vector
    from each rank if all parts are equal, the least possible. It is fast on tori at all sizes but the shortest. It
    requires a commutative operation.

    With several ports, each exchange of `allreduce_swing` has an equal piece of every rank's part.

    :param grid: rank at each place of the torus; of one dimension for a ring.
    :param ports: number of links that a host can fill at the same time; more than two per dimension change nothing.
    :param blocks: number of blocks of each rank's part, by default one per exchange; used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    return by_reduce_scatter(
        [_butterfly(one) for one in other_ways(checked_grid(grid))[:ports]], "swing", blocks, counts
    )


def allgather_swing(
    grid: ArrayLike, *, ports: int = 1, blocks: int | None = None, counts: ArrayLike | None = None
) -> Schedule:
    """An allgather by Swing: pairs at distances ..., 11, 5, 3, 1, 1 along a torus exchange all shares that they have.

    The reduce-scatter of that name backwards, see `schedules.swing.swings`. On one dimension it is the butterfly of
    Bine (De Sensi and others 2025). Messages: p log2 p in log2 p steps if all dimensions are powers of two. Bytes: all
    shares but its own into each rank, the least possible. It is fast on tori at all sizes but the shortest.

    With several ports, each exchange of `allreduce_swing` has an equal piece of every rank's share.

    :param grid: rank at each place of the torus; of one dimension for a ring.
    :param ports: number of links that a host can fill at the same time; more than two per dimension change nothing.
    :param blocks: number of blocks of each rank, by default one per exchange; used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    return by_allgather([_butterfly(one) for one in other_ways(checked_grid(grid))[:ports]], "swing", blocks, counts)


def _butterfly(ranks: Integers) -> Butterfly:
    return staged(swings(ranks), ranks.size)
