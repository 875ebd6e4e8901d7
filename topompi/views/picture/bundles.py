"""Bundles: the links between two nodes of a picture (boxes of one or more switches), drawn as one line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...topology import Fabric
from .loads import Loads
from .names import amount

__all__ = ["Bundle", "bundles_of"]


@dataclass(frozen=True)
class Bundle:
    """All cables between two nodes of a picture, which are drawn as one line.

    :param low: lower number of the two nodes.
    :param high: higher number of the two nodes.
    :param cables: number of cables.
    :param rate: bandwidth of all cables together in one direction in bytes/s; NaN if unknown.
    :param bytes: bytes sent from the node ``low`` to ``high``, and from ``high`` to ``low``.
    :param seconds: time in seconds that the busiest of the links, in either direction, needs for its bytes.
    """

    low: int
    high: int
    cables: int
    rate: float
    bytes: tuple[float, float]
    seconds: float

    def tip(self, low: str, high: str) -> str:
        """Describe the bundle in words, for a tool tip.

        :param low: name of the low node.
        :param high: name of the high node.
        """
        rate = "" if np.isnan(self.rate) else f", {amount(self.rate, 'B/s')} each way"
        words = f"{low} - {high}: {self.cables:,} cable{'s' * (self.cables != 1)}{rate}"
        if not any(self.bytes):
            return words
        return f"{words}; {amount(self.bytes[0], 'B')} up, {amount(self.bytes[1], 'B')} down"


def bundles_of(fabric: Fabric, of_switch: NDArray[np.int64], loads: Loads | None) -> list[Bundle]:
    """Bundle the links between the nodes of a picture; links within a node are left out.

    :param fabric: the whole fabric.
    :param of_switch: number of the node (box) that contains each switch, shape (switches,).
    :param loads: bytes on the links; None if no loads are shown.
    """
    links = fabric.switch_links
    source, target = (of_switch[ends[links] - fabric.num_adapters] for ends in (fabric.link_source, fabric.link_target))
    apart = source != target
    links, source, target = links[apart], source[apart], target[apart]
    carried = np.zeros(fabric.num_links) if loads is None else loads.bytes
    seconds = np.zeros(fabric.num_links) if loads is None else loads.seconds
    size = int(of_switch.max(initial=0)) + 1
    pairs, place = np.unique(np.minimum(source, target) * size + np.maximum(source, target), return_inverse=True)
    upward = source < target
    up, down = (np.bincount(place, weights=carried[links] * way, minlength=len(pairs)) for way in (upward, ~upward))
    rate = np.bincount(place, weights=fabric.link_rate[links] * upward, minlength=len(pairs))
    count = np.bincount(place, weights=upward, minlength=len(pairs)).astype(int)
    longest = np.zeros(len(pairs))
    np.maximum.at(longest, place, seconds[links])
    columns = (pairs // size, pairs % size, count, rate, up, down, longest)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Bundle(low, high, cables, speed, (a, b), most) for low, high, cables, speed, a, b, most in rows]
