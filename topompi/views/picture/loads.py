"""The bytes on each link of a fabric when messages follow its routes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...topology import Routes
from ..network import known_rates

__all__ = ["Loads", "PictureError", "crossed_switches", "link_loads"]

Integers = NDArray[np.int64]


class PictureError(TopompiError, ValueError):
    """An error: a picture cannot be drawn, or an exchange cannot be read."""


@dataclass(frozen=True, eq=False)
class Loads:
    """The loads of a fabric's links.

    :param bytes: bytes that cross each directed link, shape (links,).
    :param seconds: time in seconds that each link needs for its bytes, shape (links,); unknown rates count as
        `known_rates` returns them.
    :param rated: whether the rate of at least one link is known.
    """

    bytes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    rated: bool

    def busiest(self, most: int) -> list[int]:
        """Numbers of the links, at most ``most``, that need the longest time for their bytes, busiest first."""
        order = np.argsort(-self.seconds, kind="stable")[:most]
        return [int(link) for link in order if self.bytes[link]]


def link_loads(routes: Routes, rank_host: Integers, messages: tuple[Integers, Integers, Integers]) -> Loads:
    """Compute the loads of all links when messages follow their routes.

    :param routes: the routes over the whole fabric.
    :param rank_host: host number of each rank in the fabric, shape (p,).
    :param messages: sending rank, receiving rank and bytes of each message, three arrays of shape (messages,).
    Cost: one route followed for each distinct pair of a leaf switch and a receiving host.
    """
    source, target, nbytes = messages
    carried = routes.tables.loads(rank_host[source], rank_host[target], nbytes)
    rated = not bool(np.isnan(routes.fabric.link_rate).all())
    return Loads(carried, carried / known_rates(routes.fabric.link_rate), rated)


def crossed_switches(routes: Routes, hosts: Integers) -> NDArray[np.bool_]:
    """Whether the routes between all adapters of some hosts cross each switch, shape (switches,).

    :param routes: the routes over the whole fabric.
    :param hosts: host numbers in the fabric, each once.
    Cost: the next-hop links from each leaf switch of these hosts to each of their adapters.
    """
    adapters = routes.fabric.rails[:, hosts]
    switches, _, _ = routes.tables.crossed(adapters[adapters >= 0])
    crossed = np.zeros(routes.fabric.num_switches, dtype=bool)
    crossed[switches] = True
    return crossed
