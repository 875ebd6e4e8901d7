"""The least time of a collective whose messages between hosts take the network's own routes, by linear programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.sparse import block_array, csr_array

from .cuts import Graph, Need, Side, violated, worst_cut

__all__ = ["MOST_HOSTS", "Routed", "least_on_routes"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_HOSTS = 256  # with more hosts the linear programs take many seconds
EFFORT = 512  # hosts, times rounds of two linear programs less one
NEAREST = 6  # hosts to which each host sends at first, besides its neighbours in their order and in a random one
linprog: Any = optimize.linprog  # its stubs know no sparse arrays
CLOSE = 1e-6  # relative difference of two times that counts as none


@dataclass(frozen=True, eq=False)
class Routed:
    """Bounds of the least time on given routes.

    :param seconds: time that no schedule can beat, per byte.
    :param reached: time that packings of trees reach, per byte.
    :param prices: a price per byte of each link, shape (links,), whose sum over links, times their rates, is 1: every
        schedule pays at least ``seconds`` for its routes. All 0 if ``seconds`` is the time that was given.
    """

    seconds: float
    reached: float
    prices: Floats


def least_on_routes(
    paths: NDArray[np.int32], rate: Floats, need: Need, least: float, guesses: Iterable[Side] = ()
) -> Routed:
    """The least time in which hosts can exchange data if each message takes the route between its two hosts.

    The variables are the bytes that each host sends to each other one; hosts pass data on. A linear program minimises
    the time of the busiest link while the bytes that leave some sets of hosts are as many as must leave them. Its dual
    values, lowered until no pair of hosts is worth more than its route costs, prove a bound. Trees that share the bytes
    as Edmonds (1973) divides them reach the time that the worst of all sets of hosts has, which joins the linear
    program. Pairs of hosts join when their routes are worth more than they cost.

    :param paths: links of the route from host i to host j, shape (hosts, hosts, longest), padded with -1.
    :param rate: rate of each link in bytes/s, shape (links,).
    :param need: the bytes that must leave a set of hosts.
    :param least: time below which the result cannot be, for example that of a cut of the network, in seconds.
    :param guesses: sets of hosts to begin with, besides each host alone and all but each, of shape (hosts,).
    Cost: at most 16 linear programs with some 10 variables per host, and 8 times the flows of ``worst_cut``.
    """
    program = _Program(paths, rate, need)
    every = np.arange(len(paths))
    for host in every:
        program.add_cut(every == host)
        program.add_cut(every != host)
    for guess in guesses:
        program.add_cut(guess)
    best, reached = Routed(least, np.inf, np.zeros_like(rate)), np.inf
    last = EFFORT // len(paths)
    for turn in range(last + 1):
        seconds, prices, worth = program.solve()
        proved, more = program.proof(prices, worth)
        if proved > best.seconds * (1 + CLOSE):
            best = Routed(proved, np.inf, prices)
        graph = program.spread(seconds)
        sides = [] if np.isinf(seconds) else list(violated(graph, need, 1.0))
        if not sides or turn == last:
            reached = seconds * (worst_cut(graph, need)[0] if sides else 1.0)
        if reached <= best.seconds * (1 + CLOSE) or not (sides or more):
            break
        program.join(sides)
    return Routed(best.seconds, max(reached, best.seconds), best.prices)


class _Program:
    """The linear program: its pairs of hosts, its sets of hosts, and the routes."""

    def __init__(self, paths: NDArray[np.int32], rate: Floats, need: Need) -> None:
        self.paths, self.need, self.hosts = paths, need, len(paths)
        self.unit, self.bytes = rate.max(), max(float(need.weight.sum()), 1.0)
        self.rate = rate / self.unit
        self.cuts: dict[bytes, Side] = {}
        self.needed: list[float] = []
        self.hops = (paths >= 0).sum(axis=2)
        self.joining, self.usable = (np.zeros((self.hosts, self.hosts), dtype=bool) for _ in range(2))
        self.wanted = self._nearest(np.ones((self.hosts, self.hosts), dtype=bool))
        every = np.arange(self.hosts)
        for order in (every, np.random.default_rng(0).permutation(self.hosts)):  # a random ring leaves every cluster
            self.wanted[order, np.roll(order, 1)] = self.wanted[np.roll(order, 1), order] = True
        self.wanted &= self.hops > 0

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Senders and receivers of the pairs of hosts in the program."""
        source, destination = np.nonzero(self.wanted)
        return source, destination

    def _nearest(self, among: Side) -> Side:
        """Return the nearest receivers of each sender among some pairs of hosts, and the reverse of these pairs."""
        every = np.arange(self.hosts)
        away = (self.hops * self.hosts + (every - every[:, None]) % self.hosts).astype(np.float64)
        away[~among | (self.hops == 0)] = np.inf
        near = np.argsort(away, axis=1, kind="stable")[:, :NEAREST]
        wanted = np.zeros_like(among)
        wanted[np.repeat(every, near.shape[1]), near.ravel()] = True
        both: Side = (wanted | wanted.T) & (self.hops > 0)
        return both

    def join(self, sides: Sequence[Side]) -> None:
        """Add sets of hosts, the nearest pairs across their borders, and the pairs that prices favour."""
        across = np.zeros_like(self.wanted)
        for side in sides:
            self.add_cut(side)
            across |= side[:, None] != side
        self.wanted |= self.joining | self._nearest(self.usable & across)

    def add_cut(self, side: Side) -> None:
        """Add a set of hosts, unless it is known or no bytes must leave it."""
        needed = self.need.of(side) / self.bytes
        if needed and side.tobytes() not in self.cuts:
            self.cuts[side.tobytes()] = side
            self.needed.append(needed)

    def _rows(self) -> tuple[csr_array, csr_array]:
        """Which pairs' routes cross each link, and which pairs leave each set."""
        source, destination = self.pairs
        routes = self.paths[source, destination]
        pair, place = np.nonzero(routes >= 0)
        shape = len(self.rate), len(source)
        crosses = csr_array((np.ones(len(pair)), (routes[pair, place], pair)), shape=shape)
        cuts = np.array(list(self.cuts.values()))
        return crosses, csr_array((cuts[:, source] & ~cuts[:, destination]).astype(np.float64))

    def solve(self) -> tuple[float, Floats, Floats]:
        """The least time in seconds, the price of each link in seconds per byte, and of each set per needed byte."""
        crosses, leaves = self._rows()
        matrix = block_array([[crosses, csr_array(-self.rate[:, None])], [-leaves, None]], format="csr")
        bound = np.concatenate((np.zeros(len(self.rate)), -np.array(self.needed)))
        objective = np.zeros(matrix.shape[1])
        objective[-1] = 1
        found = linprog(objective, A_ub=matrix, b_ub=bound, method="highs")
        if found.status:
            return np.inf, np.zeros_like(self.rate), np.zeros(len(self.cuts))
        prices = -found.ineqlin.marginals
        of_links, of_sets = np.split(prices / self.unit, [len(self.rate)])
        return found.fun * self.bytes / self.unit, of_links, of_sets

    def proof(self, prices: Floats, worth: Floats) -> tuple[float, bool]:
        """The time that prices prove, and whether there are new pairs that are worth more than their routes cost.

        :param prices: price of each link in seconds per byte, shape (links,).
        :param worth: what a byte that leaves each set is worth in seconds, shape (sets,).
        """
        cost = np.append(prices, 0.0)[self.paths].sum(axis=2)
        cuts = np.array(list(self.cuts.values()), dtype=np.float64)
        value = (cuts * worth[:, None]).T @ (1 - cuts)
        valued = (value > value.max(initial=0.0) * 1e-12) & (self.paths >= 0).any(axis=2)
        ratio = np.divide(cost, value, out=np.full_like(value, np.inf), where=valued)
        scale = min(float(ratio.min(initial=np.inf)), 1.0)
        cheap = ratio < 1 - CLOSE
        self.usable = (cost <= value * (1 + CLOSE)) | (cost == 0)
        last = np.sort(ratio, axis=1)[:, min(NEAREST, self.hosts - 1)]
        new = cheap & (ratio <= last[:, None]) & ~self.wanted
        self.joining = new
        return scale * float(worth @ np.array(self.needed)) * self.bytes, bool(new.any())

    def spread(self, seconds: float) -> Graph:
        """The bytes of each pair of hosts within a time as a graph; those worth their cost share links if possible."""
        crosses, leaves = self._rows()
        equal = self.usable[self.pairs].astype(np.float64)
        share = np.append(self.rate / np.maximum(crosses @ equal, 1.0), np.inf)
        equal *= share[self.paths[self.pairs]].min(axis=1)
        matrix = block_array(
            [[crosses, csr_array((crosses @ equal)[:, None])], [-leaves, csr_array(-(leaves @ equal)[:, None])]],
            format="csr",
        )
        limit = self.rate * (seconds * self.unit / self.bytes) * (1 + 1e-9)
        objective = np.zeros(len(equal) + 1)
        objective[-1] = -1
        found = linprog(objective, A_ub=matrix, b_ub=np.concatenate((limit, -np.array(self.needed))), method="highs")
        sent = np.zeros(len(equal)) if found.status else np.maximum(found.x[:-1], 0) + found.x[-1] * equal
        return Graph(*self.pairs, sent * self.bytes, np.arange(len(sent)), self.hosts, self.hosts)
