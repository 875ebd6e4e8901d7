"""InfiniBand reports and forwarding tables: what is read equals what was written, and damage is named."""

from __future__ import annotations

import gzip
import io
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import shared_data
from topompi.errors import RouteError, SourceError, TopompiError
from topompi.topology.discovery import Discovery, Report
from topompi.topology.fabric import Fabric
from topompi.topology.routes import Routes
from topompi.topology.sources import ibnetdiscover, ibports, tables
from topompi.topology.sources.text import SourceText, open_texts

DERIVED = "fabrics/derived-ibsim-opensm"
Port = tuple[str, int]


# A model of a fabric, and the reports real tools would print of it.


@dataclass
class Model:
    """Switches and adapters by GUID, cables between (GUID, port); the oracle of the tests below."""

    switches: dict[str, str] = field(default_factory=dict)
    adapters: dict[str, str] = field(default_factory=dict)
    peer: dict[Port, Port] = field(default_factory=dict)
    lid: dict[str, int] = field(default_factory=dict)
    lmc: dict[str, int] = field(default_factory=dict)

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


def source(text: str | bytes, name: str = "fabric.txt") -> SourceText:
    data = text.encode() if isinstance(text, str) else text
    return SourceText(name, lambda: io.BytesIO(data))


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
    hops = routes.hops_from(fabric.adapter_leaf, np.arange(fabric.num_adapters, dtype=np.int32)).astype(int)
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


# Reports.


@given(models())
def test_both_reports_yield_the_fabric_they_were_printed_from(model: Model) -> None:
    for found in (
        read_default(default_report(model)),
        ibports.read([source(port_report(model))], Report()),
    ):
        fabric = found.fabric
        assert fabric.switch_ids == tuple(model.switches)
        assert fabric.switch_names == tuple(model.switches.values())
        hosts = {name: fabric.hosts[host] for name, host in zip(fabric.adapter_ids, fabric.adapter_host, strict=True)}
        assert hosts == {identity: name.split()[0] for identity, name in model.adapters.items()}
        assert links_of(fabric) == model.links()
        assert set(fabric.link_rate) <= {4e9}
        assert found.lids == {lid: device for device, lid in model.lid.items()}


def banner_after(line: int) -> Callable[[str], str]:
    banner = [
        "*** maintenance at 18:00 ***",
        "ibwarn: [2011] mad_rpc: _do_madrpc failed; dport (Lid 9)",
        "# why?",
    ]
    return lambda text: "\n".join((lines := text.split("\n"))[:line] + banner + lines[line:])


MUTATIONS: dict[str, Callable[[str], str]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "tabs to spaces": lambda text: text.replace("\t", "    "),
    "tabs lost": lambda text: text.replace("\t", ""),
    "blank lines lost": lambda text: re.sub(r"\n\n+", "\n", text),
    "banner first": banner_after(0),
    "log line with a process id first": lambda text: "[2011] opening umad port\n" + text,
    "banner within": banner_after(9),
    "labels of chassis ports": lambda text: re.sub(r"^\[(\d+)\]\t", r"[\1][ext 3]\t", text, flags=re.M),
    "full information": lambda text: text.replace(" 4xQDR", " 4xQDR s=4 w=2 v=5"),
    "sections of adapters lost": lambda text: text.partition("vendid=0x2c9\ndevid=0x673c")[0],
    "ports of switches to adapters lost": lambda text: re.sub(r'^\[\d+\]\t"H-.*\n', "", text, flags=re.M),
}


@pytest.mark.parametrize("name", MUTATIONS)
@settings(max_examples=25)
@given(model=models())
def test_harmless_changes_of_a_report_change_nothing(name: str, model: Model) -> None:
    text = default_report(model)
    fabric = read_default(MUTATIONS[name](text)).fabric
    assert set(fabric.adapter_ids) == set(model.adapters)
    assert set(fabric.hosts) == {name.split()[0] for name in model.adapters.values()}
    assert links_of(fabric) == model.links()


@settings(max_examples=50)
@given(model=models(connected=True), cut=st.floats(0, 1))
def test_a_truncated_report_never_yields_a_wrong_link(model: Model, cut: float) -> None:
    text = default_report(model)
    try:
        fabric = read_default(text[: int(cut * len(text))]).fabric
    except TopompiError:
        return
    assert links_of(fabric) <= model.links()


