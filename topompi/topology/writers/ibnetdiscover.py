"""Writer of a fabric as an ibnetdiscover report, which the simulator ibsim and topompi's own reader accept."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ...errors import FabricError
from ..fabric import LANE_RATE, Fabric

__all__ = ["link_rate_name", "write_ibnetdiscover"]

# Bytes/s of every link-rate name. Names of 4x links are first, because max() returns the first of equal rates and most
# links are 4x.
RATES = {f"{width}x{speed}": width * lane for width in (4, 1, 2, 8, 12) for speed, lane in LANE_RATE.items()}
# Rate name of links of unknown rate: the slowest usual rate, because not every reader accepts a name for "unknown".
UNKNOWN = "4xSDR"
MAX_PORT = 254  # largest port number, because it has eight bits and 255 means "no port"
_GUID = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)


def write_ibnetdiscover(fabric: Fabric) -> str:
    """The default ibnetdiscover report of a fabric: a section for each switch, then one for each adapter card.

    LIDs count from 1, switches first; the LMC is 0. A rate is written as the name of the fastest link type that does
    not exceed it, or as 4xSDR if it is unknown; the format has no latencies. An adapter's id is written as the GUID of
    its port.

    :raises FabricError: if an id is no GUID, or a port number is unknown, repeated, or too large for InfiniBand.
    Cost: one line per link.
    """
    _check_ports(fabric)
    writer = _Writer(fabric)
    lines = ["#", f"# Topology file: {fabric.name}", "#"]
    for switch in range(fabric.num_switches):
        lines += writer.switch_section(fabric.num_adapters + switch)
    for card, ports in writer.cards.items():
        lines += writer.card_section(card, ports)
    return "\n".join(lines) + "\n"


def link_rate_name(rate: float) -> str:
    """Name of the fastest link type whose rate does not exceed ``rate`` (bytes/s); 4xSDR if there is none."""
    # The tolerance is for rates that were read from a text and may have lost their last digits.
    slower = [name for name, known in RATES.items() if known <= rate * (1 + 1e-9)]
    return max(slower, key=RATES.__getitem__, default=UNKNOWN)


class _Writer:
    """A writer of a report's sections; it keeps the columns as lists, because single look-ups in arrays are slow."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.first_switch = fabric.num_adapters
        self.guid = [_guid(identity) for identity in (*fabric.adapter_ids, *fabric.switch_ids)]
        order = np.lexsort((fabric.link_source_port, fabric.link_source))
        self.leaving = np.split(order, np.searchsorted(fabric.link_source[order], np.arange(1, len(self.guid))))
        self.target = fabric.link_target.tolist()
        self.source_port = fabric.link_source_port.tolist()
        self.target_port = fabric.link_target_port.tolist()
        self.rate = [link_rate_name(rate) for rate in fabric.link_rate.tolist()]
        self.port = [self.source_port[link] if link >= 0 else 1 for link in fabric.adapter_uplink.tolist()]
        self.cards = self._cards()
        self.description = self._descriptions()

    def _cards(self) -> dict[int, list[int]]:
        """Card GUID -> its adapters (ports); a port's GUID is the card's GUID plus the port number."""
        cards: dict[int, list[int]] = {}
        for adapter in range(self.first_switch):
            cards.setdefault(self._node_guid(adapter), []).append(adapter)
        return cards

    def _node_guid(self, vertex: int) -> int:
        return self.guid[vertex] - (self.port[vertex] if vertex < self.first_switch else 0)

    def _descriptions(self) -> list[str]:
        """Node description of each vertex; for an adapter its host's name and the number of its card in the host."""
        descriptions = [""] * self.first_switch + [name.replace('"', "'") for name in self.fabric.switch_names]
        cards_of_host = [0] * self.fabric.num_hosts
        for adapters in self.cards.values():
            host = self.fabric.adapter_host[adapters[0]]
            cards_of_host[host] += 1
            for adapter in adapters:
                descriptions[adapter] = f"{self.fabric.hosts[host]} HCA-{cards_of_host[host]}"
        return descriptions

    def switch_section(self, switch: int) -> Iterator[str]:
        links = self.leaving[switch].tolist()
        guid, ports = self.guid[switch], max((self.source_port[link] for link in links), default=1)
        yield from _preamble(guid, f"switchguid=0x{guid:x}({guid:x})")
        name, lid = self.description[switch], self._lid(switch)
        yield f'Switch\t{ports} {self._node(switch)}\t\t# "{name}" base port 0 lid {lid} lmc 0'
        for link in links:
            target = self.target[link]
            end = f"{self._node(target)}[{self.target_port[link]}]"
            end += f"({self.guid[target]:x}) " if target < self.first_switch else ""
            comment = f'"{self.description[target]}" lid {self._lid(target)} {self.rate[link]}'
            yield f"[{self.source_port[link]}]\t{end}\t\t# {comment}"

    def card_section(self, guid: int, adapters: list[int]) -> Iterator[str]:
        yield from _preamble(guid, f"caguid=0x{guid:x}")
        ports = max(self.port[adapter] for adapter in adapters)
        yield f'Ca\t{ports} {self._node(adapters[0])}\t\t# "{self.description[adapters[0]]}"'
        for adapter in adapters:
            for link in self.leaving[adapter].tolist():
                target, lid = self.target[link], self._lid(adapter)
                end = f"{self._node(target)}[{self.target_port[link]}]"
                there = f'"{self.description[target]}" lid {self._lid(target)} {self.rate[link]}'
                yield f"[{self.port[adapter]}]({self.guid[adapter]:x}) \t{end}\t\t# lid {lid} lmc 0 {there}"

    def _node(self, vertex: int) -> str:
        return f'"{"H" if vertex < self.first_switch else "S"}-{self._node_guid(vertex):016x}"'

    def _lid(self, vertex: int) -> int:
        after_switches = self.fabric.num_switches + 1
        return vertex - self.first_switch + 1 if vertex >= self.first_switch else vertex + after_switches


def _preamble(system_guid: int, guid_line: str) -> Iterator[str]:
    """The lines at the beginning of every section; vendor and device numbers are 0."""
    yield from ("", "vendid=0x0", "devid=0x0", f"sysimgguid=0x{system_guid:x}", guid_line)


def _guid(identity: str) -> int:
    if not _GUID.fullmatch(identity):
        raise FabricError(f"expecting a GUID such as 0x0002c90300000001, got {identity!r}")
    return int(identity, 16)


def _check_ports(fabric: Fabric) -> None:
    for vertex, port in (
        (fabric.link_source, fabric.link_source_port),
        (fabric.link_target, fabric.link_target_port),
    ):
        wrong = np.flatnonzero((port < 1) | (port > MAX_PORT))
        if len(wrong):
            where, number = fabric.vertex_id(int(vertex[wrong[0]])), int(port[wrong[0]])
            raise FabricError(f"{where}: expecting port numbers between 1 and {MAX_PORT}, got {number}")
    ends = np.stack((fabric.link_source, fabric.link_source_port), axis=1)
    if len(np.unique(ends, axis=0)) < len(ends):
        raise FabricError(f"{fabric.name}: expecting one link a port, got several")
