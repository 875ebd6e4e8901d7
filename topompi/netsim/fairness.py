"""Max-min fair rates: no flow can have more without another, that has no more than it, having less."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["max_min"]

TIE = 1e-12  # relative: links that fill up together


def max_min(paths: NDArray[np.integer], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bytes/s of each flow, by progressive filling.

    All flows grow alike until a link is full; its flows stay as they are, and the others grow on (D. Bertsekas and
    R. Gallager, Data Networks, 2nd edition, 1992, 6.5.2).

    :param paths: links of each flow, shape (flows, longest), padded with -1; a flow without a link of
        finite capacity is infinitely fast.
    :param capacity: bytes/s of each link, shape (links,).
    Cost: a pass over the links of the flows that still grow for each level of rates.
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
