"""Gather and scatter with their v-forms: linear, k-nomial, and over leaders. A scatter is a gather in reverse.

The v-forms, Gatherv and Scatterv, take the number of blocks of each rank as ``counts``; in the others each rank has
``blocks`` blocks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import trees
from ..network import Network
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares, transfers
from ..trees import Integers, Tree, rank_clusters, rotation

__all__ = [
    "gather_along",
    "gather_knomial",
    "gather_leaders",
    "gather_linear",
    "gather_nodes",
    "mirrored",
    "scatter_knomial",
    "scatter_leaders",
    "scatter_linear",
    "scatter_nodes",
]

_OTHER_END = np.array([OUTPUT, INPUT, SCRATCH])  # the buffer that replaces each buffer in the reverse collective


def mirrored(schedule: Schedule) -> Schedule:
    """The scatter that runs a gather in reverse: steps backwards, senders as receivers, and input as output."""
    last = schedule.num_steps - 1
    rows = np.stack(
        (
            last - schedule.step,
            schedule.destination,
            schedule.source,
            _OTHER_END[schedule.destination_buffer],
            schedule.destination_block,
            _OTHER_END[schedule.source_buffer],
            schedule.source_block,
            schedule.count,
            schedule.operation,
        ),
        axis=1,
    )
    return Schedule.from_rows(
        "scatter",
        schedule.size,
        schedule.algorithm,
        rows,
        root=schedule.root,
        blocks=schedule.blocks,
        counts=schedule.counts,
        independent=schedule.independent,
        window=schedule.window,
    )


def gather_linear(
    size: int, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, window: int = 8
) -> Schedule:
    """A gather in which every rank sends to the root, the rank after the root first, ``window`` messages in flight.

    MPI libraries run it for Gatherv without a window. Cost: p - 1 messages; each block moves once. It is fast for large
    blocks; the window prevents a burst on the root's links.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Gatherv.
    :param window: largest number of messages in flight; 0 for no limit.
    """
    share = shares(size, blocks, counts)
    others = rotation(size, root)[1:]
    start = np.cumsum(share) - share
    own = local_moves(0, root, (INPUT, 0), (OUTPUT, start[root]), share[root])
    rows = transfers(np.arange(size - 1), others, root, (INPUT, 0), (OUTPUT, start[others]), share[others])
    return _gather(size, "linear", np.concatenate((own, rows)), root, blocks, counts, window)


def _gather(
    size: int, algorithm: str, rows: Rows, root: int, blocks: int, counts: ArrayLike | None, window: int | None = None
) -> Schedule:
    return Schedule.from_rows(
        "gather",
        size,
        algorithm,
        rows,
        root=root,
        blocks=blocks,
        counts=None if counts is None else np.asarray(counts, dtype=np.int64),
        independent=window is not None,
        window=1 if window is None else window,
    )


def gather_along(tree: Tree, algorithm: str, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """A gather to a tree's root along its edges.

    An inner rank stores the blocks of its sub-tree in its scratch buffer, side by side in depth-first order, siblings
    in cyclic rank order from the root on, and sends them as one message. Sub-trees that are ranges of ranks arrive in
    their place at the root; others arrive in its scratch buffer, and local moves restore rank order.

    :param tree: tree whose root receives.
    :param algorithm: name of the algorithm.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Gatherv.
    Cost: p - 1 messages for p ranks (fewer if sub-trees have no blocks); each block moves once over each edge between
    its rank and the root.
    """
    share = shares(tree.size, blocks, counts)
    order = tree.preorder((np.arange(tree.size) - tree.root) % tree.size)
    position = np.argsort(order)
    start = (np.cumsum(share[order]) - share[order])[position]
    inner = np.flatnonzero(tree.inner & (tree.parent >= 0))
    own = local_moves(0, inner, (INPUT, 0), (SCRATCH, 0), share[inner])
    at_root = _at_root(tree, share, order, position, start)
    rows = np.concatenate((own, _upwards(tree, share, start), at_root))
    return _gather(tree.size, algorithm, rows, tree.root, blocks, counts)


def _upwards(tree: Tree, share: Integers, start: Integers) -> Rows:
    """The messages between ranks other than the root; a rank's scratch buffer begins with its own block."""
    child = tree.others[tree.parent[tree.others] != tree.root]
    parent = tree.parent[child]
    source = np.where(tree.inner[child], SCRATCH, INPUT)
    place = (SCRATCH, start[child] - start[parent])
    return transfers(tree.up[child], child, parent, (source, 0), place, tree.below(share)[child])


