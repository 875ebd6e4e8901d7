"""The fabric: an immutable value of hosts, adapters, switches and the directed links between them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import FabricError
from ..inputs.hostlist import HostNames
from ..inputs.limits import current_limits
from ..network import first_links
from .torus import SwitchTorus, find_torus

if TYPE_CHECKING:
    import networkx

__all__ = ["Fabric", "infiniband_rate"]

DIRECT = 0.9  # least share of switches with hosts in a direct network, for example a torus; a fat tree has about half

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]

# Data rate of one InfiniBand lane in bytes/s: the signalling rate less the line code (8b/10b up to QDR, 64b/66b from
# FDR10 on), as in the InfiniBand Trade Association's roadmap.
LANE_RATE = {
    "SDR": 2.0e9 / 8,
    "DDR": 4.0e9 / 8,
    "QDR": 8.0e9 / 8,
    "FDR10": 10.0e9 / 8,
    "FDR": 13.5e9 / 8,
    "EDR": 25.0e9 / 8,
    "HDR": 50.0e9 / 8,
    "NDR": 100.0e9 / 8,
    "XDR": 200.0e9 / 8,
}


def infiniband_rate(name: str) -> float:
    """Data rate in bytes/s of a link rate in ibnetdiscover's spelling (``4xQDR``); NaN if the name is unknown."""
    width, _, speed = name.partition("x")
    if not re.fullmatch("[0-9]{1,3}", width) or speed not in LANE_RATE:
        return float("nan")
    return int(width) * LANE_RATE[speed]


