"""The placement of ranks in trees, by a matrix of delays between hosts or by the latencies within clusters."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..network import Network
from ..trees import Integers, Tree, among, knomial, rotation, stacked

__all__ = ["WALKS", "best_of", "critical_path", "embed", "host_trees", "reordered_tree", "wave_tree"]

Floats = NDArray[np.float64]

WALKS = ("dft", "bft")


def critical_path(tree: Tree, delay: ArrayLike) -> float:
    """The time at which the last rank has the message, if each send occupies the parent for the delay to the child.

    Children of one turn also count one after another, the largest sub-tree first, because they share the parent's
    adapter.

    :param tree: the tree.
    :param delay: delay from rank i to rank j, shape (p, p), any unit.
    """
    matrix = np.asarray(delay, dtype=np.float64)
    edge = np.where(tree.parent < 0, 0.0, matrix[tree.parent, np.arange(tree.size)])
    return float(tree.from_root(edge + tree.siblings(edge, tree.service)).max())


def embed(tree: Tree, delay: ArrayLike, walk: str = "dft") -> Integers:
    """Place ranks at the nodes of a tree so that nodes with large sub-trees are close to their parents.

    After Subramoni 2013, section 4: the tree is walked depth first (``dft``) or breadth first (``bft``), the children
    with the largest sub-trees first. Each node takes the unplaced rank that is closest to the rank at its parent, the
    lowest among equals. The root keeps its rank. This is a heuristic without a guarantee.

    :param tree: tree of p nodes.
    :param delay: delay from rank i to rank j, shape (p, p), any unit.
    :param walk: ``dft`` for depth first, or ``bft`` for breadth first.
    :returns: rank at each node, a permutation for `Tree.placed`, shape (p,).
    Cost: O(p^2), with one vectorised choice per node.
    """
    if walk not in WALKS:
        raise ValueError(f"expecting one of {', '.join(WALKS)}, got {walk!r}")
    matrix = np.asarray(delay, dtype=np.float64)
    if matrix.shape != (tree.size, tree.size) or not (matrix >= 0).all():
        raise ValueError(f"expecting delays of shape ({tree.size}, {tree.size}), none negative or unknown")
    order = tree.preorder()
    if walk == "bft":
        order = order[np.argsort(tree.depth[order], kind="stable")]
    taken = np.zeros(tree.size)
    placed = np.empty(tree.size, dtype=np.int64)
    for node in order:
        above = tree.parent[node]
        placed[node] = node if above < 0 else np.argmin(matrix[placed[above]] + taken)
        taken[placed[node]] = np.inf
    return placed


def host_trees(delay: ArrayLike, *, radix: int = 4) -> dict[str, Tree]:
    """The k-nomial trees with root 0 over n hosts: ``plain`` in the hosts' own order, and one reordered by each walk.

    :param delay: delay from host i to host j, shape (n, n), any unit.
    :param radix: k; a host serves up to k - 1 others at once.
    """
    plain = knomial(len(np.asarray(delay)), radix)
    return {"plain": plain, **{walk: plain.placed(embed(plain, delay, walk)) for walk in WALKS}}


def best_of(trees: dict[str, Tree], delay: ArrayLike) -> str:
    """The name of the tree with the shortest critical path; the first among equals."""
    return min(trees, key=lambda name: critical_path(trees[name], delay))


def reordered_tree(
    network: Network, *, root: int = 0, radix: int = 4, delay: ArrayLike | None = None, choose: str = "best"
) -> Tree:
    """A reordered k-nomial tree over the hosts' leaders, joined with a k-nomial tree inside each host.

    The leader of a host is its first rank, counted cyclically from the root on; the plain tree has leaders in that
    order.

    :param network: the job's network.
    :param root: the root's rank.
    :param radix: k; a rank serves up to k - 1 others at once.
    :param delay: delay from host i to host j, shape (n, n), any unit; by default the hops of the route.
    :param choose: ``plain``, ``dft``, ``bft``, or ``best`` for the one with the shortest critical path.
    :raises ValueError: if two hosts have no route.
    """
    if choose not in ("best", "plain", *WALKS):
        raise ValueError(f"expecting best, plain, {' or '.join(WALKS)}, got {choose!r}")
    turned = rotation(network.num_ranks, root)
    hosts, first, host = np.unique(network.rank_host[turned], return_index=True, return_inverse=True)
    order = np.argsort(first)
    used = hosts[order]
    delays = np.asarray(network.hops if delay is None else delay, dtype=np.float64)[np.ix_(used, used)]
    found = host_trees(delays, radix=radix)
    outer = found[best_of(found, delays) if choose == "best" else choose]
    return stacked((_at(first[order], outer, len(turned)), among(host, np.arange(len(turned)), radix))).placed(turned)


def _at(ranks: NDArray[np.intp], tree: Tree, size: int) -> tuple[Integers, Integers]:
    """The parent and the turn of each of all ranks in a tree over some of them, two arrays of shape (size,).

    :param ranks: rank at each node of the tree.
    :param tree: tree over these ranks.
    :param size: number of all ranks; ranks outside the tree have parent -1.
    """
    parent, turn = np.full(size, -1), np.zeros(size, dtype=np.int64)
    parent[ranks] = np.where(tree.parent < 0, -1, ranks[tree.parent])
    turn[ranks] = tree.turn
    return parent, turn


def wave_tree(
    clusters: Integers, *, root: int = 0, latency: Sequence[float], overhead: float | Sequence[float] = 0.2
) -> Tree:
    """A tree that is made edge by edge: each time the sender and receiver whose message arrives earliest are joined.

    This is the idea of MPICH's topology-aware wave tree (with an overhead, and latencies between groups, between
    switches, and on one switch), published earlier as earliest completing edge first (Bhat, Raghavendra, Prasanna
    2003). MPICH builds such a tree for one switch after another; here one tree covers any number of levels. A sender is
    busy for ``overhead`` and then free for the next message; the receiver has the message after ``latency``.

    :param clusters: cluster of each rank at each level, coarsest first, nested, shape (levels, p).
    :param root: the root's rank.
    :param latency: latency between two ranks that share no cluster, one of the first level, one of the first two
        levels, ...; shape (levels + 1,), any unit, not rising.
    :param overhead: time for which a message keeps its sender busy, one number or one per latency, in the unit of
        ``latency``; positive.
    Cost: O(p (log p + levels)) time.
    """
    levels = len(clusters)
    costs, busy = np.asarray(latency, dtype=np.float64), np.broadcast_to(overhead, levels + 1)
    if len(costs) != levels + 1 or (np.diff(costs) > 0).any() or costs[-1] < 0 or (busy <= 0).any():
        raise ValueError(f"expecting {levels + 1} latencies that do not rise from far to near, and positive overheads")
    turned = rotation(clusters.shape[1], root)
    rows = np.concatenate((np.zeros((1, len(turned)), dtype=np.int64), clusters[:, turned]))
    parent, turn = _wave(_Waiting(rows), costs, busy)
    return Tree(parent, turn).placed(turned)


def _wave(waiting: _Waiting, latency: Floats, overhead: Floats) -> tuple[Integers, Integers]:
    """The parent and the turn of each rank in the wave tree with root 0."""
    size = waiting.size
    parent, turn = np.full(size, -1), np.zeros(size, dtype=np.int64)
    ready = np.zeros(size)
    served = np.zeros(size, dtype=np.int64)
    heap = [(0.0, waiting.visit(0))]
    for _ in range(size - 1):
        time, sender = heapq.heappop(heap)
        while time < (due := ready[sender] + latency[waiting.level(sender)]):
            time, sender = heapq.heappushpop(heap, (due, sender))
        level, receiver = waiting.level(sender), waiting.nearest(sender)
        parent[receiver], turn[receiver] = sender, served[sender]
        served[sender] += 1
        ready[receiver], ready[sender] = time, ready[sender] + overhead[level]
        for rank in (sender, waiting.visit(receiver)):
            heapq.heappush(heap, (ready[rank], rank))  # a lower bound of the time, corrected when it is popped
    return parent, turn


class _Waiting:
    """The ranks that are not reached yet, by cluster at each level."""

    def __init__(self, rows: Integers) -> None:
        self.size = rows.shape[1]
        self._rows = [row.tolist() for row in rows]
        self._level = [len(rows) - 1] * self.size
        self._left = [dict(zip(*np.unique(row, return_counts=True), strict=True)) for row in rows]
        self._queue: list[dict[int, list[int]]] = [{} for _ in rows]
        for queue, row in zip(self._queue, self._rows, strict=True):
            for rank in range(self.size - 1, -1, -1):
                queue.setdefault(row[rank], []).append(rank)
        self._reached = [False] * self.size

    def visit(self, rank: int) -> int:
        """Mark a rank as reached, and return it."""
        self._reached[rank] = True
        for left, row in zip(self._left, self._rows, strict=True):
            left[row[rank]] -= 1
        return rank

    def level(self, rank: int) -> int:
        """The innermost level at which a rank's cluster still has unreached ranks."""
        while self._level[rank] and not self._left[self._level[rank]][self._rows[self._level[rank]][rank]]:
            self._level[rank] -= 1
        return self._level[rank]

    def nearest(self, rank: int) -> int:
        """The lowest unreached rank in a rank's cluster at its ``level``."""
        level = self.level(rank)
        queue = self._queue[level][self._rows[level][rank]]
        while self._reached[queue[-1]]:
            queue.pop()
        return queue[-1]
