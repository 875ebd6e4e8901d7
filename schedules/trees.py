"""Trees over ranks as parent arrays, with the order in which each parent serves its children."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .network import Network

__all__ = [
    "Tree",
    "among",
    "chain",
    "depth_first",
    "knomial",
    "leaders",
    "linear",
    "rank_clusters",
    "ring_order",
    "rotation",
    "stacked",
]

Integers = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)


class Tree:
    """A rooted tree over p ranks and the turns in which each parent serves its children.

    Arrays are indexed by rank. Sums along paths are computed by pointer doubling, in O(p log depth) array operations
    for any shape.

    :param parent: parent of each rank, shape (p,); -1 at the root.
    :param turn: turn in which the parent serves each rank, shape (p,), any numbers; children with equal turns are
        served at once. By default one child per turn, the lowest rank first.
    :raises ValueError: if there is not exactly one root, or if a rank is not below the root.
    """

    def __init__(self, parent: ArrayLike, turn: ArrayLike | None = None) -> None:
        self.parent: Integers = np.array(parent, dtype=np.int64)
        ranks = np.arange(self.size)
        if np.count_nonzero(self.parent == -1) != 1 or not (self.parent < self.size).all() or self.parent.min() < -1:
            raise ValueError("expecting parents in range(size), and -1 for one root")
        self.turn: Integers = self._dense(ranks if turn is None else np.array(turn, dtype=np.int64))
        if (self._jumps[-1] < self.size).any():
            raise ValueError("expecting every rank below the root, got a cycle")
        for column in (self.parent, self.turn):
            column.setflags(write=False)

    def _dense(self, turn: Integers) -> Integers:
        """Renumber the turns of each parent's children 0, 1, 2, ..."""
        order = np.lexsort((turn, self.parent))
        parent, turn = self.parent[order], turn[order]
        first = np.append(True, parent[1:] != parent[:-1])
        number = np.cumsum(first | np.append(True, turn[1:] != turn[:-1]))
        dense = np.empty_like(turn)
        dense[order] = number - np.maximum.accumulate(np.where(first, number, 0))
        return dense

    @cached_property
    def _jumps(self) -> list[Integers]:
        """The ancestors at distance 1, 2, 4, ... of each rank, one array per distance; ``size`` stands for no ancestor.

        The last array has no ancestor for any rank.
        """
        above = np.append(np.where(self.parent < 0, self.size, self.parent), self.size)
        rows = [above]
        while (rows[-1] < self.size).any() and len(rows) <= self.size.bit_length():
            rows.append(rows[-1][rows[-1]])
        return rows

    @property
    def size(self) -> int:
        """Number of ranks, p."""
        return len(self.parent)

    @cached_property
    def root(self) -> int:
        """The rank without a parent."""
        return int(np.flatnonzero(self.parent < 0)[0])

    @cached_property
    def others(self) -> NDArray[np.intp]:
        """All ranks except the root, ascending."""
        return np.flatnonzero(self.parent >= 0)

    @cached_property
    def inner(self) -> NDArray[np.bool_]:
        """Whether each rank has children."""
        inner = np.zeros(self.size, dtype=bool)
        inner[self.parent[self.others]] = True
        return inner

    def from_root(self, weight: NDArray[Number]) -> NDArray[Number]:
        """The sum of the weights on the path from the root to each rank, including the rank's own, shape (p,)."""
        total = np.append(weight, weight[:1] * 0)
        for above in self._jumps:
            total = total + total[above]
        return total[:-1]

    def below(self, weight: NDArray[Number]) -> NDArray[Number]:
        """The sum of the weights in the sub-tree of each rank, including the rank's own, shape (p,)."""
        total = np.append(weight, weight[:1] * 0)
        for above in self._jumps:
            share = np.zeros_like(total)
            np.add.at(share, above[:-1], total[:-1])
            total = total + share
        return total[:-1]

    def siblings(self, weight: NDArray[Number], order: Integers) -> NDArray[Number]:
        """The sum of the weights of each rank's siblings with a lower ``order``, shape (p,)."""
        rows = np.lexsort((order, self.parent))
        parent, ranked = self.parent[rows], weight[rows]
        before: NDArray[Number] = np.cumsum(ranked) - ranked
        first = np.append(True, parent[1:] != parent[:-1])
        start = np.maximum.accumulate(np.where(first, np.arange(self.size), 0))
        total = np.empty_like(before)
        total[rows] = before - before[start]
        return total

    @cached_property
    def sizes(self) -> Integers:
        """The number of ranks in the sub-tree of each rank, including itself, shape (p,)."""
        return self.below(np.ones(self.size, dtype=np.int64))

    @cached_property
    def depth(self) -> Integers:
        """The number of edges between the root and each rank, shape (p,)."""
        return self.from_root((self.parent >= 0).astype(np.int64))

    @cached_property
    def service(self) -> Integers:
        """The keys, shape (p,), that sort siblings in the order of service: by turn, then larger sub-trees first."""
        order = np.empty(self.size, dtype=np.int64)
        order[np.lexsort((np.arange(self.size), -self.sizes, self.turn))] = np.arange(self.size)
        return order

    def children(self, rank: int) -> Integers:
        """The children of a rank in the order in which the rank serves them. Cost: O(p)."""
        below = np.flatnonzero(self.parent == rank)
        return below[np.argsort(self.service[below])].astype(np.int64)

    @cached_property
    def down(self) -> Integers:
        """The step in which each rank receives if data move from the root, shape (p,); -1 at the root.

        A rank sends as soon as its own data have arrived.
        """
        return self.from_root(np.where(self.parent < 0, -1, 1 + self.turn))

    @cached_property
    def up(self) -> Integers:
        """The step in which each rank sends if data move to the root, shape (p,): the steps of ``down`` in reverse."""
        return int(self.down.max()) - self.down

    def preorder(self, order: Integers | None = None) -> Integers:
        """The ranks in depth-first order: every sub-tree is a range of ``sizes`` positions that begins with its top.

        :param order: key that sorts siblings, shape (p,); by default the order in which they are served.
        """
        position = self.from_root(1 + self.siblings(self.sizes, self.service if order is None else order)) - 1
        ranks = np.empty_like(position)
        ranks[position] = np.arange(self.size)
        return ranks

    def placed(self, ranks: Integers) -> Tree:
        """The same tree with node i moved to rank ``ranks[i]``; ``ranks`` is a permutation."""
        parent, turn = np.empty_like(self.parent), np.empty_like(self.turn)
        parent[ranks] = np.append(ranks, -1)[self.parent]
        turn[ranks] = self.turn
        return Tree(parent, turn)


