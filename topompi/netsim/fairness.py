"""Max-min fair rates: no flow can get more unless a flow with at most the same rate gets less."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["max_min"]

TIE = 1e-12  # relative difference up to which links count as full at the same time


def max_min(paths: NDArray[np.integer], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rate of each flow in bytes/s, by progressive filling.

    The rates of all flows grow equally until a link is full; its flows keep their rate, and the others continue to grow
    (D. Bertsekas and R. Gallager, Data Networks, 2nd edition, 1992, 6.5.2).

    :param paths: links of each flow, shape (flows, longest), padded with -1; the rate of a flow without a link of
        finite capacity is infinite.
    :param capacity: capacity of each link in bytes/s, shape (links,).
    Cost: for each different rate, one pass over the links of the flows that still grow.
    """
    rate = np.full(len(paths), np.inf)
    flow, place = np.nonzero((paths >= 0) & np.isfinite(capacity)[paths])
    link = paths[flow, place]
    left = capacity.astype(np.float64)
    while len(flow):
        count = np.bincount(link, minlength=len(left))
        share = np.full(len(left), np.inf)
        np.divide(left, count, out=share, where=count > 0)
        level = share.min()
        stays = np.zeros(len(rate), dtype=bool)
        stays[flow[(share <= level * (1 + TIE))[link]]] = True
        rate[stays] = level
        fixed = stays[flow]
        left = np.maximum(left - level * np.bincount(link[fixed], minlength=len(left)), 0.0)
        flow, link = flow[~fixed], link[~fixed]
    return rate
