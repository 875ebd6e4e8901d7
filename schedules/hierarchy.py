"""Nested clusters of ranks, and the leaders of each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hierarchy"]

IntArray = NDArray[np.int64]


class Hierarchy:
    """Nested clusters of ranks and their leaders (Subramoni 2013, section 3).

    Level 1 is the outermost; the clusters of the innermost level are single ranks. The leader of a cluster is its
    lowest rank. A sub-communicator of a level unites the leaders of all clusters of this level within one cluster of
    the next outer level, or within the whole communicator at level 1.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, each of shape (p,), any numbers.
    :raises ValueError: if the levels are not nested or differ in length.
    """

    def __init__(self, size: int, clusters: Sequence[NDArray[np.integer]] = ()) -> None:
        rows = [np.zeros(size, dtype=np.int64), *map(_named_by_leader, clusters), np.arange(size)]
        if any(len(row) != size for row in rows):
            raise ValueError(f"expecting the cluster of each of {size} ranks at every level")
        for level, (outer, inner) in enumerate(itertools.pairwise(rows), 1):
            if (outer[inner] != outer).any():
                raise ValueError(f"a cluster of level {level} lies in two clusters of the level above")
        self._rows = np.stack(rows)

    @property
    def num_levels(self) -> int:
        """Number of levels of sub-communicators; 1 if there are no clusters."""
        return len(self._rows) - 1

    def color(self, level: int, rank: int) -> int:
        """The colour of a rank in MPI's split for a level: its cluster one level above, or -1 if it is no member."""
        return int(self._rows[level - 1, rank]) if self._rows[level, rank] == rank else -1


def _named_by_leader(cluster: NDArray[np.integer]) -> IntArray:
    """Number each cluster by its lowest rank."""
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    leader: IntArray = first[inverse].astype(np.int64)
    return leader
