"""The fabric: hosts, their adapters, switches, and the directed links between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FabricError

if TYPE_CHECKING:
    import networkx

__all__ = ["Fabric", "FabricBuilder", "infiniband_rate"]

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]

# Data rate of one InfiniBand lane in bytes/s: signalling rate less the line code
# (8b/10b up to QDR, 64b/66b from FDR10 on), as the InfiniBand Trade Association's roadmap counts.
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
    """Data rate in bytes/s of a link named as ibnetdiscover does (``4xQDR``); NaN where unknown."""
    width, _, speed = name.partition("x")
    if not width.isdigit() or speed not in LANE_RATE:
        return float("nan")
    return int(width) * LANE_RATE[speed]


@dataclass(frozen=True, eq=False)
class Fabric:
    """Hosts, switches and directed links, as columns.

    Vertices are numbered adapters first: adapter ``a`` is vertex ``a``, switch ``s`` is vertex
    ``len(adapter_ids) + s``. An adapter is one channel adapter port of a host; a host with several (rails)
    has several adapters. A cable is two links, one in each direction; parallel cables stay apart.

    :param name: where the fabric came from.
    :param hosts: host names, unique, length H.
    :param adapter_ids: GUIDs (or names), unique, length A.
    :param adapter_host: host index of each adapter, shape (A,), ascending rail order within a host.
    :param switch_ids: GUIDs (or names), unique, length S.
    :param switch_names: what people call the switches, length S; need not be unique.
    :param link_source: vertex each link leaves, shape (L,); likewise ``link_target``.
    :param link_source_port: port number at the source, shape (L,), 0 where unknown; likewise ``link_target_port``.
    :param link_rate: bytes/s, shape (L,), NaN where unknown.
    :param link_latency: seconds, shape (L,), NaN where unknown.
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
    def host_index(self) -> dict[str, int]:
        """Host name -> host index."""
        return {name: index for index, name in enumerate(self.hosts)}

    @cached_property
    def adapter_index(self) -> dict[str, int]:
        """Adapter id -> adapter index."""
        return {name: index for index, name in enumerate(self.adapter_ids)}

    @cached_property
    def switch_index(self) -> dict[str, int]:
        """Switch id -> switch index."""
        return {name: index for index, name in enumerate(self.switch_ids)}

    @cached_property
    def adapter_uplink(self) -> IntArray:
        """The link from each adapter into the fabric, shape (A,); -1 where it has none."""
        uplink = np.full(self.num_adapters, -1, dtype=np.int32)
        from_adapter = np.flatnonzero(self.link_source < self.num_adapters)[::-1]
        uplink[self.link_source[from_adapter]] = from_adapter
        return uplink

    @cached_property
    def adapter_downlink(self) -> IntArray:
        """The link from the leaf switch to each adapter, shape (A,); -1 where it has none."""
        downlink = np.full(self.num_adapters, -1, dtype=np.int32)
        to_adapter = np.flatnonzero(self.link_target < self.num_adapters)[::-1]
        downlink[self.link_target[to_adapter]] = to_adapter
        return downlink

    @cached_property
    def adapter_leaf(self) -> IntArray:
        """Switch index of the leaf switch of each adapter, shape (A,); -1 where it has none."""
        leaf = np.where(self.adapter_uplink >= 0, self.link_target[self.adapter_uplink], -1)
        return np.where(leaf >= 0, leaf - self.num_adapters, -1).astype(np.int32)

    @cached_property
    def switch_links(self) -> IntArray:
        """The links between two switches, ascending."""
        first = self.num_adapters
        return np.flatnonzero((self.link_source >= first) & (self.link_target >= first)).astype(np.int32)

    @cached_property
    def switch_level(self) -> IntArray:
        """Links between each switch and the nearest leaf switch, shape (S,): 0 for leaves, -1 where there is no way."""
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
        """The adapters of each host in rail order, one array a host."""
        order = np.argsort(self.adapter_host, kind="stable").astype(np.int32)
        bounds = np.searchsorted(self.adapter_host[order], np.arange(1, self.num_hosts))
        return tuple(np.split(order, bounds)) if self.num_hosts else ()

    @cached_property
    def switch_component(self) -> IntArray:
        """Number of the connected component of each switch, shape (S,)."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ends = [self.link_source[self.switch_links], self.link_target[self.switch_links]]
        ones = np.ones(len(self.switch_links), dtype=np.int8)
        size = self.num_switches
        graph = coo_array((ones, (ends[0] - self.num_adapters, ends[1] - self.num_adapters)), shape=(size, size))
        return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)

    def links_by_port(self) -> IntArray:
        """The link that leaves each switch by each port: shape (S, ports + 1), -1 where no link is."""
        leaving = np.flatnonzero(self.link_source >= self.num_adapters)
        ports = self.link_source_port[leaving]
        table = np.full((self.num_switches, int(ports.max(initial=0)) + 1), -1, dtype=np.int32)
        table[self.link_source[leaving] - self.num_adapters, ports] = leaving
        return table

    def vertex_id(self, vertex: int) -> str:
        """Id (GUID or name) of a vertex."""
        first = self.num_adapters
        return self.adapter_ids[vertex] if vertex < first else self.switch_ids[vertex - first]

    def describe_switch(self, switch: int) -> str:
        """A switch as messages name it: its id, and its name where that says more."""
        identity, name = self.switch_ids[switch], self.switch_names[switch]
        return identity if name in ("", identity) else f"{identity} ({name})"

    def to_networkx(self) -> networkx.MultiDiGraph:
        """The fabric as a directed multigraph whose vertices are adapter and switch ids.

        Vertex attributes: ``kind`` (host or switch), ``name``; link attributes: ``link`` (its number here),
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


