"""A search for the order of hosts along a ring that loads the busiest link least, on given routes and rates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .network import Network

__all__ = ["AS_GOOD", "RingLoads", "search"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

EFFORT = 10_000  # routes that a search looks up at most, as a multiple of the number of hosts
AS_GOOD = 1 + 1e-9  # factor by which rounded times may differ
AGAIN = 8  # an improvement of the former order may take 1/8 of the effort
POWER = 4  # of a link's time in the sum that moves lower; high, so that the busiest links count most
WIDE = 16  # new neighbours of each end of a broken edge that are combined with all further edges
JUDGED = 24  # moves of each kind that are judged exactly
EDGES = 8  # edges over the busiest links that are tried before a ring counts as a local optimum
KICK = 50  # hosts in the part of a ring that a random move rearranges


class RingLoads:
    """The loads of links if each host sends one message to the next host of a ring.

    Times are relative to the bound, the least time that the busiest link of any ring needs: if only those pairs of
    hosts may be neighbours whose slowest link passes a message within this time, every host can still reach every other
    one.

    :param network: the job's network of n hosts, at least two.
    :param both: whether each host sends another message to the host before it, as if the ring ran in both directions.
    :ivar paths: links of each route, numbered among the links in use and padded, shape (n, n, longest route).
    :ivar time: time that each link in use needs for a message, relative to the bound; 0 for the padding.
    :ivar bound: lower bound on the busiest link's time, in seconds per byte.
    Cost: memory for n^2 routes.
    """

    def __init__(self, network: Network, *, both: bool = False) -> None:
        links, apart = network.links, ~np.eye(network.num_hosts, dtype=bool)
        if both:
            links = np.concatenate((links, links.transpose(1, 0, 2)), axis=2)
        there = np.zeros(len(network.capacity), dtype=bool)
        there[links[links >= 0]] = True
        used = np.flatnonzero(there)
        number = np.append(np.cumsum(there) - 1, len(used)).astype(np.int32)
        self.paths = number[links]  # link -1, the padding, gets the last number
        seconds = np.append(1.0 / network.capacity[used], 0.0)
        none = (network.hops < 0) & apart
        if none.any():  # a pair without a route crosses a link of its own, too slow for any ring that can avoid it
            self.paths[none, 0] = len(seconds)
            seconds = np.append(seconds, 1e3 * len(apart) * (seconds.max() or 1.0))
        self.bound = self._bound(seconds[self.paths].max(axis=2))
        self.time: Floats = seconds / self.bound

    @staticmethod
    def _bound(slowest: Floats) -> float:
        """The least threshold with which the pairs of hosts up to it, shape (n, n), connect all hosts both ways."""
        values = np.unique(slowest[~np.eye(len(slowest), dtype=bool)])
        low, high = 0, len(values) - 1
        while low < high:
            middle = (low + high) // 2
            parts, _ = connected_components(csr_array(slowest <= values[middle]), connection="strong")
            low, high = (low, middle) if parts == 1 else (middle + 1, high)
        return float(values[low])

    def edges(self, orders: Integers) -> NDArray[np.int32]:
        """The links of the routes from each host to the next one, shape (..., n, longest route).

        :param orders: hosts along one or more rings, shape (..., n).
        """
        return self.paths[orders, np.roll(orders, -1, axis=-1)]

    def judge(self, orders: Integers) -> tuple[Floats, Floats]:
        """The time of each ring's busiest link, and the sum over links of times to the power ``POWER``.

        :param orders: hosts along each ring, shape (rings, n).
        :returns: two arrays of shape (rings,), relative to the bound.
        """
        rings, links = len(orders), len(self.time)
        numbers = self.edges(orders).reshape(rings, -1) + links * np.arange(rings)[:, None]
        times = np.bincount(numbers.ravel(), minlength=links * rings).reshape(rings, links) * self.time
        return times.max(axis=1), (times**POWER).sum(axis=1)


class _Ring(NamedTuple):
    """A ring and its judgement by ``RingLoads.judge``: the busiest link's time, the sum over links, and the hosts."""

    top: float
    total: float
    order: Integers


