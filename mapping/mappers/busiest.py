"""Relief of the busiest link of the routes by swaps of two ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from .links import tree_routes

__all__ = ["relieve"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(eq=False)
class _Traffic:
    """The time that each link is busy, and the edges that cause it.

    :param machine: hosts and their routes.
    :param cost: seconds per byte of each link, shape (links,).
    :param host: host of each rank, then of each empty slot, shape (slots,).
    :param source: sending rank of each edge, shape (edges,).
    :param target: receiving rank of each edge, shape (edges,).
    :param volume: bytes of each edge, shape (edges,).
    :param edges: indices of the edges from or to each rank.
    :param load: busy time of each link in seconds, shape (links,).
    :param used: links of the route of each edge, shape (edges, longest), padded with -1.
    """

    machine: Machine
    cost: Floats
    host: Integers
    source: Integers
    target: Integers
    volume: Floats
    edges: list[Integers]
    load: Floats
    used: NDArray[np.integer]

    def add(self, edges: Integers, sign: float) -> None:
        """Add the traffic of some edges to the load (sign 1), or remove it (sign -1)."""
        used = self.used[edges]
        there = used >= 0
        volume = np.broadcast_to(self.volume[edges, None], used.shape)[there]
        np.add.at(self.load, used[there], sign * volume * self.cost[used[there]])

    def swap(self, r: int, s: int) -> tuple[Integers, NDArray[np.integer]]:
        """Exchange two ranks' hosts, and return their edges and the links of these edges' previous routes."""
        edges = np.union1d(self.edges[r], self.edges[s])
        used = self.used[edges]
        self.add(edges, -1.0)
        self.host[r], self.host[s] = self.host[s], self.host[r]
        self.take(edges, self.machine.paths(self.host[self.source[edges]], self.host[self.target[edges]]))
        self.add(edges, 1.0)
        return edges, used

    def take(self, edges: Integers, paths: NDArray[np.integer]) -> None:
        """Set the routes of some edges.

        :param edges: indices of the edges.
        :param paths: links of their routes, shape (edges, longest), padded with -1.
        """
        more = max(paths.shape[1] - self.used.shape[1], 0)
        self.used = np.pad(self.used, ((0, 0), (0, more)), constant_values=-1) if more else self.used
        self.used[edges] = -1
        self.used[edges, : paths.shape[1]] = paths

    def rank(self) -> tuple[float, float]:
        """The pair of numbers that swaps must lower: seconds of the busiest link, and sum of squares of all seconds."""
        return float(self.load.max(initial=0.0)), float((self.load**2).sum())


def relieve(
    graph: CommunicationGraph, machine: Machine, seed: int = 0, *, start: Mapping | None = None, steps: int = 4000
) -> Mapping:
    """Reduce the load of the busiest link by swaps of a rank that uses it with another; a swap in vain is undone.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param start: mapping to improve; by default rank r on slot r.
    :param steps: number of swaps tried. Cost: O(degree x longest route + links) each.
    :raises MappingError: if the machine has neither routes nor clusters.
    """
    given, rng = start or Mapping.identity(machine, graph.size), np.random.default_rng(seed)
    routed = machine if machine.routes is not None else tree_routes(machine)
    traffic = _traffic(graph, routed, given)
    now = traffic.rank()
    for _ in range(steps if now[0] > 0 else 0):
        r, s = _pair(traffic, rng)
        if traffic.host[r] == traffic.host[s]:
            continue
        before = traffic.load.copy()
        edges, used = traffic.swap(r, s)
        then = traffic.rank()
        if then < now:
            now = then
        else:
            traffic.host[r], traffic.host[s] = traffic.host[s], traffic.host[r]
            traffic.take(edges, used)
            traffic.load = before
    return Mapping.on_hosts(traffic.host[: graph.size], machine)


def _pair(traffic: _Traffic, rng: np.random.Generator) -> tuple[int, int]:
    """Choose two ranks to swap: a rank that sends or receives over the busiest link, and a second rank.

    The second one is, with equal probability, a rank on the host of the first one's partner, or any rank.
    """
    edges = np.flatnonzero((traffic.used == int(np.argmax(traffic.load))).any(axis=1))
    edge = int(rng.choice(edges))
    r, other = (traffic.source, traffic.target) if rng.random() < 0.5 else (traffic.target, traffic.source)
    mates = np.flatnonzero(traffic.host == traffic.host[other[edge]])
    if rng.random() < 0.5:
        return int(r[edge]), int(rng.choice(mates))
    return int(r[edge]), int(rng.integers(len(traffic.host)))


def _traffic(graph: CommunicationGraph, machine: Machine, given: Mapping) -> _Traffic:
    """The traffic of a mapping on a machine with routes.

    :raises MappingError: if the machine has no routes.
    """
    if machine.routes is None or machine.capacity is None:
        raise MappingError("busiest link: expecting a machine with routes, got one without")
    proper = graph.sources != graph.targets
    source, target = graph.sources[proper], graph.targets[proper]
    host = np.r_[given.host_of_rank, machine.slot_host[given.rank_of_slot < 0]]
    ends, edge = np.r_[source, target], np.tile(np.arange(len(source)), 2)
    order = np.argsort(ends, kind="stable")
    bounds = np.searchsorted(ends[order], np.arange(1, len(host)))
    edges = np.split(edge[order], bounds)
    volume = graph.volume[proper].astype(np.float64)
    empty = np.zeros(len(machine.capacity))
    used = machine.paths(host[source], host[target])
    made = _Traffic(machine, 1.0 / machine.capacity, host, source, target, volume, edges, empty, used.copy())
    made.add(np.arange(len(source)), 1.0)
    return made