def test_rails_are_in_natural_order_and_links_know_fdr10() -> None:
    model = Model()
    model.add_switch()
    (switch,) = model.switches
    for device in ("mlx5_10", "mlx5_9", "mlx5_2"):
        model.add_adapter(switch, f"dgx1 {device}")
    fabric = read_default(default_report(model)).fabric
    assert fabric.hosts == ("dgx1",)
    assert [model.adapters[identity].split()[1] for identity in fabric.adapter_ids] == [
        "mlx5_2",
        "mlx5_9",
        "mlx5_10",
    ]
    for spelling in ("4xFDR10", "4xQDR FDR10", "4xQDR (FDR10)"):
        text = default_report(model).replace("4xQDR", spelling)
        assert set(read_default(text).fabric.link_rate) == {5e9}


@pytest.mark.parametrize("name", ["MT4129 ConnectX7   Mellanox Technologies", "localhost HCA-1", ""])
def test_cards_without_a_host_name_are_hosts_by_guid(name: str) -> None:
    model = Model()
    model.add_switch()
    for _ in range(3):
        model.add_adapter(next(iter(model.switches)), name)
    text = default_report(model)
    first, second, third = model.adapters
    assert read_default(text).fabric.hosts == (first, second, third)
    assert set(ibports.read([source(port_report(model))], Report()).fabric.hosts) == set(model.adapters)
    one_card = text.replace(f"sysimgguid={second}", f"sysimgguid={first}")
    fabric = read_default(one_card).fabric
    assert fabric.hosts == (first, third)
    assert fabric.adapter_host.tolist() == [0, 0, 1]


def test_two_cabled_ports_of_one_card_are_two_adapters_of_one_host() -> None:
    text = """\
switchguid=0x10(10)
Switch 36 "S-0000000000000010" # "s" base port 0 lid 1 lmc 0
[1] "H-00000000000000a0"[2](a2) # "n1 mlx4_0" lid 3 4xQDR
[2] "H-00000000000000a0"[1](a1) # "n1 mlx4_0" lid 2 4xQDR
"""
    fabric = read_default(text).fabric
    assert fabric.hosts == ("n1",)
    assert fabric.adapter_ids == ("0x00000000000000a1", "0x00000000000000a2")


def test_aggregation_nodes_and_routers_are_left_out_with_their_links() -> None:
    model = pair()
    one, other = model.switches
    model.add_adapter(one, "Mellanox Technologies Aggregation Node")
    hosts = list(model.adapters)[:2]
    router = '[9] "R-00000000000000b0"[1](b1) # "router" lid 30 4xQDR\n[1]'
    text = default_report(model).replace("[1]", router, 1)
    for fabric in (read_default(text).fabric, ibports.read([source(port_report(model))], Report()).fabric):
        assert fabric.adapter_ids == tuple(hosts)
        assert fabric.num_links == 2 * (2 + 2)
        assert fabric.hosts == ("left", "right")
        assert fabric.switch_ids == (one, other)


def test_a_lid_of_two_subnets_means_nothing() -> None:
    one, other = pair(), Model()
    other.add_switch()
    other.add_adapter(next(iter(other.switches)), "far HCA-1")
    moved = port_report(other).replace("0x00000000000", "0x00000000001")
    found = ibports.read([source(port_report(one), "0000.txt"), source(moved, "0001.txt")], Report())
    assert found.fabric.hosts == ("left", "right", "far")
    assert len(set(found.fabric.switch_component)) == 2
    assert set(found.lids) == {3, 4}


def damaged(old: str, new: str) -> str:
    text = default_report(pair())
    assert old in text
    return text.replace(old, new, 1)


S1, S2 = "0x0000000000005010", "0x0000000000005020"
A1, A2 = "0x000000000000a001", "0x000000000000a011"

