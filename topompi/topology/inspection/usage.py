"""Counts of the routes that cross each link, for all hosts or for the hosts of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...network import Tables, slices
from ..fabric import Fabric, IntArray
from ..labels import end_name, switch_labels
from ..routes import Routes
from .slow import usual_rates

__all__ = ["LinkUse", "leaf_rows", "link_rows", "link_use"]

Integers = NDArray[np.int64]
MEGABYTE = 1e6
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinkUse:
    """Counts of the routes between some hosts that cross each link.

    :param fabric: the fabric that has the links.
    :param hosts: host numbers, shape (n,), each once.
    :param routes: number of ordered pairs of hosts whose route crosses each link, shape (links,).
    :param pairs: number of ordered pairs of different hosts.
    :param lost: number of these pairs without a route.
    """

    fabric: Fabric
    hosts: IntArray
    routes: Integers
    pairs: int
    lost: int

    @property
    def switch_links(self) -> IntArray:
        """The links between switches that some route crosses, busiest first."""
        links = self.fabric.switch_links
        links = links[self.routes[links] > 0]
        return links[np.argsort(-self.routes[links], kind="stable")]


def link_use(routes: Routes, hosts: IntArray | None = None, path: int = 0) -> LinkUse:
    """Count the routes between hosts on every link.

    :param routes: the routes over the whole fabric.
    :param hosts: host numbers, each once; all by default.
    :param path: number of the alternative route (LMC), from 0 to below the number of paths per adapter.
    Cost: one route followed from each leaf switch of the hosts to each host; if hosts have several adapters, one for
    each pair of hosts and each pair of their adapters.
    """
    fabric = routes.fabric
    numbers = np.arange(fabric.num_hosts, dtype=np.int32) if hosts is None else hosts
    tables = routes.tables.part(numbers)
    count, arrived = (_by_pairs if len(tables.adapters) > 1 else _between_leaves)(tables, path)
    pairs = len(numbers) * (len(numbers) - 1)
    return LinkUse(fabric, numbers, np.round(count).astype(np.int64), pairs, pairs - arrived)


def _by_pairs(tables: Tables, path: int) -> tuple[Floats, int]:
    """Count the routes on each link, and the pairs with a route, by following the route of every pair of hosts.

    :param tables: links and next-hop links with the hosts to count.
    :param path: number of the alternative route (LMC), from 0 to below the number of paths per adapter.
    """
    count = np.zeros(tables.num_links)
    for source, destination in tables.every_pair():
        count += tables.loads(source, destination, np.ones(len(source)), path)
    ends = tables.link_end[: tables.num_links] < tables.first_switch  # a route ends on the link into an adapter
    return count, round(count[ends].sum())


def _between_leaves(tables: Tables, path: int) -> tuple[Floats, int]:
    """Count the routes on each link, and the pairs with a route, by following one route per leaf switch and host.

    Hosts on one leaf switch share their path to another host, so one route followed counts for all of them.

    :param tables: links and next-hop links with the hosts to count, each with one adapter.
    :param path: number of the alternative route (LMC), from 0 to below the number of paths per adapter.
    """
    adapters = tables.adapters[0]
    leaf = tables.leaf[adapters]
    leaves, size = np.unique(leaf[leaf >= 0], return_counts=True)
    count, arrived = np.zeros(tables.num_links), 0
    from_leaf = np.zeros(len(leaves))  # routes from any one host of the leaf; that to itself is subtracted below
    for some in slices(len(adapters), len(leaves)):
        theirs = leaf[some]
        senders = size[:, None] - (leaves[:, None] == theirs[None, :])
        ends = np.repeat(leaves, len(theirs)), np.tile(adapters[some], len(leaves))
        loads, arrives = tables.loads_from(*ends, senders.ravel(), path)
        reached = arrives.reshape(senders.shape)
        count += loads
        arrived += int((senders * reached).sum())
        from_leaf += reached.sum(axis=1)
    own = np.flatnonzero(leaf >= 0)
    place = np.searchsorted(leaves, leaf[own])
    itself = tables.hops_from(leaves, adapters[own], path)[place, np.arange(len(own))] > 0 if len(own) else 0
    count[tables.uplink[adapters[own]]] += from_leaf[place] - itself
    return count, arrived


def link_rows(use: LinkUse, by: str = "routes") -> list[dict[str, Any]]:
    """List the links between switches that routes cross, one row per link, busiest first, ready for JSON.

    ``share`` is the number of routes divided by the number of ordered pairs of the hosts; ``rate`` is in bytes/s, None
    if unknown. ``time`` is the number of seconds for which the link is busy if every pair sends 1 MB, None if the rate
    is unknown. ``slower_than`` is the usual bandwidth in bytes/s of links in this place (see `usual_rates`) if the link
    is slower, else None.

    :param use: counts of routes.
    :param by: ``routes`` or ``time``, by which the links are sorted.
    """
    fabric, labels = use.fabric, switch_labels(use.fabric)
    usual = usual_rates(fabric)
    rows = []
    for link in use.switch_links.tolist():
        rate = float(fabric.link_rate[link])
        rows.append(
            {
                "from": end_name(fabric, labels, int(fabric.link_source[link])),
                "port": int(fabric.link_source_port[link]),
                "to": end_name(fabric, labels, int(fabric.link_target[link])),
                "to_port": int(fabric.link_target_port[link]),
                "routes": int(use.routes[link]),
                "share": int(use.routes[link]) / max(1, use.pairs),
                "rate": None if np.isnan(rate) else rate,
                "time": None if np.isnan(rate) else int(use.routes[link]) * MEGABYTE / rate,
                "slower_than": None if np.isnan(usual[link]) else float(usual[link]),
            }
        )
    return rows if by == "routes" else sorted(rows, key=lambda row: -(row["time"] or 0))


def leaf_rows(use: LinkUse) -> list[dict[str, Any]]:
    """List the leaf switches of the hosts, one row per leaf, the leaf with the busiest link first, ready for JSON.

    ``uplinks`` is the number of the leaf's links to other switches that routes use. ``oversubscription`` is the
    bandwidth of its hosts divided by that of these links (None if no route leaves the leaf). ``out`` and ``in`` are
    numbers of routes to and from other leaves. ``busiest`` is the largest number of routes on one of its links in
    either direction.
    """
    fabric, labels = use.fabric, switch_labels(use.fabric)
    first = fabric.num_adapters
    rate = np.where(np.isnan(fabric.link_rate), 1.0, fabric.link_rate) if fabric.cabled else None
    between = np.zeros(fabric.num_links, dtype=bool)
    between[fabric.switch_links] = True
    used = between & (use.routes > 0)
    adapters = np.concatenate(
        [np.empty(0, dtype=np.int32), *(fabric.host_adapters[host] for host in use.hosts.tolist())]
    )
    leaf = fabric.adapter_leaf[adapters]
    rows = []
    for switch in np.unique(leaf[leaf >= 0]).tolist():
        here = adapters[leaf == switch]
        up, down = (
            np.flatnonzero(used & (ends == first + switch)) for ends in (fabric.link_source, fabric.link_target)
        )
        capacity = (
            None if rate is None or not len(up) else float(rate[fabric.adapter_uplink[here]].sum() / rate[up].sum())
        )
        rows.append(
            {
                "leaf": labels[switch],
                "hosts": len(np.unique(fabric.adapter_host[here])),
                "uplinks": len(up),
                "oversubscription": capacity,
                "out": int(use.routes[up].sum()),
                "in": int(use.routes[down].sum()),
                "busiest": int(use.routes[np.concatenate((up, down))].max(initial=0)),
            }
        )
    return sorted(rows, key=lambda row: (-row["busiest"], row["leaf"]))
