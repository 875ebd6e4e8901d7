"""What crosses each link of a fabric when a job exchanges messages along its routes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...topology import HostRoutes, Routes

__all__ = ["MOST_HOSTS", "Loads", "PictureError", "crossed_switches", "link_loads", "links_of_job"]

MOST_HOSTS = 2048  # whose routes are held at once: some 200 MB

Integers = NDArray[np.int64]


class PictureError(TopompiError, ValueError):
    """A picture was asked for that cannot be drawn."""


@dataclass(frozen=True, eq=False)
class Loads:
    """What links carry.

    :param bytes: that cross each directed link of the fabric, shape (L,).
    :param seconds: that the link needs for them, shape (L,); 1 byte/s where rates are unknown.
    :param rated: whether rates are known.
    """

    bytes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    rated: bool

    def busiest(self, most: int) -> list[int]:
        """The links that need most time for their bytes, the busiest first, none without bytes."""
        order = np.argsort(-self.seconds, kind="stable")[:most]
        return [int(link) for link in order if self.bytes[link]]


def link_loads(routes: Routes, rank_host: Integers, messages: tuple[Integers, Integers, Integers]) -> Loads:
    """The bytes on each link, each message along its route.

    :param routes: over the whole fabric.
    :param rank_host: host of the fabric of each rank, shape (p,).
    :param messages: sending and receiving rank and bytes of each, three arrays of equal length.
    :raises PictureError: for more hosts than whose routes can be held.
    Cost: n * n * (longest route) numbers for n hosts.
    """
    source, target, nbytes = messages
    hosts, place = np.unique(rank_host, return_inverse=True)
    paths = links_of_job(routes, hosts)
    traffic = np.zeros((len(hosts), len(hosts)))
    np.add.at(traffic, (place[source], place[target]), nbytes)
    used = (paths >= 0) & (traffic > 0)[:, :, None]
    weight = np.broadcast_to(traffic[:, :, None], paths.shape)[used]
    carried = np.bincount(paths[used], weights=weight, minlength=routes.fabric.num_links).astype(np.float64)
    rate = routes.fabric.link_rate
    rated = not bool(np.isnan(rate).any())
    return Loads(carried, carried / rate if rated else carried, rated)


def links_of_job(routes: Routes, hosts: Integers) -> NDArray[np.int32]:
    """Links from each of some hosts to each other, shape (n, n, longest), padded with -1.

    :raises PictureError: for more hosts than whose routes can be held.
    """
    if len(hosts) > MOST_HOSTS:
        raise PictureError(f"expecting a job of at most {MOST_HOSTS:,} hosts for their routes, got {len(hosts):,}")
    return HostRoutes(routes, hosts.astype(np.int32)).paths()


def crossed_switches(routes: Routes, hosts: Integers) -> NDArray[np.bool_]:
    """Which switches the routes between some hosts cross, shape (S,); all, where these are too many to hold them."""
    fabric = routes.fabric
    crossed = np.zeros(fabric.num_switches, dtype=bool)
    if len(hosts) > MOST_HOSTS:
        crossed[:] = True
        return crossed
    links = np.unique(links_of_job(routes, hosts))
    ends = fabric.link_target[links[links >= 0]] - fabric.num_adapters
    leaves = fabric.adapter_leaf[np.concatenate([fabric.host_adapters[host] for host in hosts.tolist()])]
    crossed[ends[ends >= 0]] = True
    crossed[leaves[leaves >= 0]] = True
    return crossed