BAD_REPORTS = {
    "cut line": (
        damaged('[3]\t"H-000000000000a000"[1](a001) \t\t# "left HCA-1" lid 3 4xQDR', '[3]\t"H-000000000000a0'),
        "fabric.txt:12: expected a line of a switch, an adapter or one of their ports, got '[3]\\t\"H-000000000000a0'",
    ),
    "cut rate": (
        damaged('# "left HCA-1" lid 3 4xQDR', '# "left HCA-1" lid 3 4xQ'),
        "fabric.txt:12: expected a link rate such as 4xQDR, got '4xQ'",
    ),
    "cut header": (
        damaged('Switch\t36 "S-0000000000005020"\t\t# "MF0;sw2:X/U1" base port 0 lid 2 lmc 0', "Swi"),
        "fabric.txt:19: expected a Switch, Ca or Rt line before its ports, "
        'got \'[1]\\t"S-0000000000005010"[1]\\t\\t# "MF0;sw1:X/U1" lid 1 4xQDR\'',
    ),
    "no port GUID": (
        damaged("[1](a001) ", "[1]"),
        "fabric.txt:12: expected the adapter's port GUID in parentheses, "
        'got \'[3]\\t"H-000000000000a000"[1]\\t\\t# "left HCA-1" lid 3 4xQDR\'',
    ),
    "switch without a section": (
        default_report(pair()).partition("\n\nvendid=0x2c9\ndevid=0xbd36\nsysimgguid=" + S2)[0],
        f"fabric.txt:10: expected switch {S2} (MF0;sw2:X/U1) to have an entry of its own, found none",
    ),
    "GUID twice": (
        damaged('Switch\t36 "S-0000000000005020"', 'Switch\t36 "S-0000000000005010"'),
        f"fabric.txt:18: expected GUID {S1} once, as at fabric.txt:9, "
        'got \'Switch\\t36 "S-0000000000005010"\\t\\t# "MF0;sw2:X/U1" base port 0 lid 2 lmc 0\'',
    ),
    "port twice": (
        damaged("[2]\t", "[1]\t"),
        f"fabric.txt:11: port 1 of {S1} leads to port 2 of {S2}, but fabric.txt:10 has it lead to port 1 of {S2}",
    ),
    "sides disagree": (
        damaged('"S-0000000000005020"[1]', '"S-0000000000005020"[2]'),
        f"fabric.txt:10: port 1 of {S1} leads to port 2 of {S2}, but fabric.txt:20 has that lead to port 2 of {S1}",
    ),
    "rates disagree": (
        damaged('# "left HCA-1" lid 3 4xQDR', '# "left HCA-1" lid 3 1xQDR'),
        f"fabric.txt:12: port 3 of {S1} has a rate of 1e+09 bytes/s, but fabric.txt:28 has 4e+09",
    ),
    "host twice": (
        default_report(pair()).replace("right", "left"),
        f"fabric.txt:35: host 'left HCA-1' port 1 appears twice, as {A2} and as {A1} at fabric.txt:28",
    ),
}


@pytest.mark.parametrize("name", BAD_REPORTS)
def test_a_damaged_report_is_refused_with_its_line_and_partial_goes_on(name: str) -> None:
    text, message = BAD_REPORTS[name]
    with pytest.raises(SourceError) as caught:
        read_default(text)
    assert str(caught.value) == message
    report = Report(partial=True)
    fabric = read_default(text, report).fabric
    assert message in report.problems
    assert set(fabric.adapter_ids) == {A1, A2} or name == "switch without a section"
    assert fabric.num_hosts == fabric.num_adapters


def test_of_a_host_twice_the_second_goes_by_guid() -> None:
    report = Report(partial=True)
    assert read_default(BAD_REPORTS["host twice"][0], report).fabric.hosts == ("left", A2)
    assert len(report.problems) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            port_report(pair())[:-5],
            "fabric.txt:11: expected a port, its rate and its peer or description, got",
        ),
        (
            port_report(pair()).split("\n")[0],
            "fabric.txt: expected port lines as ibnetdiscover -p prints them, found none",
        ),
        (
            "".join(line + "\n" for line in port_report(pair()).splitlines() if not line.startswith("SW     2")),
            f"fabric.txt:4: expected switch {S2} (MF0;sw2:X/U1) to have an entry of its own, found none",
        ),
    ],
)
def test_a_damaged_port_report_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        ibports.read([source(text)], Report())
    assert str(caught.value).startswith(message)


