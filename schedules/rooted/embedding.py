"""The placement of ranks in trees, by a matrix of delays between hosts or by the latencies within clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..network import Network
from ..trees import Integers, Tree, among, knomial, rotation, stacked

__all__ = ["WALKS", "best_of", "critical_path", "embed", "host_trees", "reordered_tree"]

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
