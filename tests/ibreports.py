"""A model of an InfiniBand fabric, and the reports and forwarding tables that real tools would print of it."""

from __future__ import annotations

import io
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from topompi.inputs import InputFile
from topompi.topology.discovery import Discovery, Report
from topompi.topology.fabric import Fabric
from topompi.topology.routes import Routes
from topompi.topology.sources import ibnetdiscover, tables

Port = tuple[str, int]
# The GUIDs of ``pair``'s switches and adapters.
S1, S2 = "0x0000000000005010", "0x0000000000005020"
A1, A2 = "0x000000000000a001", "0x000000000000a011"


@dataclass
class Model:
    """Switches and adapters by GUID, cables between (GUID, port); the tests' oracle."""

    switches: dict[str, str] = field(default_factory=dict)
    adapters: dict[str, str] = field(default_factory=dict)
    peer: dict[Port, Port] = field(default_factory=dict)
    lid: dict[str, int] = field(default_factory=dict)
    lmc: dict[str, int] = field(default_factory=dict)

    @classmethod
    def on_leaves(cls, *leaves: Iterable[str]) -> Model:
        """Adapters with these names on each leaf switch; several leaf switches have a cable each to a spine."""
        model = cls()
        for _ in range(len(leaves) + (len(leaves) > 1)):
            model.add_switch()
        switches = list(model.switches)
        for leaf in switches[:-1]:
            model.cable(leaf, switches[-1])
        for leaf, names in zip(switches, leaves, strict=False):
            for name in names:
                model.add_adapter(leaf, name)
        return model

    def free_port(self, device: str) -> int:
        return 1 + sum(owner == device for owner, _ in self.peer)

    def add_switch(self) -> None:
        number = len(self.switches) + 1
        self._add(self.switches, f"0x{0x5000 + 16 * number:016x}", f"MF0;sw{number}:X/U1", 0)

    def add_adapter(self, switch: str, name: str, lmc: int = 0) -> None:
        identity = f"0x{0xA000 + 16 * len(self.adapters) + 1:016x}"
        self._add(self.adapters, identity, name, lmc)
        self.cable(identity, switch)

    def _add(self, devices: dict[str, str], identity: str, name: str, lmc: int) -> None:
        top = max((base + (1 << self.lmc[device]) for device, base in self.lid.items()), default=1)
        devices[identity] = name
        self.lid[identity], self.lmc[identity] = -(-top >> lmc) << lmc, lmc
        if self.lid[identity] < top:  # a block of LIDs is aligned to its size
            self.lid[identity] += 1 << lmc

    def cable(self, one: str, other: str) -> None:
        ends = (one, self.free_port(one)), (other, self.free_port(other))
        self.peer[ends[0]], self.peer[ends[1]] = ends[1], ends[0]

    def ports(self, device: str) -> list[tuple[int, Port]]:
        return sorted((port, peer) for (owner, port), peer in self.peer.items() if owner == device)

    def links(self) -> Counter[tuple[Port, Port]]:
        return Counter(self.peer.items())

    def next_ports(self, destination: str) -> dict[str, list[int]]:
        """All ports on shortest paths of each switch towards an adapter."""
        distance = {destination: 0}
        queue = deque([destination])
        while queue:
            device = queue.popleft()
            for _, (peer, _) in self.ports(device):
                if peer in self.switches and peer not in distance:
                    distance[peer] = distance[device] + 1
                    queue.append(peer)
        return {
            switch: [port for port, (peer, _) in self.ports(switch) if distance.get(peer) == distance[switch] - 1]
            for switch in self.switches
            if switch in distance
        }

    def forwarding(self) -> dict[str, dict[int, tuple[str, int]]]:
        """Switch -> LID -> (destination, port); path k takes the k-th of the shortest ways."""
        table: dict[str, dict[int, tuple[str, int]]] = {switch: {} for switch in self.switches}
        for adapter in self.adapters:
            for switch, ports in self.next_ports(adapter).items():
                for path in range(1 << self.lmc[adapter]):
                    table[switch][self.lid[adapter] + path] = adapter, ports[path % len(ports)]
        for switch in self.switches:
            table[switch][self.lid[switch]] = switch, 0
        return table


def node(device: str, model: Model) -> str:
    """A device as ibnetdiscover quotes it: by node GUID, which an adapter's port GUID exceeds by one."""
    return f'"S-{device[2:]}"' if device in model.switches else f'"H-{int(device, 16) - 1:016x}"'


def default_report(model: Model) -> str:
    lines = ["#", "# Topology file: generated on Thu Jan  1 00:00:00 2015", "#", ""]
    for switch, name in model.switches.items():
        lines += [
            "vendid=0x2c9",
            "devid=0xbd36",
            f"sysimgguid={switch}",
            f"switchguid={switch}({switch[2:]})",
        ]
        lines += [f'Switch\t36 {node(switch, model)}\t\t# "{name}" base port 0 lid {model.lid[switch]} lmc 0']
        for port, (peer, peer_port) in model.ports(switch):
            tail = f'# "{(model.switches | model.adapters)[peer]}" lid {model.lid[peer]} 4xQDR'
            owner = "" if peer in model.switches else f"({int(peer, 16):x}) "
            lines += [f"[{port}]\t{node(peer, model)}[{peer_port}]{owner}\t\t{tail}"]
        lines += [""]
    for adapter, name in model.adapters.items():
        lines += ["vendid=0x2c9", "devid=0x673c", f"sysimgguid={adapter}", f"caguid={adapter}"]
        lines += [f'Ca\t1 {node(adapter, model)}\t\t# "{name}"']
        for port, (peer, peer_port) in model.ports(adapter):
            own = f"lid {model.lid[adapter]} lmc {model.lmc[adapter]}"
            tail = f'# {own} "{model.switches[peer]}" lid {model.lid[peer]} 4xQDR'
            lines += [f"[{port}]({int(adapter, 16):x}) \t{node(peer, model)}[{peer_port}]\t\t{tail}"]
        lines += [""]
    return "\n".join(lines)


