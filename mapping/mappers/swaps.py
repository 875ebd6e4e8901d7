"""Swaps of two ranks with their savings of hop-bytes, in numpy: the state that every refinement changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..graph import Undirected

__all__ = ["SwapState", "make_state"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
LARGEST_DENSE = 1200


@dataclass(eq=False)
class SwapState:
    """Ranks on places (hosts, or clusters of one level), and the cost of each rank on each place.

    Empty slots have ranks without edges, so that a move to an empty slot is a swap, too.

    :param graph: symmetric graph of all m ranks.
    :param distance: distance between places, symmetric, shape (n, n).
    :param first: first slot of each place, and the number of slots, shape (n + 1,); every place has slots.
    :param rank_at: rank on each slot, shape (m,).
    :param slot_of: slot of each rank, shape (m,).
    :param place: place of each rank, shape (m,).
    :param cost: cost of each rank on each place if the others stay, shape (m, n).
    """

    graph: Undirected
    distance: Floats
    first: Integers
    rank_at: Integers
    slot_of: Integers
    place: Integers
    cost: Floats

    @property
    def total(self) -> float:
        """The sum of weight times distance over the edges in both directions."""
        return float(self.cost[np.arange(len(self.place)), self.place].sum())

    def gains(self, a: int, b: int) -> Floats:
        """The saving of swapping each rank on place a with each rank on place b, shape (slots of a, slots of b).

        It is half of the decrease of `total`.
        """
        here, there = self.on(a), self.on(b)
        leave_a = self.cost[here, a] - self.cost[here, b]
        leave_b = self.cost[there, b] - self.cost[there, a]
        # The distance between the two ranks stays the same, so what their common edge seemed to save is subtracted.
        together = 2 * self.distance[a, b] - self.distance[a, a] - self.distance[b, b]
        gain: Floats = leave_a[:, None] + leave_b - together * self.between(here[:, None], there)
        return gain

    def on(self, place: int) -> Integers:
        """The ranks on a place."""
        return self.rank_at[self.first[place] : self.first[place + 1]]

    def swap(self, r: int, s: int) -> None:
        """Exchange two ranks. Cost: O(degree x places)."""
        a, b = self.place[r], self.place[s]
        change = self.distance[b] - self.distance[a]
        offsets, targets, weight = self.graph
        # The neighbours of a rank are all different, so this indexed addition omits none.
        for rank, sign in ((r, 1.0), (s, -1.0)):
            near = slice(offsets[rank], offsets[rank + 1])
            self.cost[targets[near]] += (sign * weight[near])[:, None] * change
        i, j = self.slot_of[r], self.slot_of[s]
        self.rank_at[i], self.rank_at[j], self.slot_of[r], self.slot_of[s] = s, r, j, i
        self.place[r], self.place[s] = b, a

    def restore(self, place: Integers) -> None:
        """Restore earlier places of all ranks, and compute all costs anew."""
        fresh = make_state(self.graph, place, self.distance)
        self.rank_at, self.slot_of, self.place, self.cost = fresh.rank_at, fresh.slot_of, fresh.place, fresh.cost

    @cached_property
    def sources(self) -> Integers:
        """The rank from which each edge starts, shape (edges,)."""
        return np.repeat(np.arange(len(self.place)), np.diff(self.graph.offsets))

    @cached_property
    def _keys(self) -> Integers:
        return self.sources * len(self.place) + self.graph.targets

    @cached_property
    def _dense(self) -> Floats | None:
        """All weights as a table, if there are few ranks, because reading it is faster than searching edges."""
        size = len(self.place)
        if size > LARGEST_DENSE:
            return None
        table = np.zeros((size, size))
        table[self.sources, self.graph.targets] = self.graph.weight
        return table

    def between(self, r: Integers, s: Integers) -> Floats:
        """The weight of the edge between each rank of r and the corresponding one of s; 0 without an edge."""
        if self._dense is not None:
            return self._dense[r, s]
        wanted = r * len(self.place) + s
        found = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[found] == wanted, self.graph.weight[found], 0.0)

    def candidates(self, least: float, touched: Integers | None = None) -> list[tuple[int, int]]:
        """Pairs of places between which a swap may save more than ``least``, the most promising first.

        The estimate is an upper bound: the best rank of each place for the other, as if the two had no common edge.

        :param least: saving that a swap must exceed, in units of weight times distance.
        :param touched: places; a pair without one of them is left out. By default no pair is left out.
        Cost: O(ranks x places); with ``touched`` O(ranks x touched places).
        """
        places = np.arange(len(self.distance)) if touched is None else touched
        own = self.cost[self.rank_at, self.place[self.rank_at]]
        coming = own[:, None] - self.cost[self.rank_at[:, None], places]
        hope = np.maximum.reduceat(coming, self.first[:-1], axis=0).T
        hope = hope + (hope.T if touched is None else self._leaving(places, own))
        hope[np.arange(len(places)), places] = -np.inf
        if touched is None:
            hope = np.triu(hope, 1)
        a, b = np.nonzero(hope > least)
        order = np.argsort(-hope[a, b], kind="stable")
        return list(zip(places[a[order]].tolist(), b[order].tolist(), strict=True))

    def _leaving(self, places: Integers, own: Floats) -> Floats:
        """The largest saving by which a rank of each given place could move to each place, shape (places, n)."""
        best = [(own[i:j, None] - self.cost[self.rank_at[i:j]]).max(axis=0) for i, j in self._spans(places)]
        return np.array(best)

    def _spans(self, places: Integers) -> list[tuple[int, int]]:
        return list(zip(self.first[places].tolist(), self.first[places + 1].tolist(), strict=True))


def make_state(graph: Undirected, place: Integers, distance: Floats) -> SwapState:
    """Make the state of ranks on places; every place in range(len(distance)) must have a rank.

    :param graph: symmetric graph of m ranks.
    :param place: place of each rank, shape (m,).
    :param distance: distance between places, symmetric, shape (n, n).
    """
    count = np.bincount(place, minlength=len(distance))
    rank_at = np.argsort(place, kind="stable")
    slot_of = np.empty_like(rank_at)
    slot_of[rank_at] = np.arange(len(rank_at))
    size = len(place)
    key = np.repeat(np.arange(size), np.diff(graph.offsets)) * len(distance) + place[graph.targets]
    weights = np.bincount(key, graph.weight, size * len(distance)).reshape(size, len(distance))
    first = np.r_[0, np.cumsum(count)].astype(np.int64)
    return SwapState(graph, distance, first, rank_at, slot_of, place.copy(), weights @ distance)
