"""How many routes go through each link, for all hosts or for a job's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RouteError
from ..fabric import Fabric, IntArray
from ..hostroutes import HostRoutes
from ..routes import WALKS_AT_ONCE, Routes
from .names import end_name, switch_labels

__all__ = ["MOST_WITH_RAILS", "LinkUse", "leaf_rows", "link_rows", "link_use"]

MOST_WITH_RAILS = 2048  # hosts with several adapters, whose routes are held pair by pair: some 200 MB
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkUse:
    """What the routes between some hosts use.

    :param fabric: whose links are counted.
    :param hosts: host numbers, shape (n,), each once.
    :param routes: ordered pairs of hosts whose route crosses each link, shape (L,).
    :param pairs: ordered pairs of different hosts.
    :param lost: those of them that have no route.
    """

    fabric: Fabric
    hosts: IntArray
    routes: Integers
    pairs: int
    lost: int

    @property
    def switch_links(self) -> IntArray:
        """The links between switches that some route crosses, the busiest first."""
        links = self.fabric.switch_links
        links = links[self.routes[links] > 0]
        return links[np.argsort(-self.routes[links], kind="stable")]


def link_use(routes: Routes, hosts: IntArray | None = None, path: int = 0) -> LinkUse:
    """Count the routes between hosts on every link.

    :param routes: over the whole fabric.
    :param hosts: host numbers, each once; all by default.
    :param path: number of the path that is followed, of several to a host.
    :raises RouteError: for more than MOST_WITH_RAILS hosts where some have several adapters.
    Cost: a walk from each of their leaf switches to each of them; with several adapters a host, n * n * (longest route)
    numbers.
    """
    fabric = routes.fabric
    numbers = np.arange(fabric.num_hosts, dtype=np.int32) if hosts is None else hosts
    rails = [fabric.host_adapters[host] for host in numbers.tolist()]
    if any(len(adapters) > 1 for adapters in rails):
        return _by_pairs(routes, numbers, path)
    adapters = np.concatenate([np.empty(0, dtype=np.int32), *rails])
    count, arrived = _between_leaves(routes, adapters, path)
    pairs = len(numbers) * (len(numbers) - 1)
    return LinkUse(fabric, numbers, count, pairs, pairs - arrived)


def _by_pairs(routes: Routes, hosts: IntArray, path: int) -> LinkUse:
    if len(hosts) > MOST_WITH_RAILS:
        wanted = f"at most {MOST_WITH_RAILS:,} hosts where some have several adapters"
        raise RouteError(f"{routes.fabric.name}: expecting {wanted}, got {len(hosts):,}")
    between = HostRoutes(routes, hosts)
    links = between.paths(path)
    count = np.bincount(links[links >= 0], minlength=routes.fabric.num_links)
    lost = int((between.hops < 0).sum())
    return LinkUse(routes.fabric, hosts, count, len(hosts) * (len(hosts) - 1), lost)


def _between_leaves(routes: Routes, adapters: IntArray, path: int) -> tuple[Integers, int]:
    """Routes on each link, and how many arrive; hosts of one leaf switch share their way to another host."""
    fabric = routes.fabric
    leaf = fabric.adapter_leaf[adapters]
    leaves, size = np.unique(leaf[leaf >= 0], return_counts=True)
    count, arrived = np.zeros(fabric.num_links), 0
    from_leaf = np.zeros(len(leaves))  # routes that leave it, counted as if its hosts sent to themselves, too
    step = max(1, WALKS_AT_ONCE // max(1, len(leaves)))
    for first in range(0, len(adapters), step):
        some, theirs = adapters[first : first + step], leaf[first : first + step]
        hops, links, _ = routes.walk(np.repeat(leaves, len(some)), np.tile(some, len(leaves)), path)
        reached = hops.reshape(len(leaves), len(some)) > 0
        senders = (size[:, None] - (leaves[:, None] == theirs[None, :])) * reached
        taken = (links >= 0) & (hops > 0)[:, None]
        weight = np.broadcast_to(senders.reshape(-1, 1), links.shape)[taken]
        count += np.bincount(links[taken], weights=weight, minlength=fabric.num_links)
        arrived += int(senders.sum())
        from_leaf += reached.sum(axis=1)
    own = np.flatnonzero(leaf >= 0)
    place = np.searchsorted(leaves, leaf[own])
    itself = routes.hops_from(leaves, adapters[own], path)[place, np.arange(len(own))] > 0 if len(own) else 0
    count[fabric.adapter_uplink[adapters[own]]] += from_leaf[place] - itself
    return np.round(count).astype(np.int64), arrived


def link_rows(use: LinkUse) -> list[dict[str, Any]]:
    """Each link between switches that routes cross, the busiest first, ready for JSON.

    ``share`` is the share of all ordered pairs of the hosts; ``rate`` is in bytes/s, None where unknown.
    """
    fabric, labels = use.fabric, switch_labels(use.fabric)
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
            }
        )
    return rows


def leaf_rows(use: LinkUse) -> list[dict[str, Any]]:
    """Each leaf switch of the hosts, the one with the busiest link first, ready for JSON.

    ``uplinks`` are its links to other switches that routes use, ``oversubscription`` is what its hosts can send over
    what these can carry (None where no route leaves it), ``out`` and ``in`` are routes to and from other leaves,
    ``busiest`` the most routes on one of its links in either direction.
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