def test_each_format_recognises_its_own_texts_only() -> None:
    model = pair()
    texts = {
        ibnetdiscover: [default_report(model), banner_after(0)(default_report(model))],
        ibports: [port_report(model), port_report(model).split("\n", 1)[1]],
        tables: [opensm_dump(model), ibroute(model, S1), ibroute(model, S1, brief=True, by_dr_path=True)],
    }
    others = ["SwitchName=s1 Nodes=n[1-4]\n", "n1 s1 c1\nn2 s1 c1\n", "<topology version='2.0'>\n", "{}\n"]
    for owner, examples in texts.items():
        for text in examples:
            assert [kind for kind in texts if kind.recognise(text)] == [owner]
    assert not any(kind.recognise(text) for kind in texts for text in others)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a topology, but the file is empty"),
        (b"\n \n", "expected a topology, but the file is empty"),
        (b"\x7fELF\x00\x01", "expected text, but the file is binary"),
        (gzip.compress(default_report(pair()).encode())[:-20], "cannot be read"),
    ],
)
def test_empty_binary_and_broken_files_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "report.gz"
    path.write_bytes(data)
    (text,) = open_texts(path)
    with pytest.raises(SourceError, match=message) as caught:
        ibnetdiscover.read([text], Report()) if ibnetdiscover.recognise(text.head()) else None
    assert str(caught.value).startswith(f"{path}: ")


# Forwarding tables.


def next_ports(routes: Routes) -> dict[tuple[int, str, str], int]:
    """(path, switch, adapter) -> port, as read."""
    fabric = routes.fabric
    return {
        (path, fabric.switch_ids[s], fabric.adapter_ids[a]): int(fabric.link_source_port[routes.next_link[path, s, a]])
        for path, s, a in np.argwhere(routes.next_link >= 0).tolist()
    }


@settings(max_examples=60, deadline=None)
@given(models(max_lmc=2))
def test_all_spellings_of_tables_yield_the_ports_that_were_printed(model: Model) -> None:
    expected = {
        (path, switch, adapter): model.forwarding()[switch][model.lid[adapter] + path % (1 << model.lmc[adapter])][1]
        for adapter in model.adapters
        for switch in model.next_ports(adapter)
        for path in range(1 << max(model.lmc[a] for a in model.adapters))
        if path < (1 << model.lmc[adapter]) or not path % (1 << model.lmc[adapter])
    }
    for texts in (
        [opensm_dump(model)],
        [ibroute(model, switch) for switch in model.switches],
        ["".join(ibroute(model, switch, by_dr_path=True) for switch in model.switches)],
        [ibroute(model, switch, brief=True) for switch in model.switches],
        [opensm_dump(model).replace("\n", "\r\n")],
        [re.sub(r"# .* portguid .*", "# unknown node and type", opensm_dump(model))],
        [
            re.sub(r": \(.* portguid .*", ": (node info not available fabric scan)", ibroute(model, s))
            for s in model.switches
        ],
    ):
        found = next_ports(read_tables(model, texts))
        assert {key: found.get(key) for key in expected} == expected


def test_an_adapter_with_fewer_paths_repeats_its_first() -> None:
    model = pair()
    model.add_adapter(S1, "many HCA-1", lmc=2)
    routes = read_tables(model, [opensm_dump(model)])
    assert routes.num_paths == 4
    ports = next_ports(routes)
    many = list(model.adapters)[2]
    assert [ports[path, S2, A1] for path in range(4)] == [1, 1, 1, 1]
    assert [ports[path, S2, many] for path in range(4)] == [1, 2, 1, 2]
    assert routes.engine == "forwarding tables of 0.txt"


def test_invalid_entries_are_counted_but_not_used() -> None:
    model = pair()
    all_lids = (
        ibroute(model, S1).replace("3 valid lids", "4 lids").replace("0x0001", "0x0000 255 : (illegal port)\n0x0001")
    )
    routes = read_tables(model, [all_lids, ibroute(model, S2)])
    assert next_ports(routes) == next_ports(read_tables(model, [opensm_dump(model)]))