@dataclass
class FabricBuilder:
    """Collects what a source says, one thing at a time, and refuses contradictions where they occur.

    Ids are the caller's keys: adapters and switches share one name space. ``where`` is the place in the source
    (``file:line``) that messages name.
    """

    name: str
    _hosts: dict[str, int] = field(default_factory=dict)
    _adapters: dict[str, int] = field(default_factory=dict)
    _adapter_host: list[int] = field(default_factory=list)
    _switches: dict[str, int] = field(default_factory=dict)
    _switch_names: list[str] = field(default_factory=list)
    _links: list[tuple[str, str, int, int, float, float]] = field(default_factory=list)
    _ports: dict[tuple[str, int], str] = field(default_factory=dict)

    def add_switch(self, identity: str, name: str = "", where: str = "") -> None:
        """Add a switch; raises FabricError if the id is taken."""
        self._check_new(identity, "switch", where)
        self._switches[identity] = len(self._switches)
        self._switch_names.append(name or identity)

    def add_adapter(self, identity: str, host: str, where: str = "") -> None:
        """Add an adapter of a host, and the host where it is new; raises FabricError if the id is taken."""
        self._check_new(identity, "host", where)
        self._adapters[identity] = len(self._adapters)
        self._adapter_host.append(self._hosts.setdefault(host, len(self._hosts)))

    def _check_new(self, identity: str, kind: str, where: str) -> None:
        if identity in self._switches or identity in self._adapters:
            raise FabricError(f"{where}: {kind} {identity} appears twice")

    def has(self, identity: str) -> bool:
        """Whether a switch or an adapter of this id was added."""
        return identity in self._switches or identity in self._adapters

    def add_link(
        self,
        source: str,
        target: str,
        source_port: int = 0,
        target_port: int = 0,
        rate: float = float("nan"),
        latency: float = float("nan"),
        where: str = "",
    ) -> None:
        """Add one directed link; raises FabricError if its source port has a link already.

        :param rate: bytes/s, NaN where unknown.
        :param latency: seconds, NaN where unknown.
        """
        if source_port:
            taken = self._ports.setdefault((source, source_port), where or target)
            if taken != (where or target):
                raise FabricError(f"{where}: port {source_port} of {source} has two links, the other one at {taken}")
        self._links.append((source, target, source_port, target_port, rate, latency))

    def add_cable(self, source: str, target: str, *ports: int, rate: float = float("nan")) -> None:
        """Add the two links of a cable; ``ports`` are the port numbers at source and target."""
        first, second = ports or (0, 0)
        self.add_link(source, target, first, second, rate)
        self.add_link(target, source, second, first, rate)

    def build(self) -> Fabric:
        """The fabric; raises FabricError if a link ends at something that was never added, or nothing was."""
        if not self._switches:
            raise FabricError(f"{self.name}: no switch found")
        vertex = self._adapters | {name: len(self._adapters) + s for name, s in self._switches.items()}
        columns = list(zip(*self._links, strict=True)) or [()] * 6
        self._check_ends(vertex, columns[0], columns[1])
        return Fabric(
            name=self.name,
            hosts=tuple(self._hosts),
            adapter_ids=tuple(self._adapters),
            adapter_host=np.array(self._adapter_host, dtype=np.int32),
            switch_ids=tuple(self._switches),
            switch_names=tuple(self._switch_names),
            link_source=_integers(vertex[name] for name in columns[0]),
            link_target=_integers(vertex[name] for name in columns[1]),
            link_source_port=_integers(columns[2]),
            link_target_port=_integers(columns[3]),
            link_rate=np.array(columns[4], dtype=np.float64),
            link_latency=np.array(columns[5], dtype=np.float64),
        )

    def _check_ends(self, vertex: dict[str, int], sources: Iterable[Any], targets: Iterable[Any]) -> None:
        for source, target in zip(sources, targets, strict=True):
            for end, other in ((source, target), (target, source)):
                if end not in vertex:
                    raise FabricError(f"{self.name}: a link of {other} ends at {end}, which the source does not list")


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int32)
