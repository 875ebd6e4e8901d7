"""The routes from leaf switches to hosts, with sets of hosts as integers, for the greedy matching of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..analysis.bounds import link_width, require_routes
from ..network import Network

__all__ = ["LeafRoutes", "between_switches", "bits", "room"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LeafRoutes:
    """Routes from leaf switches to hosts; a set of hosts is a Python integer with bit h set for host h.

    Nearly all routes to a host share their last links, on the way down. If one of these links is full, the hosts that
    it leads to cannot be reached from farther hosts, and are removed from the candidate partners all at once
    (``cuts_off``). Links on the way up, and exceptions from irregular forwarding tables, are looked up in ``route`` for
    one candidate at a time.

    :param leaf: leaf of each host.
    :param hosts: set of the hosts of each leaf.
    :param route: links between switches from each leaf to each host, ``route[leaf][host]``.
    :param distances: pairs (level of distance, set of hosts at this distance) of each leaf, farthest first.
    :param num_levels: number of different distances; they are numbered as levels, and level 0 is the nearest.
    :param cuts_off: pairs (level, hosts) of each link: the hosts that every sender at this level or farther reaches
        over the link.
    :param room: number of transfers that each link carries at full rate in a step.
    """

    leaf: Sequence[int]
    hosts: Sequence[int]
    route: Sequence[Sequence[tuple[int, ...]]]
    distances: Sequence[Sequence[tuple[int, int]]]
    num_levels: int
    cuts_off: Sequence[Sequence[tuple[int, int]]]
    room: Sequence[int]

    @classmethod
    def of(cls, network: Network) -> LeafRoutes:
        """The routes of a network.

        A host whose routes differ from those of others on its leaf switch (several rails) counts as a leaf of its own,
        and then so do all hosts.

        :raises ValueError: if two hosts have no route.
        Cost: O(leaves x hosts x longest route), and one comparison of the routes of all pairs.
        """
        require_routes(network, *np.nonzero(network.hops < 0))
        leaf, table = _by_leaf(network)
        level = _distances(network, leaf)
        return cls(
            leaf=leaf.tolist(),
            hosts=[bits(leaf == number) for number in range(len(table))],
            route=[[tuple(link for link in path if link >= 0) for path in row] for row in table.tolist()],
            distances=[[(int(at), bits(row[leaf] == at)) for at in np.unique(row[leaf])[::-1]] for row in level],
            num_levels=int(level.max(initial=0)) + 1,
            cuts_off=_cuts(table, level[:, leaf], len(network.capacity)),
            room=room(network).tolist(),
        )


def bits(members: NDArray[np.bool_]) -> int:
    """A set as an integer with bit h set for member h."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


def room(network: Network) -> Integers:
    """The number of transfers that fit into each link at full rate; 1 for each link if all links have one rate.

    See `schedules.analysis.bounds.link_width`.
    """
    if len(np.unique(network.capacity)) < 2:
        return np.ones(len(network.capacity), dtype=np.int64)
    return link_width(network)


def between_switches(links: NDArray[np.int32]) -> NDArray[np.int32]:
    """Routes without their first and last links, which join hosts; shape (..., longest - 1), padded with -1."""
    inner = links[..., 1:].copy()
    length = (inner >= 0).sum(axis=-1)
    where = np.nonzero(length)
    inner[(*where, length[where] - 1)] = -1
    return inner


def _by_leaf(network: Network) -> tuple[Integers, NDArray[np.int32]]:
    """The leaf of each host, and the links between switches from each leaf to each host, (leaves, n, longest - 1)."""
    links, hosts = network.links, np.arange(network.num_hosts)
    _, first, leaf = np.unique(network.leaf, return_index=True, return_inverse=True)
    inside = leaf[:, None] == leaf
    same = (links[:, :, 1:] == links[first[leaf]][:, :, 1:]).all(axis=2) | inside
    if not same.all() or (network.hops[inside] > 1).any():
        first = leaf = hosts
        inside = np.eye(len(hosts), dtype=bool)
    table = between_switches(links[first])
    table[inside[first]] = -1
    return leaf, table


def _distances(network: Network, leaf: Integers) -> Integers:
    """The distance level of each pair of leaves, (leaves, leaves): the most hops between hosts, numbered from 0."""
    count = int(leaf.max(initial=-1)) + 1
    order = np.argsort(leaf, kind="stable")
    starts = np.searchsorted(leaf[order], np.arange(count))
    hops = network.hops[np.ix_(order, order)]
    if count:
        hops = np.maximum.reduceat(np.maximum.reduceat(hops, starts, axis=0), starts, axis=1)
    hops = np.maximum(hops, hops.T)
    np.fill_diagonal(hops, 0)
    return np.unique(hops, return_inverse=True)[1].reshape(hops.shape)


def _cuts(table: NDArray[np.int32], level: Integers, num_links: int) -> list[list[tuple[int, int]]]:
    """For each link, pairs (level of distance, set of hosts that all leaves at this level or farther reach over it).

    :param table: links from each leaf to each host, shape (leaves, n, longest - 1), padded with -1.
    :param level: distance level from each leaf to each host, shape (leaves, n).
    :param num_links: number of links.
    """
    num_hosts, num_levels = level.shape[1], int(level.max(initial=0)) + 1
    at_leaf, host, at = np.nonzero(table >= 0)
    pair = table[at_leaf, host, at].astype(np.int64) * num_hosts + host
    key, first, number, uses = np.unique(pair, return_index=True, return_inverse=True, return_counts=True)
    nearest = np.full(len(key), num_levels)
    np.minimum.at(nearest, number, level[at_leaf, host])
    beyond = (level[:, :, None] >= np.arange(num_levels + 1)).sum(axis=0)  # number of leaves at a distance or farther
    whole = np.flatnonzero(uses == beyond[host[first], nearest])
    cuts: list[dict[int, int]] = [{} for _ in range(num_links)]
    for one, near in zip(key[whole].tolist(), nearest[whole].tolist(), strict=True):
        link, member = divmod(one, num_hosts)
        for far in range(near, num_levels):
            cuts[link][far] = cuts[link].get(far, 0) | 1 << member
    return [list(cut.items()) for cut in cuts]
