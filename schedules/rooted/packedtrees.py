"""Broadcasts and reductions in which several trees share the message, packed so that no link is overloaded."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..phases import GridPhase, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import among
from .prices import TREES

__all__ = ["bcast_packed_trees", "parts_of", "reduce_packed_trees"]

Integers = NDArray[np.int64]

START = 5.5e-6  # seconds of a step's start-ups, with a message of each tree
MOST_ROUNDS = 64  # blocks of a tree
LEAST_BYTES = 8192  # of a block, because shorter ones cost no less; MPI libraries send these without a handshake


def bcast_packed_trees(network: Network, *, root: int = 0, blocks: int = 16) -> Schedule:
    """A broadcast that pipelines blocks along four trees, each of which carries every fourth block.

    The trees are those of `schedules.rooted.packing.packing`: few steps deep, and together they load each link with at
    most about one message, if the routes allow it. Inside a host the rank that receives a block passes it on along a
    binomial tree; the four trees enter a host at different ranks.

    Cost: with p ranks and b blocks, (p - 1) b messages of one block in b / 4 + d - 1 steps, where d is mostly the
    largest mean depth of a host over the trees, rounded up: 4 for 64 hosts. A rank receives up to four blocks in a
    step, and sends about as many. It is fast for large messages.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of the message, b; block i travels along tree i modulo 4.
    """
    trees = _Trees(network, root, blocks)
    first = local_moves(0, root, (INPUT, 0), (OUTPUT, 0), blocks)
    buffer = np.where(np.arange(network.num_ranks) == root, INPUT, OUTPUT)

    def make(step: Integers, member: Integers) -> Rows:
        step, child, parent, block = trees.edges(step, member)
        return transfers(step, parent, child, (buffer[parent], block), (OUTPUT, block), 1)

    phases = (*sequence(first), (0, trees.phase(make)))
    return Schedule.from_phases("bcast", network.num_ranks, "packed_trees", phases, root=root, blocks=blocks)


def reduce_packed_trees(network: Network, *, root: int = 0, blocks: int = 16) -> Schedule:
    """A reduction along four trees, the reverse of `bcast_packed_trees` on the routes towards the root.

    For commutative operations. Cost: that of the broadcast; a rank adds up to about four blocks in a step.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of the vector, b.
    """
    trees = _Trees(network, root, blocks, inwards=True)
    ranks = np.arange(network.num_ranks)
    sums = np.where(ranks == root, OUTPUT, SCRATCH)
    inner = np.unique(np.append(trees.parent[trees.parent >= 0], root))
    adds = np.isin(ranks, inner)
    here = np.where(adds, SCRATCH, INPUT)

    def make(step: Integers, member: Integers) -> Rows:
        step, child, parent, block = trees.edges(trees.steps - 1 - step, member)
        return transfers(trees.steps - 1 - step, child, parent, (here[child], block), (sums[parent], block), 1, REDUCE)

    first = local_moves(0, inner, (INPUT, 0), (sums[inner], 0), blocks)
    phases = sequence(first, trees.phase(make))
    return Schedule.from_phases("reduce", network.num_ranks, "packed_trees", phases, root=root, blocks=blocks)


def parts_of(network: Network, nbytes: int) -> int:
    """The number of blocks for which a pipeline along the trees takes the least time.

    A pipeline of n rounds over trees with the mean depth d + 1 takes (n + d) (M / n B + s) for M bytes at rate B with s
    seconds of start-ups in a step: least for n = sqrt(d M / (B s)). In trees with fan 4, d is about half the binary
    logarithm of the number of hosts.

    :param network: the job's network.
    :param nbytes: bytes of the message.
    """
    rate = float(np.median(network.capacity)) if len(network.capacity) else np.inf
    depth = network.num_hosts.bit_length() / 2
    rounds = min(round(sqrt(depth * nbytes / (rate * START))), MOST_ROUNDS, nbytes // (TREES * LEAST_BYTES))
    return TREES * max(rounds, 1)


class _Trees:
    """The four trees over ranks, and the blocks that travel along them.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks.
    :param inwards: whether messages travel to the root.
    :ivar parent: parent of each rank in each tree, -1 at the root; first in the last rounds, the very last one first,
        then in all other rounds; shape (last rounds + 1, trees, p).
    :ivar depth: steps from the one in which the root sends a block to its arrival, both included, of the same shape.
    """

    def __init__(self, network: Network, root: int, blocks: int, *, inwards: bool = False) -> None:
        if blocks < 1:
            raise ValueError(f"expecting at least one block, got {blocks}")
        if not 0 <= root < network.num_ranks:
            raise ValueError(f"expecting root in range({network.num_ranks}), got {root}")
        from .packing import packing  # with four modules that only these trees need

        over = packing(network, root, inwards=inwards)
        parents, depths = (
            np.append(over.last_parent, over.parent[None], 0),
            np.append(over.last_depth, over.depth[None], 0),
        )
        made = [
            _over_ranks(network, root, tree % TREES, parent, depth)
            for tree, (parent, depth) in enumerate(zip(_rows(parents), _rows(depths), strict=True))
        ]
        both = np.array(made).reshape(len(parents), TREES, 2, -1)
        self.parent, self.depth = both[:, :, 0], both[:, :, 1]
        self.size, self.blocks, self.rounds = network.num_ranks, blocks, -(-blocks // TREES)
        turn, tree = divmod(np.arange(blocks), TREES)
        row = np.minimum(self.rounds - 1 - turn, len(parents) - 1)
        self.steps = int((turn + self.depth.max(axis=2)[row, tree]).max()) if self.size > 1 else 0

    def edges(self, step: Integers, rank: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """The steps, children, parents and blocks of the messages between some ranks and their parents in some steps.

        :param step: steps of a broadcast, shape (cells,).
        :param rank: rank of each cell, shape (cells,).
        """
        depth = self.depth[:, :, rank]
        turn = step - depth + 1
        number = np.arange(len(depth))[:, None, None]
        mine = turn == self.rounds - 1 - number
        mine[-1] = turn[-1] < self.rounds - number[-1]
        block = turn * TREES + np.arange(TREES)[:, None]
        row, tree, cell = np.nonzero(mine & (depth > 0) & (turn >= 0) & (block < self.blocks))
        order = np.argsort(cell, kind="stable")
        row, tree, cell = row[order], tree[order], cell[order]
        return step[cell], rank[cell], self.parent[row, tree, rank[cell]], block[row, tree, cell]

    def phase(self, make: Callable[[Integers, Integers], Rows]) -> GridPhase:
        """The phase of all messages; a cell has those between one rank and its parents in one step."""

        def near(rank: int) -> Integers:
            return np.union1d(np.flatnonzero((self.parent == rank).any(axis=(0, 1))), rank)

        return GridPhase(self.steps, members=self.size, make=make, near=near)


def _rows(cells: Integers) -> Integers:
    return cells.reshape(-1, cells.shape[-1])


def _over_ranks(network: Network, root: int, tree: int, parent: Integers, depth: Integers) -> tuple[Integers, Integers]:
    """The parent and the depth of each rank in a tree over hosts, which a binomial tree inside each host extends.

    The tree enters a host at the root, or at the rank whose place among the host's ranks is the tree's number.

    :param network: the job's network.
    :param root: the root's rank.
    :param tree: number of the tree.
    :param parent: parent of each host, shape (n,).
    :param depth: depth of each host, shape (n,).
    """
    head = np.array([ranks[tree % len(ranks)] for ranks in network.ranks_of_host])
    head[network.rank_host[root]] = root
    host = network.rank_host
    place = np.empty(network.num_ranks, dtype=np.int64)
    for ranks, first in zip(network.ranks_of_host, head.tolist(), strict=True):
        place[np.roll(ranks, -int(np.flatnonzero(ranks == first)[0]))] = np.arange(len(ranks))
    order = np.lexsort((place, host))
    inside, _ = among(host[order], np.arange(len(order)), 2)
    found = np.empty_like(place)
    found[order] = np.where(inside < 0, -1, order[inside])
    top = found < 0
    found[top] = np.where(parent[host[top]] < 0, -1, head[parent[host[top]]])
    # In a binomial tree, a node is as deep as its number has ones.
    deep = depth[host] + np.array([int(number).bit_count() for number in place.tolist()])
    return found, deep