def rotation(size: int, root: int) -> Integers:
    """The ranks in cyclic order from the root on: a permutation that moves node i of a tree to rank (i + root) mod p.

    :param size: number of ranks, p.
    :param root: rank to which node 0 moves.
    """
    if not 0 <= root < size:
        raise ValueError(f"expecting root in range({size}), got {root}")
    return np.roll(np.arange(size), -root)


def linear(size: int) -> Tree:
    """The tree in which rank 0 serves all others, one per turn."""
    return Tree(np.append(-1, np.zeros(size - 1, dtype=np.int64)))


def chain(size: int) -> Tree:
    """The tree in which each rank serves the next one."""
    return Tree(np.arange(size) - 1)


def knomial(size: int, radix: int = 2) -> Tree:
    """The k-nomial tree with root 0: clearing the lowest non-zero digit of a rank in base k gives the rank's parent.

    In each turn a parent serves up to k - 1 children at once, those with the largest sub-trees first, so that a
    broadcast takes ceil(log_k p) steps. Every sub-tree is a range of ranks that begins with its top. ``radix=2`` is the
    binomial tree by recursive halving: the root first serves rank 2^(ceil(log2 p) - 1).

    :raises ValueError: if the radix is below 2.
    """
    parent, turn = _knomial(np.arange(size), radix)
    return Tree(parent, turn)


def _knomial(node: Integers, radix: int) -> tuple[Integers, Integers]:
    """The parent of each node in the infinite k-nomial tree (-1 for node 0), and its turn (larger sub-trees first)."""
    if radix < 2:
        raise ValueError(f"expecting radix of at least 2, got {radix}")
    unit = np.ones_like(node)
    while (more := (node > 0) & (node % (unit * radix) == 0)).any():
        unit = np.where(more, unit * radix, unit)
    parent = np.where(node > 0, node - node % (unit * radix), -1)
    return parent, -unit


def rank_clusters(network: Network) -> Integers:
    """The cluster of each rank at each level, coarsest first, the hosts last; shape (levels + 1, p)."""
    above = network.clusters[:, network.rank_host].reshape(-1, network.num_ranks)
    return np.concatenate((above, network.rank_host[None, :])).astype(np.int64)


