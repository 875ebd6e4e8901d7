"""A search, leaf by leaf and from several first leaves at once, for leaves whose routes cross no link in use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LeafSearch"]

Indices = NDArray[np.integer]
Mask = NDArray[np.bool_]


class LeafSearch:
    """A greedy search for nodes for one job, with two attempts per first leaf, a plain one and a careful one.

    Each step adds one leaf to every attempt: the leaf with the most candidates, that is, nodes whose routes to and from
    all chosen nodes cross no link in use. The careful attempt leaves out nodes that exclude other candidates. The
    attempts are the rows of common arrays.

    :param nodes: numbers of the free nodes, leaf by leaf, shape (nodes,).
    :param leaf: leaf of each of these nodes, shape (nodes,).
    :param open_routes: whether the route from a leaf to a node crosses no link in use, shape (leaves, nodes).
    :param starts: number of first leaves that are tried; these are the leaves with the most nodes.
    """

    def __init__(self, nodes: Indices, leaf: Indices, open_routes: Mask, starts: int) -> None:
        self.nodes = nodes
        present, self.first, place = np.unique(leaf, return_index=True, return_inverse=True)
        self.sizes = np.diff(self.first, append=len(nodes))
        self.place = np.append(place, 0)  # leaf of each node, among those with free nodes; last, one entry of padding
        self.open = np.pad(open_routes[present], ((0, 0), (0, 1)))
        self.shut = np.ascontiguousarray(~self.open.T)
        begin = np.argsort(-self.sizes, kind="stable")[:starts]
        self.leaf = np.repeat(begin, 2)
        self.careful = np.tile([False, True], len(begin))
        self.candidates = np.ones((len(self.leaf), len(self.place)), dtype=bool)
        self.candidates[:, -1] = False
        self.chosen = np.zeros_like(self.candidates)

    def run(self, size: int) -> Indices | None:
        """Return ``size`` nodes found by the attempt that needs the fewest leaves; None if all attempts fail."""
        wanted = np.full(len(self.leaf), size)
        while len(wanted):
            at, taken, shut = self._take(wanted)
            rows = np.arange(len(wanted))
            self.chosen[rows[:, None], at] |= taken
            wanted = wanted - taken.sum(axis=1)
            if (wanted <= 0).any():
                return self.nodes[np.flatnonzero(self.chosen[int(np.argmax(wanted <= 0))])]
            lost = np.asarray((shut & taken[:, :, None]).any(axis=1))
            self.candidates &= self.open[self.leaf]
            self.candidates &= ~lost[:, self.place]
            self.candidates &= self.place != self.leaf[:, None]
            alive = taken.any(axis=1) & (self.candidates.sum(axis=1) >= wanted)
            wanted = wanted[alive]
            self._keep(alive)
            self.leaf = np.argmax(self._count(), axis=1)
        return None

    def _take(self, wanted: Indices) -> tuple[Indices, Mask, Mask]:
        """Take nodes of the leaf that each attempt adds in this step.

        :param wanted: number of nodes that each attempt still needs, shape (attempts,).
        :returns: three arrays, for each attempt and each node of its leaf: position of the node in ``nodes``, whether
            it is taken, and whether the route to it from each leaf crosses a link in use.
        """
        rows, count = np.arange(len(wanted)), self._count()
        count[rows, self.leaf] = 0
        inside = np.arange(int(self.sizes.max()))
        at = self.first[self.leaf][:, None] + inside
        at[inside >= self.sizes[self.leaf][:, None]] = len(self.nodes)
        able = self.candidates[rows[:, None], at]
        shut = self.shut[at]
        lost = (shut @ count[:, :, None].astype(np.float32))[:, :, 0]
        able &= (lost == 0) | ~self.careful[:, None]
        order = np.argsort(np.where(able, lost, np.inf), axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, inside[None, :], axis=1)
        return at, able & (rank < wanted[:, None]), shut

    def _count(self) -> Indices:
        """Return the number of candidate nodes on each leaf, shape (attempts, leaves)."""
        if not len(self.candidates):
            return np.zeros((0, len(self.first)), dtype=np.int64)
        return np.add.reduceat(self.candidates, self.first, axis=1, dtype=np.int64)

    def _keep(self, alive: Mask) -> None:
        self.leaf, self.careful = self.leaf[alive], self.careful[alive]
        self.candidates, self.chosen = self.candidates[alive], self.chosen[alive]