def unroutable(model: Model, forwarding: dict[str, dict[int, tuple[str, int]]]) -> set[tuple[str, str]]:
    """Ordered pairs of host names with a route that does not arrive, followed one by one."""
    component: dict[str, set[str]] = {}
    for switch in model.switches:
        reached, queue = {switch}, [switch]
        while queue:
            for _, (peer, _) in model.ports(queue.pop()):
                if peer in model.switches and peer not in reached:
                    reached.add(peer)
                    queue.append(peer)
        component[switch] = reached
    lost = set()
    for one, other in permutations(model.adapters, 2):
        hosts = model.adapters[one].split()[0], model.adapters[other].split()[0]
        here = model.ports(one)[0][1][0]
        if hosts[0] == hosts[1] or model.ports(other)[0][1][0] not in component[here]:
            continue
        for _ in range(70):
            port = forwarding[here].get(model.lid[other], ("", 0))[1]
            here = model.peer.get((here, port), ("", 0))[0]
            if here not in model.switches:
                break
        if here != other:
            lost.add(hosts)
    return lost


@settings(max_examples=100, deadline=None)
@given(model=models(), data=st.data())
def test_exactly_the_pairs_without_a_route_are_counted(model: Model, data: st.DataObject) -> None:
    forwarding = model.forwarding()
    for switch, table in forwarding.items():
        for lid, (device, _) in list(table.items()):
            ports = [port for port, _ in model.ports(switch)]
            if device in model.adapters and ports and data.draw(st.integers(0, 3)) == 0:
                table[lid] = device, data.draw(st.sampled_from(ports))
    model.forwarding = lambda: forwarding  # type: ignore[method-assign] # the altered tables
    report = Report(partial=True)
    read_tables(model, [opensm_dump(model)], report)
    lost = len(unroutable(model, forwarding))
    noun = "ordered pair of hosts has" if lost == 1 else "ordered pairs of hosts have"
    assert [problem.partition(" no route")[0] for problem in report.problems] == (
        [f"forwarding tables of 0.txt: {lost} {noun}"] if lost else []
    )


def changed(old: str, new: str) -> str:
    text = opensm_dump(pair())
    assert old in text
    return text.replace(old, new, 1)


ROUTE1, ROUTE2 = ibroute(pair(), S1), ibroute(pair(), S2)
TABLE1 = f"the forwarding table of switch LID 1 ({S1})"
TABLE2 = f"the forwarding table of switch LID 2 ({S2})"
BAD_TABLES = {
    "no footer": (
        [changed("40 lids dumped\nUnicast", "Unicast")],
        f"lft/0.txt:4: {TABLE1} is truncated: expected a footer that ends its (at most 40) LIDs, "
        "got 3 entries and no footer",
    ),
    "no footer at the end": (
        [ROUTE1, ROUTE2[: ROUTE2.index("3 valid")]],
        f"lft/1.txt:6: {TABLE2} is truncated: expected a footer that ends its (at most 40) LIDs, "
        "got 3 entries and no footer",
    ),
    "entry lost": (
        [ROUTE1, ROUTE2.replace("0x0003", "oops")],
        f"lft/1.txt:6: {TABLE2} is damaged: expected 3 entries by its footer, got 2",
    ),
    "other footer": (
        [changed("40 lids dumped", "39 lids dumped")],
        f"lft/0.txt:4: {TABLE1} is damaged: expected 40 LIDs by its header, got 39 by its footer",
    ),
    "cut GUID": (
        [changed("0x000000000000a001: 'left HCA-1'", "0x000000")],
        "lft/0.txt:3: expected LID, port and destination, got '0x0003 003 # Channel Adapter portguid 0x000000'",
    ),
    "cut header": (
        [changed("switch Lid 2 guid 0x0000000000005020", "sw")],
        "lft/0.txt:6: expected 'Unicast lids [..] of switch .. guid 0x..', "
        "got \"Unicast lids [0-40] of sw ('MF0;sw2:X/U1'):\"",
    ),
    "no header": (
        [opensm_dump(pair()).split("\n", 1)[1]],
        "lft/0.txt:1: expected a table's header before "
        "\"0x0001 000 # Switch portguid 0x0000000000005010: 'MF0;sw1:X/U1'\"",
    ),
    "unknown switch": (
        [changed("guid 0x0000000000005020", "guid 0x0000000000005030")],
        "lft/0.txt:6: the forwarding table of switch LID 2 (0x0000000000005030): no such switch in fabric.txt",
    ),
    "switch twice": (
        [ROUTE1, ROUTE1, ROUTE2],
        f"lft/1.txt:1: {TABLE1} is there twice, also at lft/0.txt:1",
    ),
    "switch without a table": (
        [ROUTE1],
        f"lft/0.txt: expected forwarding tables of 2 switches, got none of 1: {S2} (MF0;sw2:X/U1)",
    ),
    "port without a link": (
        [changed("0x0004 001", "0x0004 017")],
        f"lft/0.txt:4: {TABLE1} has 1 entries for adapters behind ports without a link (port 17)",
    ),
    "LID twice": (
        [ROUTE1, ROUTE2.replace("0x0004", "0x0003")],
        f"lft/1.txt:6: {TABLE2} has LID 3 more than once (2 times), with different contents",
    ),
    "LIDs of another time": (
        [ROUTE1, ROUTE2.replace("0x0003", "0x0013")],
        f"lft/1.txt:1: adapter {A1} has LID 19 here, but 3 in another table: expected tables of the same time",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_damaged_tables_are_refused_with_their_line(name: str) -> None:
    texts, message = BAD_TABLES[name]
    with pytest.raises(SourceError) as caught:
        read_tables(pair(), texts)
    assert str(caught.value) == message
    report = Report(partial=True)
    assert read_tables(pair(), texts, report).next_link.shape == (1, 2, 2)
    assert message in report.problems


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            changed("0x0003 001 #", "0x0003 003 #"),
            "forwarding tables of 0.txt: 1 ordered pair of hosts has no route: "
            f"right -> left dies at switch {S2} (MF0;sw2:X/U1)",
        ),
        (
            changed("0x0004 001 #", "0x0004 255 #"),
            "forwarding tables of 0.txt: 1 ordered pair of hosts has no route: "
            f"left -> right dies at switch {S1} (MF0;sw1:X/U1)",
        ),
        (
            changed("0x0004 003 #", "0x0004 001 #"),
            "forwarding tables of 0.txt: 1 ordered pair of hosts has no route: left -> right loops at switch ",
        ),
    ],
)
def test_a_route_that_dies_or_loops_is_named(text: str, message: str) -> None:
    with pytest.raises(RouteError) as caught:
        read_tables(pair(), [text])
    assert str(caught.value).startswith(message)


