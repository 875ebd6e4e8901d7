"""The routes between hosts and the prices of their links, with which trees over hosts are packed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..network import Network

__all__ = ["AS_GOOD", "MOST_LOAD", "SCALE", "TREES", "Links", "sixth"]

Integers = NDArray[np.int64]

TREES = 4  # more trees are less deep, but then a host starts more messages at once
SCALE = 64  # resolution of the prices of links with unlike rates
SLOWEST = 8  # ratio of rates up to which slow links differ in price
MOST_LOAD = 30  # messages on a link up to which its price rises, so that prices stay below 2^63
MISSING, ENDLESS = 1 << 33, 1e6  # weight and time of a missing route
AS_GOOD = 1 + 1e-9  # factor by which rounded times may differ


class Links:
    """The routes between hosts, and the weight of each link in prices.

    :ivar paths: links of the route from host i to host j, or back if messages travel inwards, shape (n, n, longest).
        Two numbers behind those of links stand for no further link, and for a missing route.
    :ivar time: time per byte of each link, over that of a typical host's own link, shape (links + 2,).
    :ivar weight: factor of each link's price, shape (links + 2,).
    :ivar least: least time of the busiest link, in which each host receives the message over its fastest route.
    """

    def __init__(self, network: Network, inwards: bool) -> None:
        hops, links = network.hops, network.links
        number, own = len(network.capacity), links[:, :, :1]
        unit = float(np.median(network.capacity[own[own >= 0]])) if (own >= 0).any() else 1.0
        paths = np.where(links < 0, number, links)
        paths[hops < 0, :1] = number + 1
        self.paths = paths.transpose(1, 0, 2) if inwards else paths
        self.time = np.concatenate((unit / network.capacity, (0.0, ENDLESS)))
        prices = np.maximum(np.rint(SCALE * sixth(np.minimum(self.time, SLOWEST))), 1)
        prices[number:] = 0, MISSING
        self.weight = prices.astype(np.int64)
        slowest = self.time[self.paths].max(axis=2, initial=0.0)
        np.fill_diagonal(slowest, np.inf)
        self.least = float(slowest.min(axis=0).max()) * AS_GOOD


def sixth(number: NDArray[np.float64] | Integers) -> NDArray[np.float64] | Integers:
    """The sixth power, by multiplications, which are equal on all processors."""
    cube = number * number * number
    return cube * cube
