"""InfiniBand reports: reading gives what was printed, and errors name damage."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ibreports import (
    A1,
    A2,
    S1,
    S2,
    Model,
    default_report,
    ibroute,
    links_of,
    models,
    opensm_dump,
    pair,
    port_report,
    read_default,
    source,
)
from tests.support import examples, shared_data
from topompi.errors import SourceError, TopompiError
from topompi.inputs import open_inputs
from topompi.topology import load
from topompi.topology.discovery import Report
from topompi.topology.sources import ibnetdiscover, ibports, tables


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


def said_twice(text: str) -> tuple[str, str]:
    """A report as ``-g`` writes it: the switches with labels of ports, then the same without; and the latter part."""
    head, *sections = text.split("\n\n")
    switches = [section for section in sections if "Switch" in section]
    labelled = [re.sub(r"^\[(\d+)\]", r"[\1][ext \1]", section, flags=re.M) for section in switches]
    rest = [section for section in sections if "Switch" not in section]
    first = "\n\n".join([head, "Chassis 1 (guid 0x5010)\n\n# Line Nodes", *labelled, "# Chassis Switches\n"])
    return first, "\n\n".join([*switches, "Non-Chassis Nodes", *rest])


MUTATIONS: dict[str, Callable[[str], str]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "tabs to spaces": lambda text: text.replace("\t", "    "),
    "tabs lost": lambda text: text.replace("\t", ""),
    "blank lines lost": lambda text: re.sub(r"\n\n+", "\n", text),
    "banner first": banner_after(0),
    "log line with a process id first": lambda text: "[2011] opening umad port\n" + text,
    "banner within": banner_after(9),
    "labels of chassis ports": lambda text: re.sub(r"^\[(\d+)\]\t", r"[\1][ext 3]\t", text, flags=re.M),
    "switches said twice": lambda text: "\n".join(said_twice(text)),
    "full information": lambda text: text.replace(" 4xQDR", " 4xQDR s=4 w=2 v=5"),
    "sections of adapters lost": lambda text: text.partition("vendid=0x2c9\ndevid=0x673c")[0],
    "ports of switches to adapters lost": lambda text: re.sub(r'^\[\d+\]\t"H-.*\n', "", text, flags=re.M),
}


@pytest.mark.parametrize("name", MUTATIONS)
@examples(25)
@given(model=models())
def test_harmless_changes_of_a_report_change_nothing(name: str, model: Model) -> None:
    text = default_report(model)
    fabric = read_default(MUTATIONS[name](text)).fabric
    assert set(fabric.adapter_ids) == set(model.adapters)
    assert set(fabric.hosts) == {name.split()[0] for name in model.adapters.values()}
    assert links_of(fabric) == model.links()


@examples(50)
@given(model=models(connected=True), cut=st.floats(0, 1))
def test_a_truncated_report_never_yields_a_wrong_link(model: Model, cut: float) -> None:
    text = default_report(model)
    try:
        fabric = read_default(text[: int(cut * len(text))]).fabric
    except TopompiError:
        return
    assert links_of(fabric) <= model.links()


def test_rails_are_in_natural_order_and_links_know_fdr10() -> None:
    model = Model.on_leaves(f"dgx1 {device}" for device in ("mlx5_10", "mlx5_9", "mlx5_2"))
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
    model = Model.on_leaves([name] * 3)
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
    one, other = pair(), Model.on_leaves(["far HCA-1"])
    moved = port_report(other).replace("0x00000000000", "0x00000000001")
    found = ibports.read([source(port_report(one), "0000.txt"), source(moved, "0001.txt")], Report())
    assert found.fabric.hosts == ("left", "right", "far")
    assert len(set(found.fabric.switch_component)) == 2
    assert set(found.lids) == {3, 4}


def damaged(old: str, new: str) -> str:
    text = default_report(pair())
    assert old in text
    return text.replace(old, new, 1)


BAD_REPORTS = {
    "cut line": (
        damaged('[3]\t"H-000000000000a000"[1](a001) \t\t# "left HCA-1" lid 3 4xQDR', '[3]\t"H-000000000000a0'),
        "fabric.txt:12: expecting a line of a switch, an adapter or one of their ports, got '[3]\\t\"H-000000000000a0'",
    ),
    "cut rate": (
        damaged('# "left HCA-1" lid 3 4xQDR', '# "left HCA-1" lid 3 4xQ'),
        "fabric.txt:12: expecting a link rate such as 4xQDR, got '4xQ'",
    ),
    "cut header": (
        damaged('Switch\t36 "S-0000000000005020"\t\t# "MF0;sw2:X/U1" base port 0 lid 2 lmc 0', "Swi"),
        "fabric.txt:19: expecting a Switch, Ca or Rt line before its ports, "
        'got \'[1]\\t"S-0000000000005010"[1]\\t\\t# "MF0;sw1:X/U1" lid 1 4xQDR\'',
    ),
    "no port GUID": (
        damaged("[1](a001) ", "[1]"),
        "fabric.txt:12: expecting the adapter's port GUID in parentheses, "
        'got \'[3]\\t"H-000000000000a000"[1]\\t\\t# "left HCA-1" lid 3 4xQDR\'',
    ),
    "switch without a section": (
        default_report(pair()).partition("\n\nvendid=0x2c9\ndevid=0xbd36\nsysimgguid=" + S2)[0],
        f"fabric.txt:10: expecting switch {S2} (MF0;sw2:X/U1) to have an entry of its own, got none",
    ),
    "GUID twice": (
        damaged('Switch\t36 "S-0000000000005020"', 'Switch\t36 "S-0000000000005010"'),
        f"fabric.txt:18: expecting GUID {S1} once, as at fabric.txt:9, "
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
    "host twice": (
        default_report(pair()).replace("right", "left"),
        f"fabric.txt:35: host 'left HCA-1' port 1 appears twice, as {A2} and as {A1} at fabric.txt:28",
    ),
}


@pytest.mark.parametrize(
    ("old", "new"),
    [(r'"\[1\]', '"[3]'), ("4xQDR", "4xDDR"), (r"\n\[2\].*", ""), ("sw2:X", "sw9:X"), ("lid 2 lmc", "lid 9 lmc")],
)
def test_switches_that_are_said_twice_in_other_words_are_refused(old: str, new: str) -> None:
    first, second = said_twice(default_report(pair()))
    with pytest.raises(SourceError, match=r"expecting GUID .* once, as at|leads to port"):
        read_default(first + re.sub(old, new, second, count=1))


@pytest.mark.parametrize("rate", ["?? QDR", "4x ???", "?? ???"])
def test_a_port_report_with_an_unknown_width_or_speed_has_the_same_links(rate: str) -> None:
    usual = port_report(pair())
    found = ibports.read([source(usual.replace("4x QDR", rate))], Report()).fabric
    assert links_of(found) == links_of(ibports.read([source(usual)], Report()).fabric)
    assert np.isnan(found.link_rate).all()


def test_a_reported_chassis_is_the_fabric_of_the_plain_report() -> None:
    group, plain = (load(shared_data(f"cases/D10-ibnetdiscover-g/{name}.txt")).fabric for name in ("group", "plain"))
    assert links_of(group) == links_of(plain)
    assert group.num_links == 16


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


@pytest.mark.parametrize("end", [0, 1])
def test_a_cable_with_two_rates_has_the_lower_one_and_a_note(end: int) -> None:
    text = default_report(pair())
    lines = ('# "left HCA-1" lid 3 4xQDR', '# lid 3 lmc 0 "MF0;sw1:X/U1" lid 1 4xQDR')
    assert text.count(lines[end]) == 1
    report = Report()
    fabric = read_default(text.replace(lines[end], lines[end].replace("4xQDR", "1xQDR")), report).fabric
    left = fabric.adapter_index[A1]
    ends = (fabric.link_source == left) | (fabric.link_target == left)
    assert fabric.link_rate[ends].tolist() == [1e9, 1e9]
    assert set(fabric.link_rate[~ends].tolist()) == {4e9}
    rates = ("1e+09", "4e+09") if end == 0 else ("4e+09", "1e+09")
    assert report.notes == [
        f"fabric.txt:12: port 3 of {S1} has a rate of {rates[0]} bytes/s, but fabric.txt:28 has {rates[1]}"
        ": the lower rate is taken"
    ]


def test_of_a_host_twice_the_second_goes_by_guid() -> None:
    report = Report(partial=True)
    assert read_default(BAD_REPORTS["host twice"][0], report).fabric.hosts == ("left", A2)
    assert len(report.problems) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            port_report(pair())[:-5],
            "fabric.txt:11: expecting a port, its rate and its peer or description, got",
        ),
        (
            port_report(pair()).split("\n")[0],
            "fabric.txt: expecting port lines as ibnetdiscover -p prints them, got none",
        ),
        (
            "".join(line + "\n" for line in port_report(pair()).splitlines() if not line.startswith("SW     2")),
            f"fabric.txt:4: expecting switch {S2} (MF0;sw2:X/U1) to have an entry of its own, got none",
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
    for owner, spellings in texts.items():
        for text in spellings:
            assert [kind for kind in texts if kind.recognise(text)] == [owner]
    assert not any(kind.recognise(text) for kind in texts for text in others)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expecting a topology, got an empty file"),
        (b"\n \n", "expecting a topology, got an empty file"),
        (b"\x7fELF\x00\x01", "expecting text, got a program"),
        (gzip.compress(default_report(pair()).encode())[:-20], "cannot be read"),
    ],
)
def test_empty_binary_and_broken_files_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "report.gz"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=message) as caught:
        open_inputs(path)[0].head()
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("word", ["??HDR", "??x???", "?xHDR"])
def test_a_width_that_the_tool_does_not_know_is_an_unknown_rate(word: str) -> None:
    text = default_report(pair())
    rate = next(one for one in text.split() if one.startswith("4x"))
    fabric = read_default(text.replace(rate, word)).fabric
    assert fabric.num_links == read_default(text).fabric.num_links
    assert np.isnan(fabric.link_rate).all()