# Real fabrics.


def real(fabric: str, lfts: str | None = None, report: Report | None = None) -> Routes:
    """Routes of a fabric whose tables lie in a file of their own, or in the same archive."""
    report = report or Report()
    texts = open_texts(shared_data(fabric))
    kind = ibports if lfts is None else ibnetdiscover
    found = kind.read([text for text in texts if kind.recognise(text.head())], report)
    texts = texts if lfts is None else open_texts(shared_data(f"{DERIVED}/{lfts}"))
    return tables.read([text for text in texts if tables.recognise(text.head())], found, report)


JANUS = "fabrics/janus-2014.ibnetdiscover.xz"


def test_janus_minhop_has_the_hops_that_were_counted_independently() -> None:
    routes = real(JANUS, "janus.minhop.opensm-lfts.dump.xz")
    assert routes.fabric.num_hosts == 1356
    hops = histogram(routes)
    total = sum(hops.values())
    assert total == 1356 * 1355
    assert {hop: round(100 * count / total, 1) for hop, count in hops.items()} == {1: 1.2, 3: 33.8, 5: 65.0}
    again = real(JANUS, "janus.minhop.dump_fts.xz")
    assert (again.next_link == routes.next_link).all()


def test_janus_minhop_has_the_hops_that_opensm_wrote_down() -> None:
    """``opensm.fdbs`` states hops from each switch to each LID: an oracle that is not ours."""
    routes = real(JANUS, "janus.minhop.opensm-lfts.dump.xz")
    fabric = routes.fabric
    (text,) = open_texts(shared_data(f"{DERIVED}/janus.minhop.opensm.fdbs.xz"))
    stated: dict[tuple[str, int], int] = {}
    switch = ""
    for _, line in text.lines():
        if match := re.search(r"Switch (0x[0-9a-f]{16})", line):
            switch = match[1]
        elif match := re.match(r"(0x[0-9A-Fa-f]{4})\s*: \d+\s*: (\d+)\s*:", line):
            stated[switch, int(match[1], 16)] = int(match[2])
    lids = read_lids()
    hops = routes.hops_from(np.arange(214, dtype=np.int32), np.arange(1356, dtype=np.int32))
    found = {
        (fabric.switch_ids[s], lids[fabric.adapter_ids[a]]): int(hops[s, a]) for s in range(214) for a in range(1356)
    }
    assert len(found) == 214 * 1356
    assert Counter(stated[key] - hop for key, hop in found.items()) == {0: len(found)}


