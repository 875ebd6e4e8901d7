"""Trees in which every parent can combine its children's data in rank order, for operations that do not commute."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import checked_root
from ..trees import Tree, stacked

__all__ = ["in_order"]

Integers = NDArray[np.int64]


def in_order(clusters: Sequence[ArrayLike], size: int, *, root: int = 0, radix: int = 2) -> Tree:
    """A k-nomial tree for any root whose sub-trees are ranges of ranks; the farthest ranges are served first.

    A parent that reduces thus receives the nearest range first and then each adjoining range, one child per turn. The
    range of a sub-tree's top is cut into at most k parts of k^h ranks, and the lowest rank of each other part becomes
    its child. With clusters, the tree first joins the leaders at each level, outermost first; the root leads all its
    clusters, the lowest rank leads the others. With root 0 and ``radix=2`` it is the binomial tree. Depth: at most
    ceil(log_k p); p - 1 edges; (k - 1) ceil(log_k p) turns.

    :param clusters: cluster of each rank at each level, coarsest first, nested, each cluster a range of ranks; or none.
    :param size: number of ranks, p.
    :param root: the root's rank.
    :param radix: k, at least 2.
    :raises ValueError: if a cluster is no range of ranks, the radix is below 2, or the root is no rank.
    """
    if radix < 2:
        raise ValueError(f"expecting radix of at least 2, got {radix}")
    checked_root(size, root)
    rows = [np.zeros(size, dtype=np.int64), *(_ranges(np.asarray(row), size) for row in clusters), np.arange(size)]
    if any((outer[inner] != outer).any() for outer, inner in itertools.pairwise(rows)):
        raise ValueError("expecting nested clusters, got a cluster in two clusters of the level above")
    led = [np.where(row == row[root], root, row) for row in rows]
    return stacked([_layer(outer, inner, radix) for outer, inner in itertools.pairwise(led)])


def _ranges(cluster: NDArray[np.integer], size: int) -> Integers:
    """Number each cluster by its first rank."""
    if cluster.shape != (size,):
        raise ValueError(f"expecting the cluster of each of {size} ranks at every level")
    first = np.append(True, cluster[1:] != cluster[:-1])
    if first.sum() != len(np.unique(cluster)):
        raise ValueError("expecting each cluster to be a range of ranks, to keep rank order")
    return np.maximum.accumulate(np.where(first, np.arange(size), 0))


def _layer(outer: Integers, inner: Integers, radix: int) -> tuple[Integers, Integers]:
    """The trees among the leaders of the inner clusters of each outer cluster: parent (or -1) and turn of each rank."""
    members = np.flatnonzero(inner == np.arange(len(inner)))
    begin = np.flatnonzero(np.diff(outer[members], prepend=-1))
    end, top = np.append(begin[1:], len(members)), np.searchsorted(members, outer[members[begin]])
    parent, turn = np.full(len(inner), -1), np.zeros(len(inner), dtype=np.int64)
    height = 0
    while radix**height < (end - begin).max():
        height += 1
    for level in reversed(range(height)):
        part = np.arange(radix)
        low = begin[:, None] + radix**level * part
        high = np.minimum(low + radix**level, end[:, None])
        own = (top - begin)[:, None] // radix**level
        head = np.where(part == own, top[:, None], low)
        # First the parts to the left, then those to the right, the nearest first, because each part must adjoin the
        # range that is combined before it.
        nth = np.where(part < own, own - 1 - part, part - 1)
        child = (low < end[:, None]) & (part != own)
        ranks = members[head[child]]
        parent[ranks] = members[np.broadcast_to(top[:, None], head.shape)[child]]
        turn[ranks] = -(level * (radix - 1) + nth[child])
        begin, end, top = (column[low < end[:, None]] for column in (low, high, head))
    return parent, turn
