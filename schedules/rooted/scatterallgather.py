"""Broadcasts of long messages: a scatter of shares along a tree, then an allgather on a ring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .. import trees
from ..exchanges import ring
from ..network import Network
from ..phases import GridPhase, Phases
from ..schedule import INPUT, OUTPUT, Schedule
from ..transfers import Rows, transfers
from ..trees import Tree, ring_order
from .broadcast import of_rows

__all__ = ["scatter_allgather", "scatter_allgather_hosts"]

Integers = NDArray[np.int64]


def scatter_allgather(network: Network, *, root: int = 0, blocks: int | None = None, radix: int = 2) -> Schedule:
    """A broadcast by a scatter along a k-nomial tree, then an allgather on a ring, both in one order of the ranks.

    After van de Geijn (Barnett and others, 1994); an order of ranks along the network is due to Subramoni 2013, section
    4. The order is that of `schedules.trees.ring_order`. A share is the part of the message that one rank has after the
    scatter. Shares that a rank already had to pass on in the scatter are not sent to it again, and the root receives
    nothing.

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of the message, b, by default p; the share of rank i of the order is the range of
        blocks from i b / p to (i + 1) b / p.
    :param radix: k of the scatter's tree.
    Cost: at most p - 1 messages of up to 1/k of the message, then p - 1 per rank of 1/p of it, in ceil(log_k p) + p - 1
    steps, for p ranks; about twice the message leaves and enters each rank. It is fast for large messages.
    """
    order = ring_order(network, root=root)
    return _along_ring(network.num_ranks, "scatter-allgather", order, blocks, radix)


def scatter_allgather_hosts(network: Network, *, root: int = 0, blocks: int | None = None, radix: int = 2) -> Schedule:
    """A broadcast by `scatter_allgather` among one rank per host, which passes arriving shares on inside its host.

    MPI libraries, too, broadcast between hosts and inside hosts, but inside only after the whole message has arrived.
    Here shares travel from rank to rank inside a host while other shares travel on the ring between hosts. The hosts
    are in the order of `schedules.trees.ring_order` (after Subramoni 2013, section 4).

    :param network: the job's network.
    :param root: the root's rank.
    :param blocks: number of blocks of the message, by default the number of hosts, n.
    :param radix: k of the scatter's tree.
    Cost: at most n - 1 messages of up to 1/k of the message, then n per rank of 1/n of it, in ceil(log_k n) + n + r - 2
    steps with r ranks per host. It is faster than `scatter_allgather` for large messages on many ranks, because it
    takes fewer steps.
    """
    order = ring_order(network, root=root)
    first = np.sort(np.unique(network.rank_host[order], return_index=True)[1])
    return _along_ring(network.num_ranks, "scatter-allgather over hosts", order[first], blocks, radix, order)


def _along_ring(
    size: int, algorithm: str, order: Integers, blocks: int | None, radix: int, every: Integers | None = None
) -> Schedule:
    """A broadcast by a scatter among the ranks of an order, the root first, and an allgather on their ring.

    :param size: number of ranks, p.
    :param algorithm: name of the algorithm.
    :param order: ranks of the ring, shape (n,).
    :param blocks: number of blocks of the message, by default n.
    :param radix: k of the scatter's tree.
    :param every: all ranks, shape (p,), each behind the rank of the ring that supplies it; None if all are in the ring.
    """
    count = len(order)
    blocks = count if blocks is None else blocks
    tree = trees.knomial(count, radix)
    cut = blocks * np.arange(count + 1) // count
    rows = _scatter(tree, cut)
    rows[:, 1:3] = order[rows[:, 1:3]]
    around = _ring(tree, cut, order)
    start = int(tree.down.max()) + 1
    phases: Phases = ((start, around),)
    if every is not None and len(every) > count:
        phases = (*phases, (start, _handed_on(order, every, cut)))
    return of_rows(size, algorithm, rows, int(order[0]), blocks, phases)


def _scatter(tree: Tree, cut: Integers) -> Rows:
    """The schedule rows by which each node of the tree receives the shares of its sub-tree, a range of shares.

    :param tree: tree of the scatter; node i has share i at the end.
    :param cut: first block of each share, and the number of blocks, shape (nodes + 1,).
    """
    child = tree.others
    parent, first = tree.parent[child], cut[child]
    source = np.where(parent == 0, INPUT, OUTPUT)
    count = cut[child + tree.sizes[child]] - first
    return transfers(tree.down[child], parent, child, (source, first), (OUTPUT, first), count)


def _ring(tree: Tree, cut: Integers, order: Integers) -> GridPhase:
    """The allgather on a ring: each node sends its own share to the next node, then each share a step after it came.

    Shares that the next node already has from the scatter are not sent.

    :param tree: tree of the scatter.
    :param cut: first block of each share, and the number of blocks, shape (nodes + 1,).
    :param order: rank of each node, shape (nodes,).
    """

    def wanted(node: Integers, share: Integers) -> NDArray[np.bool_]:
        behind = (node + 1) % tree.size
        return (share < behind) | (share >= behind + tree.sizes[behind])

    buffer = np.where(np.arange(order.max() + 1) == order[0], INPUT, OUTPUT)  # the root receives nothing
    whole = ring(order, cut[:-1], np.diff(cut), buffer, wanted=wanted)
    # Share s starts from node s, so that node s - 1 would be the last on the ring to receive it, from node s - 2. But
    # ancestors of node s have the share since the scatter. The last sender is therefore the first node, from s - 2
    # backwards, whose next node on the ring is no ancestor. In a tree of two nodes there is none.
    share = np.flatnonzero(np.diff(cut))
    before = (share - 2) % tree.size
    for _ in range(tree.size):
        new = wanted(before, share)
        if new.all():
            break
        before = np.where(new, before, (before - 1) % tree.size)
    return replace(whole, steps=int(((before - share) % tree.size)[new].max(initial=-1)) + 1)


def _handed_on(order: Integers, every: Integers, cut: Integers) -> GridPhase:
    """The transfers that pass shares on from each rank of the ring, one by one, along the ranks that it supplies.

    In step s, from 0, the i-th rank of the ring passes on share i - s (modulo their number): its own if s is 0, else
    the share that it received from its neighbour in step s - 1.

    :param order: ranks of the ring.
    :param every: all ranks, each behind the rank of the ring that supplies it.
    :param cut: first block of each share, and the number of blocks.
    """
    count, place = len(order), np.argsort(every)
    heads = np.flatnonzero(np.isin(every, order))
    node = np.searchsorted(heads, np.arange(len(every)), "right") - 1
    depth = np.arange(len(every)) - heads[node]
    behind = np.flatnonzero(depth)

    def make(step: Integers, member: Integers) -> Rows:
        at = behind[member]
        turn = step - depth[at] + 1
        comes = (turn >= 0) & (turn < count)
        at, share = at[comes], (node[at[comes]] - turn[comes]) % count
        source = np.where(every[at - 1] == order[0], INPUT, OUTPUT)
        first, blocks = cut[share], np.diff(cut)[share]
        rows = transfers(step[comes], every[at - 1], every[at], (source, first), (OUTPUT, first), blocks)
        kept: Rows = rows[rows[:, 7] > 0]
        return kept

    def near(rank: int) -> Integers:
        return np.flatnonzero(np.isin(behind, place[rank] + np.arange(2)))  # the rank, and the one to which it sends

    return GridPhase(count + int(depth.max()) - 1, members=len(behind), make=make, near=near)