def read_lids() -> dict[str, int]:
    lids = ibnetdiscover.read(open_texts(shared_data(JANUS)), Report()).lids
    return {identity: lid for lid, identity in lids.items()}


def test_janus_nue_takes_seven_hops_where_it_must() -> None:
    assert histogram(real(JANUS, "janus.nue.opensm-lfts.dump.xz"))[7] == 228_082


@pytest.mark.parametrize(("what", "switches", "links"), [("cable", 214, 8334), ("spine", 213, 8282)])
def test_janus_stays_connected_when_a_part_is_down(what: str, switches: int, links: int) -> None:
    routes = real(f"{DERIVED}/janus.{what}-down.ibnetdiscover.xz", f"janus.minhop-{what}-down.opensm-lfts.dump.xz")
    assert (routes.fabric.num_switches, routes.fabric.num_links) == (switches, links)
    assert set(histogram(routes)) == {1, 3, 5}


def test_tables_from_before_a_cable_went_down_name_the_ports_that_lost_it() -> None:
    report = Report(partial=True)
    real(f"{DERIVED}/janus.cable-down.ibnetdiscover.xz", "janus.minhop.opensm-lfts.dump.xz", report)
    ends = [
        re.search(r"switch LID \d+ \((0x\w+)\) has (\d+) .* \(port (\d+)\)", problem) for problem in report.problems
    ]
    assert [match.groups() for match in ends if match] == [
        ("0x0002c9020041be10", "39", "25"),
        ("0x0002c9020041b868", "52", "11"),
    ]
    assert "1,270 ordered pairs of hosts have no route: " in report.problems[-1]


def test_plafrim_production_tables_have_the_hops_that_were_counted_independently() -> None:
    routes = real("fabrics/netloc-plafrim.txz")
    assert histogram(routes) == {1: 2410, 2: 1518, 3: 4978, 4: 3150, 5: 2040, 6: 1404}


def test_plafrim2_names_the_truncated_table() -> None:
    with pytest.raises(SourceError, match=r"ibroute-.*-60\.txt:85: .* switch LID 60 \(0x00066a00e30076ab\) is trunc"):
        real("fabrics/netloc-plafrim2.txz")
    report = Report(partial=True)
    fabric = real("fabrics/netloc-plafrim2.txz", None, report).fabric
    assert [p for p in report.problems if "got 82 entries and no footer" in p] == report.problems[:1]
    assert ": 2,115 ordered pairs of hosts have no route: " in report.problems[-1]
    assert len(set(fabric.switch_component)) == 2
    assert len(fabric.host_adapters[fabric.host_index["bright"]]) == 2  # it has a rail in both subnets


def test_dgx_rails_are_hosts_and_aggregation_nodes_are_not() -> None:
    routes = real(f"{DERIVED}/dgxh100.after-sm.ibnetdiscover.xz", "dgxh100.minhop.opensm-lfts.dump.xz")
    fabric = routes.fabric
    assert (fabric.num_adapters, fabric.num_switches) == (582 - 40, 40)
    assert Counter(map(len, fabric.host_adapters)) == {4: 109, 1: 72, 3: 10, 2: 2}
    assert sum(name.startswith("0x") for name in fabric.hosts) == 69 + 3
    assert not any("localhost" in name or "Mellanox" in name for name in fabric.hosts)
    assert set(histogram(routes)) == {1, 3}


def test_stage_has_fdr10_between_switches_and_qdr_to_hosts() -> None:
    routes = real(f"{DERIVED}/stage.after-sm.ibnetdiscover.xz", "stage.minhop.opensm-lfts.dump.xz")
    fabric = routes.fabric
    assert (fabric.num_hosts, fabric.num_adapters, fabric.num_switches) == (144, 145, 8)
    assert set(fabric.link_rate[fabric.switch_links]) == {5e9}
    assert set(fabric.link_rate[fabric.adapter_uplink]) == {4e9}
    assert histogram(routes) == {1: 3228, 2: 852, 3: 16800}
