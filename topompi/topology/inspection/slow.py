"""Links that are slower than other links in the same place, often because a cable or port has partly failed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..fabric import Fabric
from ..labels import end_name, switch_labels

__all__ = ["slow_cables", "usual_rates"]

Floats = NDArray[np.float64]


def usual_rates(fabric: Fabric) -> Floats:
    """Usual bandwidth in bytes/s of the links that are slower than usual, NaN for all other links; shape (links,).

    Usual is the larger of two bandwidths: (1) that of the fastest link between the same two vertices, in either
    direction; (2) that which more than half of the links between the same two levels have (hosts and leaf switches, or
    two levels of switches). If no bandwidth has this majority, as in a fabric of several hardware generations, only (1)
    counts.
    """
    level = np.concatenate((np.full(fabric.num_adapters, -1), fabric.switch_level))
    ends = np.stack((fabric.link_source, fabric.link_target))
    known = np.flatnonzero(~np.isnan(fabric.link_rate))
    rate = fabric.link_rate[known]
    usual = np.full(fabric.num_links, np.nan)
    if len(np.unique(rate)) < 2:
        return usual
    pair, between = (_kinds(np.sort(two[:, known], axis=0)) for two in (ends, level[ends]))
    fastest = np.zeros(pair.max() + 1)
    np.maximum.at(fastest, pair, rate)
    majority = np.array([_of_majority(rate[between == kind]) for kind in range(between.max() + 1)])
    usual[known] = np.fmax(fastest[pair], majority[between])
    return np.where(fabric.link_rate < usual * (1 - 1e-9), usual, np.nan)


def _kinds(ends: NDArray[np.integer]) -> NDArray[np.intp]:
    """Number the distinct columns of an array of shape (2, links) from 0."""
    wide = ends.astype(np.int64) - ends.min()
    return np.unique(wide[0] * (wide[1].max() + 1) + wide[1], return_inverse=True)[1]


def _of_majority(rates: Floats) -> float:
    values, count = np.unique(rates, return_counts=True)
    return float(values[np.argmax(count)]) if 2 * count.max() > len(rates) else float("nan")


def slow_cables(fabric: Fabric, most: int = 5) -> str:
    """Describe in one line the cables that are slower than usual (see `usual_rates`); empty if there are none.

    :param fabric: the fabric.
    :param most: number of cables to name.
    """
    usual = usual_rates(fabric)
    labels = switch_labels(fabric)
    named: dict[frozenset[tuple[int, int]], str] = {}
    for link in np.flatnonzero(~np.isnan(usual)).tolist():
        source, target = int(fabric.link_source[link]), int(fabric.link_target[link])
        ports = int(fabric.link_source_port[link]), int(fabric.link_target_port[link])
        ends = [
            f"{end_name(fabric, labels, vertex)}:{port}" for vertex, port in zip((source, target), ports, strict=True)
        ]
        rates = f"{fabric.link_rate[link] / 1e9:.4g} GB/s, others like it {usual[link] / 1e9:.4g} GB/s"
        named.setdefault(frozenset(((source, ports[0]), (target, ports[1]))), f"{' - '.join(ends)} has {rates}")
    if not named:
        return ""
    more = f"; and {len(named) - most:,} more" if len(named) > most else ""
    words = "cable is slower than others like it" if len(named) == 1 else "cables are slower than others like them"
    return f"{len(named):,} {words}: {'; '.join(list(named.values())[:most])}{more}"
