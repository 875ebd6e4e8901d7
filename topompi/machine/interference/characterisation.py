"""The load that a job brings to each level of a fabric: bytes, injection rate, available bandwidth and usage.

The definitions are those of Jokanovic 2014, section 3.2: the injection rate is the bytes of a level over the job's time
on a crossbar, because a measured time would hide the demand of a job that is slowed down. Beside these numbers, which
depend on groups of hosts alone, stand those of the true routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mapping.graph import CommunicationGraph
from ...network import Tables
from .classes import Thresholds
from .errors import InterferenceError
from .levels import Levels

__all__ = ["Character", "LevelLoad", "characterise"]

Integers = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LevelLoad:
    """A job's load on one level.

    :param level: number of the level; 0 for hosts' own links.
    :param nbytes: bytes between hosts of different groups.
    :param injection: bytes/s of these bytes over the job's time on a crossbar; None, as all usages, if that is unknown.
    :param groups: number of groups in which the job is.
    :param available: bandwidth in bytes/s out of these groups; 0 if there is one.
    :param usage: injection over available bandwidth; 0 if nothing is sent.
    :param busiest_cut: largest usage of the bandwidth out of, or into, one of these groups.
    :param links: number of the level's links that the job's routes cross, in both directions; None without routes.
    :param routed: bandwidth in bytes/s of those of them that leave groups; None without routes.
    :param busiest_link: largest usage of one link of the level; None without routes.
    """

    level: int
    nbytes: float
    injection: float | None
    groups: int
    available: float
    usage: float | None
    busiest_cut: float | None
    links: int | None = None
    routed: float | None = None
    busiest_link: float | None = None


@dataclass(frozen=True)
class Character:
    """The loads of a job on all levels, and its class.

    :param seconds: T_base, time of the job on a crossbar in seconds; None if it is unknown.
    :param loads: load on each level, from level 0.
    :param thresholds: limits between the classes.
    """

    seconds: float | None
    loads: Sequence[LevelLoad]
    thresholds: Thresholds

    @property
    def usage(self) -> float:
        """The largest usage of a level above the hosts' own links, which no other job uses; NaN without a time."""
        if self.seconds is None:
            return nan
        return max((one.usage or 0.0 for one in self.loads[1:]), default=0.0)

    @property
    def name(self) -> str:
        """The class of the job; empty without a time."""
        return "" if self.seconds is None else self.thresholds.name(self.usage)


def characterise(
    graph: CommunicationGraph,
    seconds: float | None,
    hosts: Integers,
    levels: Levels,
    *,
    tables: Tables | None = None,
    thresholds: Thresholds | None = None,
) -> Character:
    """Compute the load of a job on each level of a fabric.

    :param graph: bytes between the job's ranks.
    :param seconds: T_base, time of the job on a crossbar in seconds; None to compute bytes, but no usage and no class.
    :param hosts: host of each rank, shape (p,).
    :param levels: levels of the fabric.
    :param tables: routes of the fabric, with the fabric's hosts; None to leave out the numbers of single links.
    :param thresholds: limits between the classes; None for the defaults.
    :raises InterferenceError: if the number of hosts is not that of ranks, or the time is not above 0.
    Cost: a few operations per pair of ranks that communicate and level; with routes, a route per pair.
    """
    hosts = np.asarray(hosts)
    if len(hosts) != graph.size:
        raise InterferenceError(f"characterise: expecting hosts of {graph.size} ranks, got {len(hosts)}")
    if seconds is not None and not (np.isfinite(seconds) and seconds > 0):
        raise InterferenceError(f"characterise: expecting a time on a crossbar above 0 s, got {seconds}")
    ends = hosts[graph.sources], hosts[graph.targets]
    nbytes = graph.volume.astype(np.float64)
    carried = None if tables is None else tables.loads(*ends, nbytes)
    # Without a time 1 s stands in for it; the fields that depend on the time become None below.
    loads = [_load(levels, level, hosts, (*ends, nbytes), seconds or 1.0, carried) for level in range(len(levels))]
    if seconds is None:
        loads = [replace(one, injection=None, usage=None, busiest_cut=None, busiest_link=None) for one in loads]
    return Character(seconds, tuple(loads), thresholds or Thresholds())


def _load(
    levels: Levels,
    level: int,
    hosts: Integers,
    messages: tuple[Integers, Integers, Floats],
    seconds: float,
    carried: Floats | None,
) -> LevelLoad:
    """Compute the load on one level.

    :param levels: levels of the fabric.
    :param level: number of the level.
    :param hosts: host of each rank, shape (p,).
    :param messages: sending host, receiving host and bytes of each pair of ranks.
    :param seconds: T_base in seconds.
    :param carried: bytes on each link by the routes, shape (links,); None without routes.
    """
    group = levels.group[level]
    source, target, nbytes = group[messages[0]], group[messages[1]], messages[2]
    leaving = np.where(source != target, nbytes, 0.0)
    total, available = float(leaving.sum()), levels.available(hosts, level)
    cuts = [
        _most(np.bincount(end, leaving, len(bandwidth)).astype(np.float64), bandwidth * seconds)
        for end, bandwidth in ((source, levels.up[level]), (target, levels.down[level]))
    ]
    injection = total / seconds
    usage = _most(np.array([injection]), np.array([available]))
    groups = len(levels.used(hosts, level))
    found = LevelLoad(level, total, injection, groups, available, usage, max(cuts))
    return found if carried is None else replace(found, **_by_links(levels, level, carried, seconds))


def _by_links(levels: Levels, level: int, carried: Floats, seconds: float) -> dict[str, Any]:
    """The fields of a level's load that depend on routes."""
    busy = carried > 0
    leaves, enters = levels.leaves[level] >= 0, levels.enters[level] >= 0
    of_level = busy & (leaves | enters)
    most = _most(carried[of_level], levels.rate[of_level] * seconds)
    return {
        "links": int(of_level.sum()),
        "routed": float(levels.rate[busy & leaves].sum()),
        "busiest_link": most,
    }


def _most(amounts: Floats, limits: Floats) -> float:
    """The largest ratio of an amount to its limit; 0 if all amounts are 0."""
    some = amounts > 0
    with np.errstate(divide="ignore"):
        return float((amounts[some] / limits[some]).max(initial=0.0))
