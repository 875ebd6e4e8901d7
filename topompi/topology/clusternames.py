"""Names of clusters of hosts, taken from the switches above them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .interface import TopologyInterface

__all__ = ["ClusterNames"]


class ClusterNames:
    """Names for the clusters of a job's hosts; a cluster is named after the lowest switch above all of its hosts.

    :param interface: the job's hosts and the part of the fabric that joins them.
    """

    def __init__(self, interface: TopologyInterface) -> None:
        self._interface = interface

    def name(self, node: int) -> str:
        """The name of the lowest switch above all hosts of a cluster; empty if there is no single lowest one.

        :param node: the cluster, as a node of the job's cluster tree.

        Cost: switches x hosts; the first call also finds the hosts below each switch.
        """
        routes = self._interface.routes
        if routes is None:
            return ""
        hosts = np.any(self._interface.tree.clusters == node, axis=0)
        above = np.flatnonzero(self._below[:, hosts].all(axis=1))
        level = routes.fabric.switch_level[above]
        lowest = above[level == level.min(initial=len(level) + routes.fabric.num_switches)]
        return routes.fabric.switch_names[lowest[0]] if len(lowest) == 1 else ""

    @cached_property
    def _below(self) -> NDArray[np.bool_]:
        """Whether each switch has a path to each host on which every link leads down; shape (switches, hosts)."""
        assert self._interface.routes is not None  # ``name`` has checked this
        fabric = self._interface.routes.fabric
        below = np.zeros((fabric.num_switches, fabric.num_hosts), dtype=bool)
        joined = fabric.adapter_leaf >= 0
        below[fabric.adapter_leaf[joined], fabric.adapter_host[joined]] = True
        source, target = (
            ends[fabric.switch_links] - fabric.num_adapters for ends in (fabric.link_source, fabric.link_target)
        )
        pairs = np.unique(np.stack((source, target), axis=1), axis=0)
        level = fabric.switch_level
        pairs = pairs[level[pairs[:, 0]] > level[pairs[:, 1]]]
        for at in np.unique(level[level > 0]):
            upper, lower = pairs[level[pairs[:, 0]] == at].T
            first = np.flatnonzero(np.diff(upper, prepend=-1))
            if len(first):
                below[upper[first]] |= np.logical_or.reduceat(below[lower], first, axis=0)
        return below
