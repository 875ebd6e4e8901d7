"""Levels of a fabric: groups of hosts below cuts through its cables, and the bandwidth of each cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...network import known_or
from ...topology import Fabric
from .errors import InterferenceError

__all__ = ["Levels", "levels_of"]

Integers = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Levels:
    """The groups of hosts at each level, and the links that leave and enter them.

    A group of level 0 is a host, one of level 1 the hosts of a leaf switch. A group of level l > 1 is what the switches
    of fewer than l links above the leaf switches join; in an XGFT it is a sub-tree with l levels of vertices.

    :param group: group of each host at each level, shape (levels, hosts).
    :param leaves: group that each link leaves at each level, shape (levels, links); -1 if its source is in no group, or
        its target is in the same group.
    :param enters: group that each link enters at each level, shape (levels, links); -1 if its target is in no group, or
        its source is in the same group.
    :param rate: bandwidth of each link in bytes/s, shape (links,).
    """

    group: Integers
    leaves: Integers
    enters: Integers
    rate: Floats

    def __len__(self) -> int:
        return len(self.group)

    @property
    def num_hosts(self) -> int:
        """Number of hosts."""
        return int(self.group.shape[1])

    @cached_property
    def up(self) -> tuple[Floats, ...]:
        """The bandwidth out of each group in bytes/s, an array of shape (groups,) per level."""
        return tuple(self._bandwidth(self.leaves[level], level) for level in range(len(self)))

    @cached_property
    def down(self) -> tuple[Floats, ...]:
        """The bandwidth into each group in bytes/s, an array of shape (groups,) per level."""
        return tuple(self._bandwidth(self.enters[level], level) for level in range(len(self)))

    def _bandwidth(self, group: Integers, level: int) -> Floats:
        crossing, groups = group >= 0, int(self.group[level].max()) + 1
        return np.bincount(group[crossing], self.rate[crossing], groups).astype(np.float64)

    def used(self, hosts: Integers, level: int) -> Integers:
        """The groups of a level in which some hosts are, ascending.

        :param hosts: host numbers, shape (n,).
        :param level: number of the level.
        """
        return np.unique(self.group[level][hosts])

    def available(self, hosts: Integers, level: int) -> float:
        """The bandwidth in bytes/s out of all groups of a level in which a job is; 0 if it is in one group.

        :param hosts: hosts of the job, shape (n,).
        :param level: number of the level.
        """
        groups = self.used(hosts, level)
        return float(self.up[level][groups].sum()) if len(groups) > 1 else 0.0


def levels_of(fabric: Fabric, rate: float | None = None, switch_groups: Sequence[Integers] | None = None) -> Levels:
    """Find the levels of a fabric.

    Each host has its first adapter only, as in simulations.

    :param fabric: the fabric.
    :param rate: bandwidth of links of unknown rate in bytes/s; None to raise an error if there are any.
    :param switch_groups: group of each switch above level 0, one array of shape (switches,) per level, with -1 for a
        switch in no group; None for leaf switches, and for what the switches up to each height join.
    :raises InterferenceError: if a rate is unknown, or a host has no leaf switch.
    Cost: a search for connected components per level.
    """
    rates = known_or(fabric.link_rate, rate)
    if unknown := int(np.isnan(rates).sum()):
        raise InterferenceError(f"{fabric.name}: expecting the rate of all links, got {unknown} unknown")
    first = fabric.rails[0]
    leaf = fabric.adapter_leaf[first]
    if (leaf < 0).any():
        name = fabric.hosts[int(np.argmax(leaf < 0))]
        raise InterferenceError(f"{fabric.name}: {name}: expecting a host at a leaf switch, got one without")
    switches = np.full(fabric.num_switches, -1)
    rows = [_of_vertices(fabric, np.arange(fabric.num_hosts), switches)]
    for groups in _by_height(fabric, leaf) if switch_groups is None else switch_groups:
        _, number = np.unique(groups[leaf], return_inverse=True)
        renamed = np.full(int(groups.max()) + 2, -1)  # the last element is for group -1, "none"
        renamed[groups[leaf]] = number
        rows.append(_of_vertices(fabric, number, renamed[groups]))
    vertex_group = np.stack(rows)
    source, target = vertex_group[:, fabric.link_source], vertex_group[:, fabric.link_target]
    leaves, enters = (np.where(source != target, end, -1) for end in (source, target))
    kept = (leaves >= 0).any(axis=1)
    return Levels(vertex_group[kept][:, first], leaves[kept], enters[kept], rates)


def _of_vertices(fabric: Fabric, hosts: Integers, switches: Integers) -> Integers:
    """Group of each vertex, shape (vertices,), from those of hosts and switches; further adapters are in none."""
    adapters = np.full(fabric.num_adapters, -1)
    adapters[fabric.rails[0]] = hosts
    return np.concatenate((adapters, switches))


def _by_height(fabric: Fabric, leaf: Integers) -> list[Integers]:
    """The groups of switches of levels 1, 2, ...: the leaf switches, then the components of switches below a height."""
    single, height = np.full(fabric.num_switches, -1), fabric.switch_level
    single[np.unique(leaf)] = np.unique(leaf)
    heights = range(1, int(height.max(initial=0)) + 1)
    below = [height <= most for most in heights]
    joined = [np.where((height >= 0) & within, fabric.switch_components(within), -1) for within in below]
    return [single, *joined]