def port_report(model: Model) -> str:
    names = model.switches | model.adapters
    lines = ['DR path slid 0; dlid 0; 0 -> new Channel Adapter {000000000000a000} portnum 1 lid 0-0 ""']
    for device, name in names.items():
        kind = "SW" if device in model.switches else "CA"
        if kind == "SW":
            lines += [f"SW {model.lid[device]:5} 36 {device} 4x ???{'':36}'{name}'"]
        for port, (peer, peer_port) in reversed(model.ports(device)):
            peer_kind = "SW" if peer in model.switches else "CA"
            lines += [
                f"{kind} {model.lid[device]:5} {port:2} {device} 4x QDR - {peer_kind} {model.lid[peer]:5} "
                f"{peer_port:2} {peer} ( '{name}' - '{names[peer]}' )"
            ]
    return "\n".join(lines) + "\n"


def opensm_dump(model: Model) -> str:
    names, top, lines = model.switches | model.adapters, 40, []
    for switch, table in model.forwarding().items():
        lines += [f"Unicast lids [0-{top}] of switch Lid {model.lid[switch]} guid {switch} ('{names[switch]}'):"]
        for lid, (device, port) in sorted(table.items()):
            kind = "Switch" if device in model.switches else "Channel Adapter"
            lines += [f"0x{lid:04x} {port:03} # {kind} portguid {device}: '{names[device]}'"]
        lines += [f"{top} lids dumped"]
    return "\n".join(lines) + "\n"


def ibroute(model: Model, switch: str, *, brief: bool = False, by_dr_path: bool = False) -> str:
    names, table = model.switches | model.adapters, model.forwarding()[switch]
    where = "DR path slid 0; dlid 0; 0,1,2" if by_dr_path else f"Lid {model.lid[switch]}"
    lines = [f"Unicast lids [0x0-0x28] of switch {where} guid {switch} ({names[switch]}):"]
    lines += ["  Lid  Out   Destination", "       Port     Info "]
    for lid, (device, port) in sorted(table.items()):
        kind = "Switch" if device in model.switches else "Channel Adapter"
        info = f": ({kind} portguid {device}: '{names[device]}')"
        if lid > model.lid[device]:
            path = f"path #{lid - model.lid[device] + 1} out of {1 << model.lmc[device]}"
            info = f": ({path}: portguid {device})"
        lines += [f"0x{lid:04x} {port:03} {'' if brief else info}"]
    return "\n".join([*lines, f"{len(table)} valid lids dumped "]) + "\n"


def source(text: str | bytes, name: str = "fabric.txt") -> InputFile:
    data = text.encode() if isinstance(text, str) else text
    return InputFile(name, lambda: io.BytesIO(data))


def read_default(text: str, report: Report | None = None) -> Discovery:
    return ibnetdiscover.read([source(text)], report or Report())


def read_tables(model: Model, texts: Iterable[str], report: Report | None = None) -> Routes:
    sources = [source(text, f"lft/{number}.txt") for number, text in enumerate(texts)]
    return tables.read(sources, read_default(default_report(model)), report or Report())


def links_of(fabric: Fabric) -> Counter[tuple[Port, Port]]:
    ends = zip(
        fabric.link_source.tolist(),
        fabric.link_source_port.tolist(),
        fabric.link_target.tolist(),
        fabric.link_target_port.tolist(),
        strict=True,
    )
    return Counter(((fabric.vertex_id(a), p), (fabric.vertex_id(b), q)) for a, p, b, q in ends)


def histogram(routes: Routes) -> dict[int, int]:
    """Ordered pairs of different adapters by hops."""
    fabric = routes.fabric
    hops = routes.tables.hops_from(fabric.adapter_leaf, np.arange(fabric.num_adapters, dtype=np.int32)).astype(int)
    np.fill_diagonal(hops, 0)
    return {hop: count for hop, count in sorted(Counter(hops.ravel().tolist()).items()) if hop}


@st.composite
def models(draw: st.DrawFn, *, connected: bool = False, max_lmc: int = 0) -> Model:
    model = Model()
    for _ in range(draw(st.integers(1, 5))):
        model.add_switch()
    switches = list(model.switches)
    for number in range(1, len(switches)):
        if connected or draw(st.booleans()):
            model.cable(switches[draw(st.integers(0, number - 1))], switches[number])
    if len(switches) > 1:
        for one, other in draw(st.lists(st.permutations(switches).map(lambda s: (s[0], s[1])), max_size=4)):
            model.cable(one, other)
    for host in range(draw(st.integers(1, 5))):
        for rail in range(draw(st.integers(1, 2))):
            model.add_adapter(
                draw(st.sampled_from(switches)), f"node{host} HCA-{rail + 1}", draw(st.integers(0, max_lmc))
            )
    return model


def pair(rails: int = 1, lmc: int = 0) -> Model:
    """Two switches with two cables between them, a host on each."""
    model = Model()
    model.add_switch()
    model.add_switch()
    one, other = model.switches
    model.cable(one, other)
    model.cable(one, other)
    for host, switch in (("left", one), ("right", other)):
        for rail in range(rails):
            model.add_adapter(switch, f"{host} HCA-{rail + 1}", lmc)
    return model
