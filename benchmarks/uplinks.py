"""Over-subscribed uplinks of emulated networks of any shape: rates from a ratio, and the ratio of rates."""

from __future__ import annotations

import re

import numpy as np

from osu_like_bench.emulate import LinkRates, emulated_fabric
from osu_like_bench.emulate.spec import DEFAULT_RATE
from topompi.errors import BenchmarkError
from topompi.topology import Fabric

__all__ = ["hosts_below", "oversubscription", "rates_of"]

_RATIO = re.compile(r"([0-9]+(?:\.[0-9]+)?):1")


def hosts_below(fabric: Fabric) -> list[float]:
    """Return, for each level of switches below the top, the mean number of hosts below a switch."""
    level = np.r_[np.full(fabric.num_adapters, -1), fabric.switch_level]
    below = (level < 0).astype(np.int64)
    source, target = fabric.link_source, fabric.link_target
    for number in range(-1, int(level.max())):
        up = (level[source] == number) & (level[target] > number)
        np.add.at(below, target[up], below[source[up]])
    return [float(below[level == number].mean()) for number in range(int(level.max()))]


def rates_of(spec: str, uplinks: str) -> LinkRates:
    """Return the rates of a network whose hosts have links of the default rate.

    :param spec: specification of the emulated network.
    :param uplinks: ``N:1`` for uplinks of each level with an Nth of the rate that the hosts below a switch of mean size
        can send at; or bits/s as ``LinkRates.parse`` takes them.
    :raises TopompiError: if it is neither.
    """
    ratio = _RATIO.fullmatch(uplinks)
    if ratio is None:
        return LinkRates(DEFAULT_RATE, LinkRates.parse(uplinks=uplinks).uplinks)
    if not float(ratio[1]):
        raise BenchmarkError(f"--uplink-rates: expecting N:1 with N above 0, got {uplinks!r}")
    hosts = hosts_below(emulated_fabric(spec))
    return LinkRates(DEFAULT_RATE, tuple(DEFAULT_RATE * count / float(ratio[1]) for count in hosts))


def oversubscription(spec: str, uplinks: str) -> str:
    """Return the ratio ``N:1`` of the most over-subscribed level; the arguments are those of ``rates_of``."""
    rates = rates_of(spec, uplinks).uplinks
    hosts = hosts_below(emulated_fabric(spec))
    ratios = [DEFAULT_RATE * count / rates[min(number, len(rates) - 1)] for number, count in enumerate(hosts)]
    return f"{max(ratios, default=1.0):.3g}:1"