def _at_root(tree: Tree, share: Integers, order: Integers, position: Integers, start: Integers) -> Rows:
    """The messages to the root, and the local moves there."""
    size, root = tree.size, tree.root
    child = tree.others[tree.parent[tree.others] == root]
    place = np.cumsum(share) - share
    # Runs of consecutive ranks in the order of blocks; a child's sub-tree begins a new run.
    begins = np.append(True, np.diff(order) != 1)
    begins[position[child]] = True
    if size > 1:
        begins[1] = True
    run = np.cumsum(begins)
    whole = run[position[child]] == run[position[child] + tree.sizes[child] - 1]
    source = np.where(tree.inner[child], SCRATCH, INPUT)
    target = (np.where(whole, OUTPUT, SCRATCH), np.where(whole, place[child], start[child]))
    messages = transfers(tree.up[child], child, root, (source, 0), target, tree.below(share)[child])
    arrived = _arrival(tree, child[~whole])[order]
    first = np.flatnonzero(begins & (arrived > 0))
    length = np.add.reduceat(share[order], np.flatnonzero(begins))[run[first] - 1]
    unpack = local_moves(arrived[first], root, (SCRATCH, start[order[first]]), (OUTPUT, place[order[first]]), length)
    own = local_moves(0, root, (INPUT, 0), (OUTPUT, place[root]), share[root])
    return np.concatenate((own, messages, unpack))


def _arrival(tree: Tree, tops: Integers) -> Integers:
    """The step after which the message with each rank's block arrived, for ranks below ``tops``; 0 for other ranks."""
    step = np.zeros(tree.size, dtype=np.int64)
    step[tops] = tree.up[tops] + 1
    return tree.from_root(step)


def gather_knomial(
    size: int, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """A gather along the k-nomial tree in rank order from the root on (binomial for k = 2).

    It is the default of MPI libraries for small blocks. Cost: p - 1 messages in ceil(log_k p) steps (one more if the
    ranks of a sub-tree wrap around from the last to the first). For k = 2 each block moves log2 p / 2 times on average.
    It is fast for small blocks.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Gatherv.
    :param radix: k; a rank receives from up to k - 1 others at once.
    """
    tree = trees.knomial(size, radix).placed(rotation(size, root))
    return gather_along(tree, f"{radix}-nomial", blocks=blocks, counts=counts)


def gather_leaders(
    network: Network, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """A gather of each cluster at its leader by k-nomial trees, innermost first; the last leader is the root.

    Subramoni 2013, section 3, for any number of levels; `schedules.Hierarchy` does the same with native collectives.
    There the blocks are sent once more if the root is not the leader of its clusters; here the root is their leader.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Gatherv.
    :param radix: k of the trees among the leaders of a cluster's inner clusters; if k is their number, each sends
        directly to the cluster's leader.
    Cost: p - 1 messages for p ranks. One message leaves each cluster at each level, the least possible, and each block
    crosses each border of a cluster on its way once. In a cluster of m inner clusters up to log_k m leaders forward it.
    It is fast for small and medium blocks if links between clusters are scarce or shared.
    """
    tree = trees.leaders(rank_clusters(network), network.num_ranks, root=root, radix=radix)
    return gather_along(tree, f"leaders ({radix}-nomial)", blocks=blocks, counts=counts)


def gather_nodes(rank_host: ArrayLike, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """A gather of each host at its first rank, counted from the root on, which sends all to the root in one message.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Gatherv.
    Cost: p - 1 messages, of which one leaves each host; each block crosses the network once and is stored by no other
    host on its way. It is fast for small and medium blocks with several ranks per host, especially beside other jobs.
    """
    size = len(np.asarray(rank_host))
    tree = trees.leaders([rank_host], size, root=root, radix=max(size, 2))
    return gather_along(tree, "nodes", blocks=blocks, counts=counts)


def scatter_nodes(rank_host: ArrayLike, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """A scatter from the root to the first rank of each host, then inside hosts: the reverse of `gather_nodes`.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Scatterv.
    Cost: as `gather_nodes`.
    """
    return mirrored(gather_nodes(rank_host, root=root, blocks=blocks, counts=counts))


def scatter_linear(
    size: int, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, window: int = 8
) -> Schedule:
    """A scatter in which the root sends to each rank, ``window`` messages in flight: the reverse of `gather_linear`.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Scatterv.
    :param window: largest number of messages in flight; 0 for no limit.
    Cost: as `gather_linear`.
    """
    return mirrored(gather_linear(size, root=root, blocks=blocks, counts=counts, window=window))


def scatter_knomial(
    size: int, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """A scatter along the k-nomial tree in rank order from the root on: the reverse of `gather_knomial`.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Scatterv.
    :param radix: k; a rank serves up to k - 1 others at once.
    Cost: as `gather_knomial`.
    """
    return mirrored(gather_knomial(size, root=root, blocks=blocks, counts=counts, radix=radix))


def scatter_leaders(
    network: Network, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """A scatter to the leaders of clusters, outermost first, then inside the clusters: the reverse of `gather_leaders`.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for Scatterv.
    :param radix: k; a rank serves up to k - 1 others at once.
    Cost: as `gather_leaders`.
    """
    return mirrored(gather_leaders(network, root=root, blocks=blocks, counts=counts, radix=radix))
