"""Broadcasts: along trees, trees reordered by delay or level, two trees at once, chains, and circulant graphs.

In all of them p is the number of ranks, and b the number of equal blocks of the message.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import trees
from ..exchanges import checked_order, checked_root, turned
from ..network import Network
from ..phases import Given, Phases
from ..schedule import INPUT, OUTPUT, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import Tree, rank_clusters, ring_order, rotation
from .circulant import arrivals as on_circulant
from .doubletree import arrivals as on_two_trees
from .embedding import reordered_tree

__all__ = [
    "along",
    "chain",
    "circulant",
    "double_tree",
    "knomial",
    "leaders",
    "of_rows",
    "reordered",
]


def along(tree: Tree, algorithm: str, *, blocks: int = 1, pipelined: bool = False) -> Schedule:
    """A broadcast from a tree's root along its edges.

    :param tree: tree whose root has the message.
    :param algorithm: name of the algorithm.
    :param blocks: number of blocks of the message.
    :param pipelined: whether each block is a message of its own; otherwise one message per edge carries all blocks.
    Cost: with p ranks, p - 1 messages of all blocks in ``max(tree.down) + 1`` steps. If pipelined, p - 1 messages per
    block, and each further block takes as many more steps as a parent has turns.
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
    """A broadcast with the given rows, and the local move of the message to the root's output.

    :param size: number of ranks, p.
    :param algorithm: name of the algorithm.
    :param rows: rows of the first phase, shape (rows, 9).
    :param root: the root's rank.
    :param blocks: number of blocks of the message.
    :param behind: further phases, each with the step in which it begins.
    """
    if blocks < 1:
        raise ValueError(f"expecting at least one block, got {blocks}")
    own = local_moves(0, root, (INPUT, 0), (OUTPUT, 0), blocks)
    phases = (0, Given.of(np.concatenate((own, rows)))), *behind
    return Schedule.from_phases("bcast", size, algorithm, phases, root=root, blocks=blocks)


def knomial(size: int, *, root: int = 0, blocks: int = 1, radix: int = 2) -> Schedule:
    """A broadcast along the k-nomial tree in rank order from the root on; each rank serves k - 1 others at once.

    It is the default of MPI libraries (binomial, k = 2). Cost: p - 1 messages of all blocks in ceil(log_k p) steps. It
    is fast for small messages, on one switch or if ranks are placed along the network; k above 2 pays if starting a
    message takes far less time than its latency.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param blocks: number of blocks of the message.
    :param radix: k; a rank serves up to k - 1 others at once.
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
    """A broadcast along a k-nomial tree over hosts, reordered for short or fast routes on its critical path.

    Subramoni 2013, section 4 (DFT and BFT), see `schedules.rooted.embedding.embed`; then a k-nomial tree inside each
    host. The source always reorders. Here ``choose="best"`` keeps the tree in the plain order of hosts if no reordered
    one has a shorter critical path (`schedules.rooted.embedding.critical_path`).

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of the message.
    :param radix: k; a rank serves up to k - 1 others at once.
    :param delay: delay from host i to host j, shape (n, n), any unit: by default hops; or `rate_delay` of the adapters.
    :param choose: order of the hosts: ``dft`` (depth first), ``bft`` (breadth first), ``plain``, or ``best`` of these.
    Cost: with p ranks on n hosts, p - 1 messages of all blocks in ceil(log_k n) + ceil(log_k(p / n)) steps. It is fast
    for medium messages on allocations that are scattered or have adapters of different speeds.
    """
    tree = reordered_tree(network, root=root, radix=radix, delay=delay, choose=choose)
    return along(tree, f"re-ordered {radix}-nomial ({choose})", blocks=blocks)


def leaders(network: Network, *, root: int = 0, blocks: int = 1, radix: int = 2) -> Schedule:
    """A broadcast along a k-nomial tree among the leaders of each level's clusters, outermost first, hosts last.

    Subramoni 2013, sections 2.3.1 and 4, see `schedules.trees.leaders`. Cost: p - 1 messages of all blocks, for p
    ranks; one message enters each cluster without the root, the least possible. It is fast if links between clusters
    are scarce or shared with other jobs; it takes a few steps more than a single k-nomial tree over all ranks.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of the message.
    :param radix: k; a rank serves up to k - 1 others at once.
    """
    tree = trees.leaders(rank_clusters(network), network.num_ranks, root=root, radix=radix)
    return along(tree, f"leaders ({radix}-nomial)", blocks=blocks)


def chain(network: Network, *, root: int = 0, blocks: int = 8, order: ArrayLike | None = None) -> Schedule:
    """A broadcast that pipelines blocks through all ranks, one after the other.

    Cost: with p ranks and b blocks, (p - 1) b messages of one block in p - 2 + b steps. In depth-first order the
    message enters each cluster once, and leaves it once, the least possible; in a tree network a link carries it at
    most once in each direction. It is fast for large messages on few ranks (b far above p).

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of the message, b.
    :param order: ranks in an order, shape (p,), which is rotated to begin with the root; by default the depth-first
        order of `schedules.trees.ring_order`.
    """
    ring = ring_order(network, root=root) if order is None else turned(checked_order(network.num_ranks, order), root)
    return along(trees.chain(len(ring)).placed(ring), "chain", blocks=blocks, pipelined=True)


def circulant(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """A broadcast on a circulant graph, in which every rank receives a new block in nearly every step.

    Träff, arXiv:2407.18004, see `schedules.rooted.circulant.receive_blocks`; for any p and b. Cost: (p - 1) b messages
    of one block in b - 1 + ceil(log2 p) steps, the least possible if a rank sends and receives one block per step. It
    is fast for medium and large messages on fabrics that are not oversubscribed. In half of the steps, sender and
    receiver are less than sqrt(p) places apart in ``order``, and so are near each other if this is depth-first.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks in an order that keeps near ranks together, shape (p,); it is rotated to begin with the root. By
        default ascending.
    :param blocks: number of blocks of the message, b.
    """
    return _by_arrivals("circulant", on_circulant(size, blocks), size, root, order, blocks)


def double_tree(size: int, *, root: int = 0, order: ArrayLike | None = None, blocks: int = 1) -> Schedule:
    """A broadcast of even blocks along one binary tree and of odd blocks along another; no rank has children in both.

    Sanders, Speck and Träff, see `schedules.rooted.doubletree.parents`; for any p and b. Cost: (p - 1) b messages of
    one block in at most b + 2 log2 p steps. Each rank has the same two senders and at most two receivers in all steps,
    and about half of all messages are between neighbours in ``order``. It is fast for large messages if links between
    clusters are scarce.

    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks in an order that keeps near ranks together, shape (p,); it is rotated to begin with the root. By
        default ascending.
    :param blocks: number of blocks of the message, b.
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
    """A broadcast from its arrivals.

    :param name: name of the algorithm.
    :param found: step, sender, receiver and block of each arrival, four arrays; senders and receivers are positions in
        the order, of which 0 is the root.
    :param size: number of ranks, p.
    :param root: the root's rank.
    :param order: ranks in an order, shape (p,), which is rotated to begin with the root; by default ascending.
    :param blocks: number of blocks of the message.
    """
    order = turned(checked_order(size, order), checked_root(size, root))
    at, sender, receiver, block = found
    source = np.where(sender == 0, INPUT, OUTPUT)
    rows = transfers(at, order[sender], order[receiver], (source, block), (OUTPUT, block), 1)
    return of_rows(size, name, rows, root, blocks)
