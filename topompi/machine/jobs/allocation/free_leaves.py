"""The leaves with free nodes in one state, and searches among them for jobs of any size."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .leaf_bits import LeafBits, Words
from .leaf_search import LeafSearch

__all__ = ["FreeLeaves"]

Indices = NDArray[np.integer]
Mask = NDArray[np.bool_]


class _Usable(NamedTuple):
    """The leaves whose nodes jobs of some sizes may get.

    :param least: smallest of these sizes.
    :param most: largest of these sizes.
    :param leaves: truth value of each leaf, shape (leaves,).
    """

    least: int
    most: float
    leaves: Mask


class FreeLeaves:
    """The leaves with free nodes in one state, and what was found there for jobs so far.

    :param bits: places of the nodes' bits.
    :param free: whether each node is free, shape (nodes,).
    :param in_leaf: number of free nodes of each leaf, shape (leaves,).
    :param open_from: function that returns the nodes to which routes from some leaves are open, shape (leaves, words).
    """

    def __init__(self, bits: LeafBits, free: Mask, in_leaf: Indices, open_from: Callable[[Indices], Words]) -> None:
        self.bits, present = bits, in_leaf > 0
        leaves = np.flatnonzero(present)
        self.leaves, self.words = bits.leaves.part(leaves), np.flatnonzero(bits.leaves.by_word(present))
        self.nodes = bits.words(free)[self.words]
        self.open = open_from(leaves)[:, self.words]
        self.reach = self.leaves.by_leaf(self.open & self.nodes).astype(np.float32)
        self._usable = [_Usable(0, 0, np.ones(len(leaves), dtype=bool))]
        self._searches: dict[int, LeafSearch] = {}  # by number of usable leaves

    def usable(self, size: int) -> Mask:
        """Return whether a job may get nodes of each leaf, shape (leaves,).

        A leaf is removed if it reaches fewer than ``size`` free nodes of the remaining leaves; this repeats until none
        is removed. Thus the leaves for a larger job are among those for a smaller one.
        """
        known = self._usable[bisect_right(self._usable, size, key=lambda one: one.least) - 1]
        if known.most >= size:
            return known.leaves
        leaves, reach = known.leaves, self.reach @ known.leaves
        while (reach[leaves] < size).any():
            leaves = leaves & (reach >= size)
            reach = self.reach @ leaves
        insort(self._usable, _Usable(size, reach[leaves].min(initial=np.inf), leaves), key=lambda one: one.least)
        return leaves

    def search(self, size: int, starts: int) -> Indices | None:
        """Return nodes that `LeafSearch` finds for a job; None if it finds none.

        :param size: number of nodes of the job.
        :param starts: number of first leaves that are tried.
        """
        leaves = self.usable(size)
        key = int(np.count_nonzero(leaves))
        known = self._searches.get(key)
        if known is None or known.least > size:
            nodes = self.nodes * self.leaves.by_word(leaves)
            known = self._searches[key] = LeafSearch(self.leaves, nodes, self.open, starts, size)
        found = known.run(size)
        if found is None:
            return None
        words = np.zeros(self.bits.size // (8 * found.itemsize), dtype=found.dtype)
        words[self.words] = found
        return self.bits.nodes(words)