def search(loads: RingLoads, first: Integers, effort: int = EFFORT, *, former: Integers | None = None) -> Integers:
    """Search the order of hosts along a ring whose busiest link needs the least time; never worse than a first order.

    The search begins with the first order, its reverse (routes there and back may differ), and an order in which each
    host is followed by the one whose route adds least to the links that are busy so far: on a torus this is a snake.
    Each is improved by moves that break an edge over a busiest link: or-3-opt moves, which exchange two successive
    parts of the ring (after Or 1976), and 2-opt moves, which reverse a part. Moves are ranked by the prices of the
    links that they use and free; those that rank first are judged by their loads. Random moves from a fixed seed lead
    out of local optima. The search ends when the busiest link is at the bound, or when the effort is spent.

    A former order, which was good before routes or rates changed, is improved before all others, because few moves may
    suffice.

    :param loads: loads of rings on the routes of n hosts.
    :param first: hosts in the first order, shape (n,).
    :param effort: routes that are looked up at most after the starts, as a multiple of n.
    :param former: hosts in a former order, shape (n,), or None; the result is no worse than this one either.
    Cost: O(n^2) routes looked up for the starts, and O(n) per move.
    """
    best = _best(loads, first[None])
    if best.top <= AS_GOOD:
        return first
    if former is not None:
        best = _improved(loads, _best(loads, former[None]), effort * len(first) // AGAIN)
        if best.top <= AS_GOOD:
            return best.order
    orders = (first, first[::-1], _nearest(loads, first))
    starts = sorted((best, *(_best(loads, one[None]) for one in orders)), key=_merit)[:3]
    best = starts[0]
    for start in starts:
        if best.top <= AS_GOOD:
            break
        best = min(best, _improved(loads, start, effort * len(first) // len(starts)), key=_merit)
    return best.order


def _merit(ring: _Ring) -> tuple[float, float]:
    return ring.top, ring.total


def _best(loads: RingLoads, orders: Integers) -> _Ring:
    """The ring with the least sum over links of some rings of shape (rings, n)."""
    tops, totals = loads.judge(orders)
    least = int(totals.argmin())
    return _Ring(float(tops[least]), float(totals[least]), orders[least])


def _nearest(loads: RingLoads, first: Integers) -> Integers:
    """An order in which each host is followed by the one whose route adds least to the sum over links.

    Among equals, the host that comes next in the first order.
    """
    count = len(first)
    paths = loads.paths[np.ix_(first, first)]
    load, free = np.zeros(len(loads.time)), np.arange(count) > 0
    order = np.zeros(count, dtype=np.int64)
    for place in range(1, count):
        here = order[place - 1]
        price = loads.time**POWER * ((load + 1) ** POWER - load**POWER)
        cost = np.where(free, np.round(price[paths[here]].sum(axis=1), 9), np.inf)
        order[place] = (here + np.roll(cost, -here).argmin()) % count
        free[order[place]] = False
        np.add.at(load, paths[here, order[place]], 1)
    return first[order]


def _improved(loads: RingLoads, ring: _Ring, effort: int) -> _Ring:
    """The best ring that moves lead to, from a given ring."""
    best = base = ring
    random, looked = np.random.default_rng(0), 0
    while best.top > AS_GOOD and looked < effort:
        better, spent, busiest = _moved(loads, ring)
        looked += spent
        if better is not None:
            ring = better
            best = min(best, ring, key=_merit)
            continue
        base = min(base, ring, key=lambda one: one.total)
        ring = _kicked(loads, base, int(random.choice(busiest)), random)
    return best


def _kicked(loads: RingLoads, ring: _Ring, place: int, random: np.random.Generator) -> _Ring:
    """The ring after an exchange of two random successive parts near a place."""
    count = len(ring.order)
    span = min(count, KICK)
    order = np.roll(ring.order, int(random.integers(span)) - place)
    one, two, three = np.sort(random.choice(np.arange(span), 3, replace=False))
    return _best(loads, np.concatenate((order[:one], order[two:three], order[one:two], order[three:]))[None])


def _moved(loads: RingLoads, ring: _Ring) -> tuple[_Ring | None, int, NDArray[np.intp]]:
    """The ring after the first move found that lowers the sum over links.

    :returns: the new ring, None if no move is found; the number of routes looked up; and the positions of the edges
        over the busiest links.
    """
    edges = loads.edges(ring.order)
    load = np.bincount(edges.ravel(), minlength=len(loads.time))
    scale, times = loads.time**POWER, load * loads.time
    prices = scale * ((load + 1.0) ** POWER - load**POWER)
    gain = (scale * (load**POWER - np.maximum(load - 1.0, 0) ** POWER))[edges].sum(axis=1)
    over = np.flatnonzero((times[edges] * AS_GOOD >= ring.top).any(axis=1))
    spent = len(edges)
    for place in over[np.argsort(-gain[over], kind="stable")][:EDGES].tolist():
        # The edge to break is the one from the last host to the first.
        turned, freed = np.roll(ring.order, -place - 1), np.roll(gain, -place - 1)
        tried, looked = _tried(loads, turned, freed, prices)
        spent += looked + tried.size
        found = _best(loads, tried)
        if found.total * AS_GOOD < ring.total:
            return found, spent, over
    return None, spent, over


def _tried(loads: RingLoads, order: Integers, gain: Floats, prices: Floats) -> tuple[Integers, int]:
    """The rings after the moves that break the edge from the last host to the first and have the least cost.

    :param loads: loads of rings.
    :param order: hosts along the ring, shape (n,).
    :param gain: amount by which the sum over links falls if the edge from each host to the next is removed, shape (n,).
    :param prices: amount by which the sum rises if a message is added to each link.
    :returns: the rings, shape (rings, n), and the number of routes looked up.
    """

    def cost(source: Integers | np.int64, target: Integers | np.int64) -> Floats:
        found: Floats = prices[loads.paths[source, target]].sum(axis=-1)
        return found

    last, first, inner = order[-1], order[0], np.arange(len(order) - 1)
    from_last, to_first = cost(last, order[1:]) - gain[:-1], cost(order[:-1], first) - gain[:-1]
    # Exchanged are order[i + 1 : j + 1] and the part behind it; one of the two new neighbours is a promising one.
    near, far = (np.argsort(one, kind="stable")[:WIDE] for one in (from_last, to_first))
    i = np.concatenate((np.repeat(near, len(inner)), np.tile(inner, len(far))))
    j = np.concatenate((np.tile(inner, len(near)), np.repeat(far, len(inner))))
    i, j = i[i < j], j[i < j]
    exchange = from_last[i] + to_first[j] + cost(order[i], order[j + 1])
    # Reversed is order[: k + 1]; the edges inside then lead the other way.
    inside = np.append(0.0, np.cumsum(cost(order[1:-1], order[:-2]) - gain[:-2]))
    reverse = cost(last, order[:-1]) + cost(first, order[1:]) - gain[:-1] + inside
    some, k = np.argsort(exchange, kind="stable")[:JUDGED], np.argsort(reverse, kind="stable")[:JUDGED, None]
    i, j, place = i[some, None], j[some, None], np.arange(len(order))
    behind = len(order) - 1 - j
    exchanged = np.where(place <= i, place, np.where(place <= i + behind, place + j - i, place - behind))
    reversed_ = np.where(place <= k, k - place, place)
    return order[np.concatenate((exchanged, reversed_))], 5 * len(inner) + len(exchange)
