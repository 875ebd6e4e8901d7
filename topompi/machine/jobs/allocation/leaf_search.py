"""A search, leaf by leaf and from several first leaves at once, for leaves whose routes cross no link in use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .leaf_bits import LeafWords, Words, bit_count, unpack

__all__ = ["LeafSearch"]

Indices = NDArray[np.integer]


class _Step(NamedTuple):
    """One leaf more for each attempt that goes on.

    :param attempt: ascending numbers of these attempts, shape (attempts,).
    :param leaf: the leaf that each adds, shape (attempts,).
    :param taken: words of the nodes that each takes of this leaf, shape (attempts, most words of a leaf).
    :param others: number of candidates on each other leaf before the step, shape (attempts, leaves).
    :param total: number of nodes that each has taken in all steps so far, shape (attempts,).
    """

    attempt: Indices
    leaf: Indices
    taken: Words
    others: Indices
    total: Indices


class LeafSearch:
    """A greedy search for nodes for jobs of any size, with two attempts per first leaf, a plain one and a careful one.

    Each step adds one leaf to every attempt: the leaf with the most candidates, that is, nodes whose routes to and from
    all chosen nodes cross no link in use. The careful attempt leaves out nodes that exclude other candidates. The
    attempts are the rows of common arrays. A job's size matters in its last step only; therefore all jobs have the same
    steps, which are made when a job needs them.

    :param leaves: the leaves' words.
    :param nodes: the nodes that jobs may get, shape (words,).
    :param open_routes: the nodes to which each leaf's route crosses no link in use, shape (leaves, words).
    :param starts: number of first leaves that are tried; these are the leaves with the most nodes.
    :param least: size of the smallest job; attempts that cannot have enough nodes for it end.
    """

    def __init__(self, leaves: LeafWords, nodes: Words, open_routes: Words, starts: int, least: int) -> None:
        self.leaves, self.open, self.least = leaves, open_routes, least
        self.shut = ~open_routes.T.copy()
        sizes = leaves.by_leaf(nodes).astype(np.int64)
        begin = np.argsort(-sizes, kind="stable")[: min(starts, np.count_nonzero(sizes))]
        self.leaf = np.repeat(begin, 2)
        self.attempt = np.arange(len(self.leaf))
        self.candidates = np.repeat(nodes[None], len(self.leaf), axis=0)
        self.count = leaves.by_leaf(self.candidates)
        self.total = np.zeros(len(self.leaf), dtype=np.int64)
        self.most = int(sizes.sum())  # nodes that an attempt may have at last
        self.steps: list[_Step] = []
        self.best: list[int] = []  # largest total of each step

    def run(self, size: int) -> Words | None:
        """Return ``size`` nodes found by the attempt that needs the fewest leaves; None if all attempts fail.

        :param size: number of nodes, ``least`` or more.
        """
        at = 0
        while at < len(self.best) or self.most >= size:
            if at == len(self.best):
                self._step()
            if self.best[at] >= size:
                return self._chosen(at, size)
            at += 1
        return None

    def _step(self) -> None:
        """Let every attempt take the nodes of its next leaf, and drop candidates that these exclude."""
        rows, words = np.arange(len(self.leaf)), self.leaves.of_leaf[self.leaf]
        shut, careful = self.shut[words], self.attempt % 2 == 1
        self.count[rows, self.leaf] = 0
        taken = self.candidates[rows[:, None], words] & self.leaves.mask[self.leaf]
        excluding = shut[careful] * (self.count[careful] > 0)[:, None]
        taken[careful] &= ~np.bitwise_or.reduce(excluding, axis=2)
        self.total = self.total + bit_count(taken).sum(axis=1, dtype=np.int64)
        self.steps.append(_Step(self.attempt, self.leaf, taken, self.count, self.total))
        self.best.append(int(self.total.max()))
        lost = ((shut & taken[:, :, None]) != 0).any(axis=1)
        self.candidates = self.candidates & self.open[self.leaf]
        self.candidates *= self.leaves.by_word(~lost)
        self.candidates[rows[:, None], words] = 0
        self._keep(taken.any(axis=1))

    def _keep(self, alive: NDArray[np.bool_]) -> None:
        """Keep those attempts of ``alive`` that may have enough nodes for the smallest job."""
        count = self.leaves.by_leaf(self.candidates)
        reach = self.total + count.sum(axis=1, dtype=np.int64)
        alive &= reach >= self.least
        self.attempt, self.candidates, self.total = self.attempt[alive], self.candidates[alive], self.total[alive]
        self.count, self.most = count[alive], int(reach[alive].max(initial=0))
        self.leaf = np.argmax(self.count, axis=1)

    def _chosen(self, last: int, size: int) -> Words:
        """Return the nodes of the first attempt that has ``size`` after a step; of its last leaf, it needs only some.

        Of these, it takes those that exclude the fewest candidates.

        :param last: number of the step.
        :param size: number of nodes.
        """
        end = self.steps[last]
        chosen: Words = np.zeros_like(self.open[0])
        row = int(np.argmax(end.total >= size))
        words, flags = self.leaves.of_leaf[end.leaf[row]], unpack(end.taken[row])
        able = np.flatnonzero(flags)
        lost = (end.others[row].astype(np.int64) @ unpack(self.shut[words].T))[able]
        flags[able[np.argsort(lost, kind="stable")[len(able) - int(end.total[row]) + size :]]] = 0
        taken = np.packbits(flags, bitorder="little").view(chosen.dtype)
        np.bitwise_or.at(chosen, words, taken)
        for step in self.steps[:last]:
            before = np.searchsorted(step.attempt, end.attempt[row])
            np.bitwise_or.at(chosen, self.leaves.of_leaf[step.leaf[before]], step.taken[before])
        return chosen
