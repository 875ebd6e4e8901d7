"""The arrivals (step, ranks, block) of a broadcast over two binary trees, each of which carries every second block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrivals", "parents"]

Integers = NDArray[np.int64]


def parents(size: int) -> Integers:
    """The parent of each rank in both trees, shape (2, p); -1 for the root, 0.

    P. Sanders, J. Speck and J. L. Träff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel
    Computing 35(12), 2009. The first tree is the binary tree whose in-order walk is 1, 2, ... p - 1. The second one is
    its mirror image if p is odd, and its shift by one place if p is even. A rank has children in at most one of them.

    :param size: number of ranks, p.
    """
    rank = np.arange(1, size, dtype=np.int64)
    low = rank & -rank
    above = rank - low | 2 * low
    first = np.where(above < size, above, rank - low)
    other = size - rank if size % 2 else (rank - 2) % max(size - 1, 1) + 1  # each rank's place in the second tree
    names = np.zeros(size, dtype=np.int64)
    names[other] = rank
    second = names[first[other - 1]]
    return np.concatenate(([[-1], [-1]], np.stack((first, second))), axis=1)


def _parities(parent: Integers) -> Integers:
    """The parity of the steps in which each rank receives in each tree, 0 for even and 1 for odd, shape (2, p).

    A rank must receive in even steps in one tree and in odd steps in the other, and must send to one of its two
    children in even steps and to the other in odd steps. A message thus differs from at most two others, that of the
    same receiver in the other tree and that of the same sender to its other child. Joined by these rules, messages form
    paths and cycles of even length, along which parities alternate.

    :param parent: parent of each rank in both trees, shape (2, p), as ``parents`` returns it.
    """
    size = parent.shape[1]
    sibling = np.full(2 * size, -1, dtype=np.int64)  # the sender's other message, as tree * size + receiver; -1 if none
    message = np.flatnonzero(parent.ravel() >= 0)
    sender = parent.ravel()[message]
    order = np.argsort(sender, kind="stable")
    message, sender = message[order], sender[order]
    twice = np.flatnonzero(sender[1:] == sender[:-1])
    sibling[message[twice]], sibling[message[twice + 1]] = message[twice + 1], message[twice]
    found = np.full(2 * size, -1, dtype=np.int64)
    # A path must be followed from one of its ends, so paths come first; then only cycles are left.
    for begin in [*message[sibling[message] < 0].tolist(), *message.tolist()]:
        at, parity = begin, 0
        while at >= 0 and found[at] < 0:
            other = (at + size) % (2 * size)
            found[at], found[other] = parity, 1 - parity
            at = int(sibling[other])
    return found.reshape(2, size)


def arrivals(size: int, blocks: int) -> tuple[Integers, Integers, Integers, Integers]:
    """The step, sender, receiver and block of all arrivals of a broadcast from rank 0; each rank gets each block once.

    A rank sends and receives at most one block per step. Steps: at most b + 2 log2 p.

    :param size: number of ranks, p.
    :param blocks: number of blocks, b; even blocks go over the first tree.
    """
    if size < 2:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none, none
    parent = parents(size)
    parity = _parities(parent)
    first: Integers = np.full((2, size), -1, dtype=np.int64)
    for tree in range(2):
        level = np.flatnonzero(parent[tree] == 0)
        while len(level):
            earliest = first[tree, parent[tree, level]] + 1
            first[tree, level] = earliest + (earliest + parity[tree, level]) % 2
            level = np.flatnonzero(np.isin(parent[tree], level))
    receiver, block = (axis.ravel() for axis in np.indices((size - 1, blocks)))
    receiver += 1
    which = block % 2
    return first[which, receiver] + block // 2 * 2, parent[which, receiver], receiver, block
