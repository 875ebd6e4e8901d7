"""Broadcasts: trees over ranks, re-ordered by delay or by level; pipelines; circulant blocks; two trees at once.

Bytes below are those of the message, m; p ranks, b blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import trees
from ..exchanges import checked_order, checked_root, turned
from ..network import Network
from ..phases import Given, Phases
from ..schedule import INPUT, OUTPUT, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import Tree, depth_first, rank_clusters, rotation
from .circulant import arrivals as on_circulant
from .doubletree import arrivals as on_two_trees
from .embedding import reordered_tree, wave_tree

__all__ = [
    "along",
    "chain",
    "circulant",
    "double_tree",
    "knomial",
    "leaders",
    "of_rows",
    "reordered",
    "wave",
]

# Microseconds within a host, through 1, 3 and 5 switches on Ranger: Subramoni 2013, table 1.1.
LATENCIES = (0.46, 1.57, 2.45, 2.85)


def along(tree: Tree, algorithm: str, *, blocks: int = 1, pipelined: bool = False) -> Schedule:
    """A broadcast from a tree's root along its edges.

    :param tree: whose root sends the message.
    :param algorithm: name of the algorithm.
    :param blocks: blocks of the message; one transfer an edge carries them all, or, ``pipelined``, one transfer each.
    :param pipelined: whether each block is a message of its own.
    Cost: p - 1 messages of m bytes, or (p - 1) b messages of m / b bytes; down the tree in ``max(tree.down) + 1``
    steps, and each further block follows as many steps behind as a parent has turns.
    """
    pieces = blocks if pipelined else 1
    piece = np.arange(pieces)[:, None]
    child = tree.others
    parent = tree.parent[child]
    stride = int(tree.turn.max()) + 1
    rows = transfers(
        tree.down[child] + stride * piece,
        parent,
        child,
        (np.where(parent == tree.root, INPUT, OUTPUT), piece),
        (OUTPUT, piece),
        blocks // pieces,
    )
    return of_rows(tree.size, algorithm, rows, tree.root, blocks)


def of_rows(size: int, algorithm: str, rows: Rows, root: int, blocks: int, behind: Phases = ()) -> Schedule:
    """The broadcast of these rows, and the move that puts the message into the root's output.

    :param size: number of ranks, p.
    :param algorithm: name of the algorithm.
    :param rows: those of its first phase.
    :param root: the root's rank.
    :param blocks: blocks of the message.
    :param behind: further phases.
    """
    if blocks < 1:
        raise ValueError(f"expecting at least one block, got {blocks}")
    own = local_moves(0, root, (INPUT, 0), (OUTPUT, 0), blocks)
    phases = (0, Given.of(np.concatenate((own, rows)))), *behind
    return Schedule.from_phases("bcast", size, algorithm, phases, root=root, blocks=blocks)


def knomial(size: int, *, root: int = 0, blocks: int = 1, radix: int = 2) -> Schedule:
    """The k-nomial tree from the root on in rank order; a holder serves k - 1 ranks at once.

    The default of MPI libraries (binomial is k = 2). Cost: p - 1 messages of m bytes in ceil(log_k p) steps. Wins for
    small messages, on one switch or where ranks are placed along the network; k above 2 where starting a message is
    cheap beside its latency.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: blocks of the message.
    :param radix: k: a rank serves up to k - 1 others at once.
    """
    return along(trees.knomial(size, radix).placed(rotation(size, root)), f"{radix}-nomial", blocks=blocks)


def reordered(
    network: Network,
    *,
    root: int = 0,
    blocks: int = 1,
    radix: int = 4,
    delay: ArrayLike | None = None,
    choose: str = "best",
) -> Schedule:
    """The k-nomial tree over hosts re-ordered so that its critical part has the shortest or fastest routes.

    Subramoni 2013, section 4 (DFT and BFT), see `schedules.rooted.embedding.embed`; then a k-nomial tree inside each
    host.
    The source always re-orders; here ``choose="best"`` takes the plain order where neither walk has a shorter critical
    path (`schedules.rooted.embedding.critical_path`), so it is never worse than plain by that measure.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: blocks of the message.
    :param radix: k: a rank serves up to k - 1 others at once.
    :param delay: delay from host i to host j, shape (n, n), any unit: hops (default) or `rate_delay` of the adapters.
    :param choose: ``best``, ``dft``, ``bft`` or ``plain``.
    Cost: p - 1 messages of m bytes in ceil(log_k n) + ceil(log_k(p / n)) steps. Wins for medium messages on
    allocations that are scattered or have adapters of different speeds.
    """
    tree = reordered_tree(network, root=root, radix=radix, delay=delay, choose=choose)
    return along(tree, f"re-ordered {radix}-nomial ({choose})", blocks=blocks)


def wave(
    network: Network,
    *,
    root: int = 0,
    blocks: int = 1,
    latency: Sequence[float] | None = None,
    overhead: float | Sequence[float] = 0.2,
) -> Schedule:
    """The tree of earliest completing edges: near and far served as latencies and overheads have it.

    As MPICH's topology-aware wave tree, see `schedules.rooted.embedding.wave_tree`, over any number of levels and into
    hosts.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: blocks of the message.
    :param latency: of pairs of ranks that share no level, the outermost only, ..., all, the host included, shape
        (levels + 2,) for the network's levels; by default microseconds of Subramoni 2013, table 1.1, from inside out.
    :param overhead: for which a sender is busy, one number or one a latency, in the same unit; MPICH's 0.2.
    Cost: p - 1 messages of m bytes. Wins for small messages where latency is far above the overhead of a message: the
    root serves many, and the far ones early enough.
    """
    levels = rank_clusters(network)
    if latency is None:
        latency = [LATENCIES[min(level, len(LATENCIES) - 1)] for level in range(len(levels), -1, -1)]
    return along(wave_tree(levels, root=root, latency=latency, overhead=overhead), "wave", blocks=blocks)


def leaders(network: Network, *, root: int = 0, blocks: int = 1, radix: int = 2) -> Schedule:
    """A k-nomial tree among the leaders of each level's clusters, the outermost first, the host last.

    Subramoni 2013, sections 2.3.1 and 4, see `schedules.trees.leaders`. Cost: p - 1 messages of m bytes; of them
    (clusters - 1) at each level cross its borders, the least possible. Wins where links between clusters are scarce
    or shared with other jobs; loses a few steps to a single k-nomial tree over all.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: blocks of the message.
    :param radix: k: a rank serves up to k - 1 others at once.
    """
    tree = trees.leaders(rank_clusters(network), network.num_ranks, root=root, radix=radix)
    return along(tree, f"leaders ({radix}-nomial)", blocks=blocks)


def chain(network: Network, *, root: int = 0, blocks: int = 8) -> Schedule:
    """A pipeline of segments through all ranks in depth-first order of the cluster tree.

    Cost: (p - 1) b messages of m / b bytes in p - 2 + b steps; every cluster's border is crossed once in and once out,
    (clusters - 1) times in all, the least possible; a link of a tree carries the message once each way. Wins for large
    messages on few ranks (m / b far above p).

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: segments of the message.
    """
    order = depth_first(rank_clusters(network), network.num_ranks, root=root)
    return along(trees.chain(len(order)).placed(order), "depth-first chain", blocks=blocks, pipelined=True)


def circulant(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """Blocks travel a circulant graph so that every rank receives a new one in nearly every round.

    Träff, arXiv:2407.18004, see `schedules.rooted.circulant.receive_blocks`; for any p and b. Cost: (p - 1) b messages
    of m / b bytes in b - 1 + ceil(log2 p) steps, the least possible where a rank sends and receives one block a step.
    Wins for medium and large messages on fabrics that are not oversubscribed. Half of the rounds go over less than the
    square root of p places of the order: where that is depth-first, those stay near.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks by nearness, shape (p,), gone round so that the root comes first; by default ascending.
    :param blocks: blocks of the message, b.
    """
    return _by_arrivals("circulant", on_circulant(size, blocks), size, root, order, blocks)


def double_tree(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """Even blocks go down one binary tree and odd blocks another one, whose inner ranks are leaves of the first.

    Sanders, Speck and Träff, see `schedules.rooted.doubletree.parents`; for any p and b. Cost: (p - 1) b messages of
    m / b bytes in at most b + 2 log2 p steps. Each rank has the same two senders and at most two receivers all the
    time, half of them its neighbours in the order. Wins for large messages where links between clusters are scarce.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks by nearness, shape (p,), gone round so that the root comes first; by default ascending.
    :param blocks: blocks of the message, b.
    """
    return _by_arrivals("double_tree", on_two_trees(size, blocks), size, root, order, blocks)


def _by_arrivals(
    name: str,
    found: tuple[NDArray[np.int64], ...],
    size: int,
    root: int,
    order: ArrayLike | None,
    blocks: int,
) -> Schedule:
    """The broadcast with these steps, senders, receivers and blocks, which number ranks from the root in the order."""
    order = turned(checked_order(size, order), checked_root(size, root))
    at, sender, receiver, block = found
    source = np.where(sender == 0, INPUT, OUTPUT)
    rows = transfers(at, order[sender], order[receiver], (source, block), (OUTPUT, block), 1)
    return of_rows(size, name, rows, root, blocks)
