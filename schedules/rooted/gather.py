"""Gather and scatter with their v-forms: linear, k-nomial, over leaders. A scatter is a gather backwards.

Below, m is the sum of all ranks' bytes, p the number of ranks. ``counts`` gives the blocks of each rank, shape (p,),
for Gatherv and Scatterv; by default each has ``blocks``.
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

_OTHER_END = np.array([OUTPUT, INPUT, SCRATCH])  # of a buffer when the collective runs backwards


def mirrored(schedule: Schedule) -> Schedule:
    """The scatter that runs a gather backwards: steps, ends and buffers exchanged."""
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
    """Every rank sends to the root, ``window`` messages in flight, the rank after the root first.

    What MPI libraries do for Gatherv, there without a window. Cost: p - 1 messages, each block moves once, m bytes into
    the root. Wins for large blocks; the window keeps a burst off the root's links.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    :param window: messages in flight at most; 0 for no bound.
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

    An inner rank keeps the blocks of its sub-tree in its scratch buffer, side by side in depth-first order, siblings
    from the root on in rank order, and sends them as one message. What is a range of ranks reaches the root in its
    place; what is not, in scratch, and local moves restore rank order when it has come.

    :param tree: whose root receives.
    :param algorithm: name of the algorithm.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    Cost: p - 1 messages (fewer where sub-trees have nothing to send); each block moves once for each edge above it.
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
    """The messages between ranks other than the root: a rank's scratch begins with its own block."""
    child = tree.others[tree.parent[tree.others] != tree.root]
    parent = tree.parent[child]
    source = np.where(tree.inner[child], SCRATCH, INPUT)
    place = (SCRATCH, start[child] - start[parent])
    return transfers(tree.up[child], child, parent, (source, 0), place, tree.below(share)[child])


def _at_root(tree: Tree, share: Integers, order: Integers, position: Integers, start: Integers) -> Rows:
    """The messages to the root and the moves there."""
    size, root = tree.size, tree.root
    child = tree.others[tree.parent[tree.others] == root]
    place = np.cumsum(share) - share
    # Runs of consecutive ranks in the order of blocks; each child's sub-tree begins one.
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
    """For each rank below one of the root's children in ``tops`` the step after its message arrived; else 0."""
    step = np.zeros(tree.size, dtype=np.int64)
    step[tops] = tree.up[tops] + 1
    return tree.from_root(step)


def gather_knomial(
    size: int, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """Along the k-nomial tree from the root on in rank order; binomial for k = 2.

    The default of MPI libraries for small blocks. Cost: p - 1 messages in ceil(log_k p) steps (one more where the
    ranks of a sub-tree run over the last to the first); m log_k p / 2 bytes or so in all. Wins for small blocks.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    :param radix: k: a rank serves up to k - 1 others at once.
    """
    tree = trees.knomial(size, radix).placed(rotation(size, root))
    return gather_along(tree, f"{radix}-nomial", blocks=blocks, counts=counts)


def gather_leaders(
    network: Network, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """Each cluster gathers at its leader, innermost first, by a k-nomial tree; leaders of the outermost at the root.

    Subramoni 2013, section 3, for any number of levels, as `schedules.Hierarchy` does it with native collectives. Where
    that carries everything once more to a root that leads nothing, here the root leads all its clusters.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    :param radix: of the tree among the leaders; with as many as a cluster has parts, each sends to the leader itself.
    Cost: p - 1 messages. One message leaves each cluster at each level, the least possible, and each block crosses the
    borders around the root once; on its way there it stops at log_k of the leaders of its level. Wins for small and
    medium blocks where links between clusters are scarce or shared.
    """
    tree = trees.leaders(rank_clusters(network), network.num_ranks, root=root, radix=radix)
    return gather_along(tree, f"leaders ({radix}-nomial)", blocks=blocks, counts=counts)


def gather_nodes(rank_host: ArrayLike, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """The first rank of each host, from the root on, gathers there and sends all to the root in one message.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    Cost: p - 1 messages, one from each host; each block crosses the network once and is never stored on its way. Wins
    for small and medium blocks with several ranks a host, above all beside other jobs.
    """
    size = len(np.asarray(rank_host))
    tree = trees.leaders([rank_host], size, root=root, radix=max(size, 2))
    return gather_along(tree, "nodes", blocks=blocks, counts=counts)


def scatter_nodes(rank_host: ArrayLike, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """`gather_nodes` backwards. Cost: the same.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    """
    return mirrored(gather_nodes(rank_host, root=root, blocks=blocks, counts=counts))


def scatter_linear(
    size: int, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, window: int = 8
) -> Schedule:
    """`gather_linear` backwards: the root sends to each rank, ``window`` messages in flight. Cost: the same.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    """
    return mirrored(gather_linear(size, root=root, blocks=blocks, counts=counts, window=window))


def scatter_knomial(
    size: int, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """`gather_knomial` backwards. Cost: the same.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    :param radix: k: a rank serves up to k - 1 others at once.
    """
    return mirrored(gather_knomial(size, root=root, blocks=blocks, counts=counts, radix=radix))


def scatter_leaders(
    network: Network, *, root: int = 0, blocks: int = 1, counts: ArrayLike | None = None, radix: int = 2
) -> Schedule:
    """`gather_leaders` backwards: the outermost leaders are served first. Cost: the same.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), for the v-form; by default ``blocks`` each.
    :param radix: k: a rank serves up to k - 1 others at once.
    """
    return mirrored(gather_leaders(network, root=root, blocks=blocks, counts=counts, radix=radix))
