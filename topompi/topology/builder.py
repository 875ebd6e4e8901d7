"""A builder to which parsers add the parts of a fabric one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ..errors import FabricError
from ..inputs.limits import current_limits
from .fabric import Fabric, IntArray

__all__ = ["FabricBuilder"]


@dataclass
class FabricBuilder:
    """A builder that collects the parts of a fabric as a parser finds them, and refuses contradictory parts at once.

    The caller chooses the ids; no adapter may have the id of a switch.

    :param name: name of the fabric.
    :param cabled: whether the source lists the real cables, see ``Fabric``.
    """

    name: str
    cabled: bool = True
    _hosts: dict[str, int] = field(default_factory=dict)
    _adapters: dict[str, int] = field(default_factory=dict)
    _adapter_host: list[int] = field(default_factory=list)
    _switches: dict[str, int] = field(default_factory=dict)
    _switch_names: list[str] = field(default_factory=list)
    _links: list[tuple[str, str, int, int, float, float]] = field(default_factory=list)
    _ports: dict[tuple[str, int], str] = field(default_factory=dict)

    def add_switch(self, identity: str, name: str = "", where: str = "") -> None:
        """Add a switch; raises FabricError if the id is taken.

        :param identity: id, unique among adapters and switches.
        :param name: display name; the id if empty.
        :param where: place in the source, ``file:line``, for error messages.
        """
        self._check_new(identity, "switch", where)
        self._switches[identity] = len(self._switches)
        self._switch_names.append(name or identity)

    def add_adapter(self, identity: str, host: str, where: str = "") -> None:
        """Add an adapter of a host, and the host if it is new; raises FabricError if the id is taken.

        :param identity: id, unique among adapters and switches.
        :param host: name of the adapter's host.
        :param where: place in the source, ``file:line``, for error messages.
        """
        self._check_new(identity, "host", where)
        self._adapters[identity] = len(self._adapters)
        self._adapter_host.append(self._hosts.setdefault(host, len(self._hosts)))

    def _check_new(self, identity: str, kind: str, where: str) -> None:
        if identity in self._switches or identity in self._adapters:
            raise FabricError(f"{where}: {kind} {identity} appears twice")

    def has(self, identity: str) -> bool:
        """Whether a switch or an adapter with this id was added."""
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

        :param source: id of the sending adapter or switch.
        :param target: id of the receiving adapter or switch.
        :param source_port: port number at the source, 0 if unknown.
        :param target_port: port number at the target, 0 if unknown.
        :param rate: bandwidth in bytes/s, NaN if unknown.
        :param latency: latency in seconds, NaN if unknown.
        :param where: place in the source, ``file:line``, for error messages.
        """
        if source_port:
            taken = self._ports.setdefault((source, source_port), where or target)
            if taken != (where or target):
                raise FabricError(f"{where}: port {source_port} of {source} has two links, the other one at {taken}")
        self._links.append((source, target, source_port, target_port, rate, latency))

    def add_cable(self, source: str, target: str, *ports: int, rate: float = float("nan")) -> None:
        """Add a cable: one link in each direction.

        :param source: id of the adapter or switch at one end.
        :param target: id of the adapter or switch at the other end.
        :param ports: port numbers at source and target; none if they are unknown.
        :param rate: bandwidth in each direction in bytes/s, NaN if unknown.
        """
        first, second = ports or (0, 0)
        self.add_link(source, target, first, second, rate)
        self.add_link(target, source, second, first, rate)

    def build(self) -> Fabric:
        """Make the fabric; raises FabricError if there is no switch, or a link ends at an id that was never added."""
        if not self._switches:
            raise FabricError(f"{self.name}: no switch found")
        current_limits().check("hosts", len(self._hosts), self.name, FabricError)
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
            cabled=self.cabled,
        )

    def _check_ends(self, vertex: dict[str, int], sources: Iterable[object], targets: Iterable[object]) -> None:
        for source, target in zip(sources, targets, strict=True):
            for end, other in ((source, target), (target, source)):
                if end not in vertex:
                    raise FabricError(f"{self.name}: a link of {other} ends at {end}, which the source does not list")


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int32)
