"""What crosses each link of a fabric when a job exchanges messages along its routes."""

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
    """A picture was asked for that cannot be drawn."""


@dataclass(frozen=True, eq=False)
class Loads:
    """What links carry.

    :param bytes: that cross each directed link of the fabric, shape (L,).
    :param seconds: that the link needs for them, shape (L,), see ``known_rates``.
    :param rated: whether rates are known, of some links at least.
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
    Cost: a walk for each distinct pair of a leaf switch and a receiving host.
    """
    source, target, nbytes = messages
    carried = routes.tables.loads(rank_host[source], rank_host[target], nbytes)
    rated = not bool(np.isnan(routes.fabric.link_rate).all())
    return Loads(carried, carried / known_rates(routes.fabric.link_rate), rated)


def crossed_switches(routes: Routes, hosts: Integers) -> NDArray[np.bool_]:
    """The switches that the routes between all adapters of some hosts cross, as truth values, shape (S,).

    :param routes: over the whole fabric.
    :param hosts: hosts of the fabric, each once.
    Cost: a link from each of their leaf switches to each of their adapters.
    """
    adapters = routes.fabric.rails[:, hosts]
    switches, _, _ = routes.tables.crossed(adapters[adapters >= 0])
    crossed = np.zeros(routes.fabric.num_switches, dtype=bool)
    crossed[switches] = True
    return crossed
