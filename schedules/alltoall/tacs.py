"""Topology-aware alltoall schedules of Subramoni 2013 (TACS): hosts are matched so that no link is shared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from .hostschedule import HostSchedule, inside_first
from .leafroutes import LeafRoutes

__all__ = ["matchings", "tacs1", "tacs2"]

Integers = NDArray[np.int64]
Pair = tuple[int, int]


def tacs1(network: Network, *, limit: int = 1, blocks: int = 1, counts: Integers | None = None) -> HostSchedule:
    """An alltoall by pairwise exchange of hosts that are matched along free links; a host without a partner idles.

    Subramoni, "Topology-Aware MPI Communication and Scheduling for High Performance Computing Systems", 2013, chapter
    6. Step 0 is the exchange inside hosts. Then come n - 1 matchings of the n hosts, which are the P regular steps of
    the source if all hosts have the same number of ranks. Last come extra steps for pairs that were not matched,
    because links carry at most ``limit`` transfers per step.

    :param network: network of the job's p ranks.
    :param limit: number of transfers that a link between switches may carry in a step; if it is 1, no link is shared.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :raises ValueError: if the limit is below 1, or two hosts have no route.
    Cost: each rank sends p - 1 messages. It is faster than `direct.alltoall_pairwise` for large messages if hosts share
    links.
    """
    rows = inside_first(_both_ways(matchings(network, limit=limit)), network.num_hosts)
    return HostSchedule.of_rows("tacs1", network.rank_host, rows, blocks=blocks, counts=counts)


def tacs2(network: Network, *, limit: int = 1, blocks: int = 1, counts: Integers | None = None) -> HostSchedule:
    """An alltoall as `tacs1` without extra steps: hosts make the transfers of extra steps in steps in which they idle.

    Our reading of the source: with n hosts, a host idles in as many of the first n - 1 matchings as it has transfers in
    extra steps. It makes these transfers in their order, one in each idle step. Because the step of a message depends
    on its sender only, a host may receive from several hosts in one step; ``window`` is 2 so that this step overlaps
    the next one. Links may be shared.

    Cost: as ``tacs1``. It is fast for exchanges that load the network little (FFT rows and columns).

    :param network: network of the job's p ranks.
    :param limit: number of transfers that a link between switches may carry in a step of the matchings.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :raises ValueError: if the limit is below 1, or two hosts have no route.
    """
    rows = _both_ways(matchings(network, limit=limit))
    regular = max(network.num_hosts - 1, 0)
    rows = _into_idle_steps(rows, network.num_hosts, regular)
    rows = inside_first(rows, network.num_hosts)
    return HostSchedule.of_rows("tacs2", network.rank_host, rows, blocks=blocks, counts=counts, window=2)


def matchings(network: Network, *, limit: int = 1) -> Integers:
    """The pairs of the n hosts that exchange, as rows (step, host, host), each pair once, shape (n (n - 1) / 2, 3).

    Each step is a matching found greedily: each host takes the farthest remaining partner for which no link is shared
    in either direction. If the limit is above 1, the unmatched hosts then try again with up to ``limit`` transfers per
    link. The source leaves some choices open. Here hosts with the most remaining exchanges choose first; among equally
    far partners a host takes the next one by number; the distance of two hosts is that of their leaf switches; and a
    link whose rate is a multiple of the host links' rate carries that multiple of transfers.

    :param network: the job's network.
    :param limit: number of transfers that a link between switches may carry in a step.
    :raises ValueError: if the limit is below 1, or two hosts have no route.
    Cost: about 10 microseconds per pair, because sets of hosts are integers, and a full link removes whole leaves.
    """
    if limit < 1:
        raise ValueError(f"expecting limit of at least 1, got {limit}")
    routes = LeafRoutes.of(network)
    every = (1 << network.num_hosts) - 1
    left = [every & ~(1 << host) for host in range(network.num_hosts)]
    busy = list(range(network.num_hosts))
    pairs: list[Pair] = []
    sizes: list[int] = []
    while busy := [host for host in busy if left[host]]:
        before = len(pairs)
        busy.sort(key=lambda host: -left[host].bit_count())
        step = _Step(routes, every)
        pairs.extend(step.match(busy, left, 1))
        if limit > 1:
            pairs.extend(step.match(busy, left, limit))
        sizes.append(len(pairs) - before)
    steps = np.repeat(np.arange(len(sizes)), sizes)
    return np.column_stack((steps, np.array(pairs, dtype=np.int64).reshape(-1, 2)))


class _Step:
    """The state of one step: the free hosts, and the number of transfers on each link."""

    def __init__(self, routes: LeafRoutes, every: int) -> None:
        self.routes = routes
        self.free = every
        self.load = [0] * len(routes.room)

    def match(self, hosts: list[int], left: list[int], limit: int) -> Iterator[Pair]:
        """Yield pairs of free hosts that exchange in this step, and note the load that they put on links.

        :param hosts: hosts in the order in which they choose a partner.
        :param left: partners that each host still has to meet, as a set of bits; pairs that are yielded are removed.
        :param limit: factor on the number of transfers that each link carries at full rate.
        """
        routes, load, room = self.routes, self.load, self.routes.room
        leaf, route = routes.leaf, routes.route
        full: set[int] = set()
        cut_off = [0] * routes.num_levels
        for host in hosts:
            partner = self._partner(host, left[host], cut_off, full) if self.free >> host & 1 else -1
            if partner < 0:
                continue
            pair = 1 << host | 1 << partner
            self.free &= ~pair
            left[host] &= ~pair
            left[partner] &= ~pair
            yield host, partner
            for link in (*route[leaf[host]][partner], *route[leaf[partner]][host]):
                load[link] += 1
                if load[link] == limit * room[link]:  # with less load, the link excludes no partner
                    full.add(link)
                    for level, members in routes.cuts_off[link]:
                        cut_off[level] |= members

    def _partner(self, host: int, left: int, cut_off: list[int], full: set[int]) -> int:
        """The farthest host with which ``host`` can exchange, -1 if there is none."""
        routes = self.routes
        here = routes.leaf[host]
        candidates = left & self.free
        if candidates:
            for level, ring in routes.distances[here]:
                if not cut_off[level] >> host & 1:
                    partner = _first_free(candidates & ring & ~cut_off[level], host, here, routes, full)
                    if partner >= 0:
                        return partner
        return -1


def _first_free(candidates: int, host: int, here: int, routes: LeafRoutes, full: set[int]) -> int:
    """The next candidate by number, cyclically from ``host`` on, with free links both ways; -1 if there is none."""
    while candidates:
        ahead = candidates >> host << host
        lowest = ahead & -ahead or candidates & -candidates
        partner = lowest.bit_length() - 1
        there = routes.leaf[partner]
        if not full.isdisjoint(routes.route[there][host]):
            candidates &= ~routes.hosts[there]
        elif not full.isdisjoint(routes.route[here][partner]):
            candidates &= ~lowest
        else:
            return partner
    return -1


def _both_ways(pairs: Integers) -> Integers:
    return np.concatenate((pairs, pairs[:, [0, 2, 1]]))


def _into_idle_steps(rows: Integers, num_hosts: int, regular: int) -> Integers:
    """Move the rows of extra steps into earlier steps in which their senders idle, in order.

    :param rows: rows (step, source host, destination host), shape (rows, 3).
    :param num_hosts: number of hosts.
    :param regular: number of regular steps; later steps are extra steps.
    """
    late = np.flatnonzero(rows[:, 0] >= regular)
    late = late[np.lexsort((rows[late, 0], rows[late, 1]))]
    idle = np.ones((num_hosts, regular), dtype=bool)
    early = rows[rows[:, 0] < regular]
    idle[early[:, 1], early[:, 0]] = False
    moved = rows.copy()
    moved[late, 0] = np.nonzero(idle)[1]  # by host, then step: each host has as many idle steps as late rows
    return moved