@dataclass(frozen=True, eq=False)
class Fabric:
    """An immutable fabric: its hosts, adapters, switches and directed links, stored as columns.

    Vertices are numbered adapters first: adapter ``a`` is vertex ``a``, switch ``s`` is vertex ``len(adapter_ids) +
    s``. An adapter is one channel adapter port of a host; a host with several rails has several adapters. A cable is
    two links, one in each direction; parallel cables are separate links.

    :param name: name of the fabric, often its source.
    :param hosts: host names, unique.
    :param adapter_ids: GUIDs (or names) of the adapters, unique.
    :param adapter_host: host index of each adapter, shape (adapters,); the adapters of a host are in the order of its
        rails.
    :param switch_ids: GUIDs (or names) of the switches, unique.
    :param switch_names: display names of the switches, one per switch; need not be unique.
    :param link_source: vertex that each link leaves, shape (links,).
    :param link_target: vertex that each link enters, shape (links,).
    :param link_source_port: port number at the source, shape (links,), 0 if unknown.
    :param link_target_port: port number at the target, shape (links,), 0 if unknown.
    :param link_rate: bandwidth in bytes/s, shape (links,), NaN if unknown.
    :param link_latency: latency in seconds, shape (links,), NaN if unknown.
    :param cabled: whether the links are real cables; False if the source lists only which switch is above which, so
        that one link stands for all cables between two switches.
    :param part_of: torus of the whole fabric with the coordinates of these switches, if this fabric is a part of a
        torus; else None.
    """

    name: str
    hosts: tuple[str, ...]
    adapter_ids: tuple[str, ...]
    adapter_host: IntArray
    switch_ids: tuple[str, ...]
    switch_names: tuple[str, ...]
    link_source: IntArray
    link_target: IntArray
    link_source_port: IntArray
    link_target_port: IntArray
    link_rate: FloatArray
    link_latency: FloatArray
    cabled: bool = True
    part_of: SwitchTorus | None = None

    def __repr__(self) -> str:
        return (
            f"Fabric({self.name!r}: {self.num_hosts:,} hosts, {self.num_adapters:,} adapters, "
            f"{self.num_switches:,} switches, {self.num_links:,} directed links)"
        )

    @property
    def num_hosts(self) -> int:
        """Number of hosts."""
        return len(self.hosts)

    @property
    def num_adapters(self) -> int:
        """Number of adapters, which is also the vertex number of the first switch."""
        return len(self.adapter_ids)

    @property
    def num_switches(self) -> int:
        """Number of switches."""
        return len(self.switch_ids)

    @property
    def num_links(self) -> int:
        """Number of directed links."""
        return len(self.link_source)

    @cached_property
    def host_names(self) -> HostNames:
        """The host names of the fabric, with the search for names that jobs spell differently."""
        return HostNames(self.hosts)

    @property
    def host_index(self) -> dict[str, int]:
        """Host name -> host index."""
        return self.host_names.index

    @cached_property
    def adapter_index(self) -> dict[str, int]:
        """Adapter id -> adapter index."""
        return {name: index for index, name in enumerate(self.adapter_ids)}

    @cached_property
    def switch_index(self) -> dict[str, int]:
        """Switch id -> switch index."""
        return {name: index for index, name in enumerate(self.switch_ids)}

    @cached_property
    def vertex_names(self) -> tuple[str, ...]:
        """Name of each vertex: for an adapter its host's name, for a switch its name, or its id if it has none."""
        switches = (name or identity for name, identity in zip(self.switch_names, self.switch_ids, strict=True))
        return (*(self.hosts[host] for host in self.adapter_host.tolist()), *switches)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Display name of each link, ``source → target``."""
        ends = zip(self.link_source.tolist(), self.link_target.tolist(), strict=True)
        return tuple(f"{self.vertex_names[source]} → {self.vertex_names[target]}" for source, target in ends)

    @cached_property
    def adapter_uplink(self) -> IntArray:
        """The link from each adapter into the fabric, shape (adapters,); -1 if it has none."""
        return first_links(self.link_source, self.num_adapters)

    @cached_property
    def adapter_downlink(self) -> IntArray:
        """The link from the leaf switch to each adapter, shape (adapters,); -1 if it has none."""
        return first_links(self.link_target, self.num_adapters)

    @cached_property
    def adapter_leaf(self) -> IntArray:
        """Switch index of the leaf switch of each adapter, shape (adapters,); -1 if it has none."""
        leaf = np.append(self.link_target, -1)[self.adapter_uplink]
        return np.where(leaf >= 0, leaf - self.num_adapters, -1).astype(np.int32)

    @cached_property
    def switch_links(self) -> IntArray:
        """Numbers of the links whose two ends are switches, ascending."""
        first = self.num_adapters
        return np.flatnonzero((self.link_source >= first) & (self.link_target >= first)).astype(np.int32)

    @cached_property
    def switch_level(self) -> IntArray:
        """Number of links from each switch to the nearest leaf switch: 0 for leaf switches, -1 if there is no path.

        :returns: numbers of shape (switches,).
        """
        level = np.full(self.num_switches, -1, dtype=np.int32)
        reached = np.unique(self.adapter_leaf[self.adapter_leaf >= 0])
        source = self.link_source[self.switch_links] - self.num_adapters
        target = self.link_target[self.switch_links] - self.num_adapters
        distance = 0
        while len(reached):
            level[reached] = distance
            distance += 1
            ahead = source[level[target] == distance - 1]
            reached = np.unique(ahead[level[ahead] < 0])
        return level

    @cached_property
    def host_adapters(self) -> tuple[IntArray, ...]:
        """The adapters of each host in rail order, one array per host."""
        order = np.argsort(self.adapter_host, kind="stable").astype(np.int32)
        bounds = np.searchsorted(self.adapter_host[order], np.arange(self.num_hosts + 1)).tolist()
        return tuple(order[first:last] for first, last in itertools.pairwise(bounds))

    @cached_property
    def rails(self) -> IntArray:
        """Adapter of each host on each rail, shape (rails, hosts), -1 if the host has fewer rails."""
        order = np.argsort(self.adapter_host, kind="stable").astype(np.int32)
        host = self.adapter_host[order]
        rail = np.arange(len(order)) - np.searchsorted(host, host)
        adapters = np.full((int(rail.max(initial=0)) + 1, self.num_hosts), -1, dtype=np.int32)
        adapters[rail, host] = order
        return adapters

    @cached_property
    def switch_component(self) -> IntArray:
        """Number of each switch's connected component, shape (switches,), in the order of their first switches."""
        return self.switch_components(np.ones(self.num_switches, dtype=bool))

    def switch_components(self, joining: NDArray[np.bool_]) -> IntArray:
        """Number of each switch's connected component over links between some switches, shape (switches,).

        Components are counted in the order of their first switches; other switches are components of their own.

        Each switch takes the least label among its neighbours, and each label is then replaced by that label's own
        label (Y. Shiloach and U. Vishkin, An O(log n) parallel connectivity algorithm, 1982). This takes a few array
        operations, and needs no import of scipy, which would delay a job's start.

        :param joining: whether each switch's links to others of these count, shape (switches,).
        """
        ends = [self.link_source[self.switch_links], self.link_target[self.switch_links]]
        first, second = (end - self.num_adapters for end in ends)
        first, second = (end[joining[first] & joining[second]] for end in (first, second))
        label, before = np.arange(self.num_switches), None
        while before is None or (label != before).any():
            before = label.copy()
            least = np.minimum(label[first], label[second])
            np.minimum.at(label, first, least)
            np.minimum.at(label, second, least)
            label = label[label]
        return np.unique(label, return_inverse=True)[1].astype(np.int32)

    @cached_property
    def torus(self) -> SwitchTorus | None:
        """The torus or mesh that the switches form, recognised by cabling, not by name; None for other networks.

        The result is None also if fewer than nine in ten switches have hosts. A part of a torus returns ``part_of``,
        the whole torus with the coordinates of the part's switches. Cost: see ``find_torus``.
        """
        if self.part_of is not None:
            return self.part_of
        with_hosts = len(np.unique(self.adapter_leaf[self.adapter_leaf >= 0]))
        if with_hosts < DIRECT * self.num_switches:
            return None
        links, first = self.switch_links, self.num_adapters
        return find_torus(self.link_source[links] - first, self.link_target[links] - first, self.num_switches)

    def links_by_port(self) -> IntArray:
        """The link that leaves each switch by each port: shape (switches, ports + 1), -1 for a port without a link.

        :raises FabricError: if the table's size exceeds the limit ``routes``, because of very large port numbers.
        """
        leaving = np.flatnonzero(self.link_source >= self.num_adapters)
        ports = self.link_source_port[leaving]
        shape = self.num_switches, int(ports.max(initial=0)) + 1
        current_limits().check("routes", shape[0] * shape[1], self.name, FabricError)
        table = np.full(shape, -1, dtype=np.int32)
        table[self.link_source[leaving] - self.num_adapters, ports] = leaving
        return table

    def vertex_id(self, vertex: int) -> str:
        """Id (GUID or name) of a vertex."""
        first = self.num_adapters
        return self.adapter_ids[vertex] if vertex < first else self.switch_ids[vertex - first]

    def describe_switch(self, switch: int) -> str:
        """A switch's id for messages, followed in brackets by its name if the name differs from the id."""
        identity, name = self.switch_ids[switch], self.switch_names[switch]
        return identity if name in ("", identity) else f"{identity} ({name})"

    def to_networkx(self) -> networkx.MultiDiGraph:
        """The fabric as a directed multigraph whose vertices are adapter and switch ids.

        Vertex attributes: ``kind`` (host or switch), ``name``; link attributes: ``link`` (its number in this fabric),
        ``source_port``, ``target_port``, ``rate`` (bytes/s), ``latency`` (seconds).
        """
        import networkx

        graph = networkx.MultiDiGraph(name=self.name)
        for adapter, identity in enumerate(self.adapter_ids):
            graph.add_node(identity, kind="host", name=self.hosts[self.adapter_host[adapter]])
        for identity, name in zip(self.switch_ids, self.switch_names, strict=True):
            graph.add_node(identity, kind="switch", name=name)
        for link in range(self.num_links):
            graph.add_edge(
                self.vertex_id(int(self.link_source[link])),
                self.vertex_id(int(self.link_target[link])),
                link=link,
                source_port=int(self.link_source_port[link]),
                target_port=int(self.link_target_port[link]),
                rate=float(self.link_rate[link]),
                latency=float(self.link_latency[link]),
            )
        return graph