def leaders(clusters: Sequence[ArrayLike] | Integers, size: int, *, root: int = 0, radix: int = 2) -> Tree:
    """A k-nomial tree among the leaders of each level's clusters, outermost level first; it enters each cluster once.

    The leader of a cluster is the root if it lies inside, else the first rank of the cluster, counted from the root on.
    After Subramoni 2013, sections 3 and 4. The source's extra transfer between a leaf's leader and a root that leads no
    cluster is not needed, because the root leads all its clusters here.

    :param clusters: cluster of each rank at each level, coarsest first, nested, each of shape (p,), any numbers.
    :param size: number of ranks, p.
    :param root: the root's rank.
    :param radix: k; a rank serves up to k - 1 others at once.
    :raises ValueError: if a cluster lies in two clusters of the level above.
    """
    turned = rotation(size, root)
    rows = [np.zeros(size, dtype=np.int64), *(_first(np.asarray(row)[turned]) for row in clusters), np.arange(size)]
    layers = []
    for outer, inner in itertools.pairwise(rows):
        if (outer[inner] != outer).any():
            raise ValueError("expecting nested clusters, got a cluster in two clusters of the level above")
        layers.append(among(outer, np.flatnonzero(inner == np.arange(size)), radix))
    return stacked(layers).placed(turned)


def _first(cluster: NDArray[np.integer]) -> Integers:
    """Number each cluster by its first member."""
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    named: Integers = first.astype(np.int64)[inverse]
    return named


def among(group: Integers, members: NDArray[np.intp], radix: int) -> tuple[Integers, Integers]:
    """Parents (-1 for tops and non-members) and turns of a k-nomial tree in each group, with its first member as top.

    :param group: group of each rank, shape (p,).
    :param members: ranks that belong to the trees; within a group they stand in the order of the tree.
    :param radix: k; a rank serves up to k - 1 others at once.
    """
    members = members[np.argsort(group[members], kind="stable")]
    start = np.searchsorted(group[members], group[members])
    above, order = _knomial(np.arange(len(members)) - start, radix)
    parent, turn = np.full(len(group), -1), np.zeros(len(group), dtype=np.int64)
    parent[members] = np.where(above < 0, -1, members[start + above])
    turn[members] = order
    return parent, turn


def stacked(layers: Sequence[tuple[Integers, Integers]]) -> Tree:
    """Join layers to one tree, in which every rank but the root has a parent in one of the layers.

    A parent serves its children of an earlier layer before those of a later one.

    :param layers: parent of each rank (-1 if it has none in this layer) and turn of each rank, two arrays per layer.
    """
    parent: Integers = np.max([above for above, _ in layers], axis=0)
    low = min(int(order.min()) for _, order in layers)
    span = max(int(order.max()) for _, order in layers) - low + 1
    turn = sum(((above >= 0) * (layer * span + order - low) for layer, (above, order) in enumerate(layers)), 0 * parent)
    return Tree(parent, turn)


def depth_first(clusters: Sequence[ArrayLike] | Integers, size: int, *, root: int = 0) -> Integers:
    """The ranks in depth-first order of nested clusters: the root first, then the rest of its innermost cluster.

    A walk in this order enters each cluster once and, except for the last cluster, leaves it once.

    :param clusters: cluster of each rank at each level, coarsest first, nested, each of shape (p,), any numbers.
    :param size: number of ranks, p.
    :param root: rank that comes first.
    """
    turned = rotation(size, root)
    keys = [_first(np.asarray(row)[turned]) for row in clusters]
    order: Integers = turned[np.lexsort((np.arange(size), *keys[::-1]))]
    return order


def ring_order(network: Network, *, root: int = 0, inwards: bool = False) -> Integers:
    """The ranks in their order along a ring or chain, the root first and the ranks of a host adjacent, shape (p,).

    Hosts are in the order of ``network.order``. Without one, the ranks are in depth-first order of the clusters.

    :param network: the job's network.
    :param root: rank that comes first.
    :param inwards: whether messages travel against the order, towards the root. Then hosts are in reverse order, so
        that messages take the same routes between hosts.
    """
    if network.order is None or not len(network.order):
        return depth_first(rank_clusters(network), network.num_ranks, root=root)
    place = np.argsort(network.order)
    behind = (place - place[network.rank_host[root]]) * (-1 if inwards else 1) % len(place)
    turned = rotation(network.num_ranks, root)
    return turned[np.argsort(behind[network.rank_host[turned]], kind="stable")]
