"""Lists of links (iblinkinfo -l, db_csv, opaextractsellinks): reading gives what was written, errors name damage."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given

from tests.ibreports import A1, A2, S1, Model, default_report, links_of, models, pair, read_default
from tests.support import examples, shared_data, text_of
from topompi.errors import SourceError, TopompiError
from topompi.topology import HostRoutes, compute_routes, load
from topompi.topology.discovery import Report
from topompi.topology.sources import FORMATS, dbcsv, iblinkinfo, ibnetdiscover, opalinks


def line_report(model: Model, *, switches_only: bool = False) -> str:
    names = model.switches | model.adapters
    lines = []
    for device in model.switches if switches_only else names:
        head = f'{device} "{names[device]:>30}" {model.lid[device]:6}'
        for port, (peer, peer_port) in model.ports(device):
            lines.append(
                f"{head} {port:4}[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>  "
                f'{peer} {model.lid[peer]:6} {peer_port:4}[  ] "{names[peer]}" ( )'
            )
        if device in model.switches:
            lines += [
                f'{head} {port:4}[  ] ==(                Down/ Polling)==>             [  ] "" ( )' for port in (99, 98)
            ]
    return "\n".join(lines) + "\n"


def cables(model: Model) -> list[tuple[tuple[str, int], tuple[str, int]]]:
    return [(one, other) for one, other in model.peer.items() if one < other]


def selected_links(model: Model) -> str:
    names = model.switches | model.adapters
    return "".join(
        ";".join(f"{end[0]};{end[1]};{'SW' if end[0] in model.switches else 'FI'};{names[end[0]]}" for end in cable)
        + "\n"
        for cable in cables(model)
    )


def node_of(device: str, model: Model) -> str:
    return device if device in model.switches else f"0x{int(device, 16) - 1:016x}"


def sections(model: Model) -> str:
    lines = ["# Running version: 2.9.0", "", "START_NODES"]
    lines += ["NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID,DeviceID"]
    for kind, devices in ((2, model.switches), (1, model.adapters)):
        for device, name in devices.items():
            own = node_of(device, model)
            lines.append(f'"{name}",{36 if kind == 2 else 1},{kind},1,1,{own},{own},{device},4119')
    lines += ["END_NODES", "", "START_PORTS", "NodeGuid,PortGuid,PortNum,LinkWidthActv,LinkSpeedActv"]
    lines += [f"{node_of(device, model)},{device},{port},2,4" for device, port in model.peer]
    lines += ["END_PORTS", "", "START_LINKS", "NodeGuid1,PortNum1,NodeGuid2,PortNum2"]
    lines += [",".join(f"{node_of(end[0], model)},{end[1]}" for end in cable) for cable in cables(model)]
    return "\n".join([*lines, "END_LINKS", ""])


FORMS: dict[str, tuple[ModuleType, Callable[[Model], str], bool]] = {
    "iblinkinfo": (iblinkinfo, line_report, True),
    "iblinkinfo of switches": (iblinkinfo, lambda model: line_report(model, switches_only=True), True),
    "db_csv": (dbcsv, sections, True),
    "opaextractsellinks": (opalinks, selected_links, False),
}


@pytest.mark.parametrize("form", FORMS)
@examples(30)
@given(model=models(connected=True))
def test_every_form_yields_the_fabric_that_it_was_written_from(form: str, model: Model) -> None:
    reader, write, rated = FORMS[form]
    if len(model.switches) < 2 and not model.adapters:
        return
    text = text_of(write(model))
    if not model.peer:
        return
    assert [kind for kind in FORMATS if kind.recognise(text.head())] == [reader]
    fabric = reader.read([text], Report()).fabric
    assert links_of(fabric) == model.links()
    assert set(fabric.adapter_ids) == set(model.adapters)
    assert {fabric.switch_names[at] for at in range(fabric.num_switches)} == set(model.switches.values())
    hosts = {name: fabric.hosts[host] for name, host in zip(fabric.adapter_ids, fabric.adapter_host, strict=True)}
    assert hosts == {identity: name.split()[0] for identity, name in model.adapters.items()}
    if rated:
        assert set(fabric.link_rate.tolist()) <= {4e9}


@pytest.mark.parametrize("form", FORMS)
@examples(15)
@given(model=models(connected=True))
def test_a_cut_text_is_refused_or_gives_no_wrong_link(form: str, model: Model) -> None:
    reader, write, _ = FORMS[form]
    text = write(model)
    for cut in range(1, len(text), max(1, len(text) // 10)):
        try:
            fabric = reader.read([text_of(text[:cut])], Report()).fabric
        except TopompiError:
            continue
        known = {device: device for device in (*model.switches, *model.adapters)}
        found = [one for one in links_of(fabric) if all(end[0] in known for end in one)]
        assert set(found) <= set(model.links())


@pytest.mark.parametrize(
    ("name", "hosts", "links", "rates"),
    [
        ("A21-opa/links.csv", ("em102", "em103", "em104"), 10, set()),
        ("A24-iblinkinfo/line.txt", ("n01", "n02"), 4, {12.5e9}),
        ("D17-undefined-speed/il_undef.txt", ("n00", "n01", "n02", "n03"), 16, set()),
        ("A24-iblinkinfo/db_csv", ("n01",), 2, set()),
    ],
)
def test_reported_lists_are_read(name: str, hosts: tuple[str, ...], links: int, rates: set[float]) -> None:
    fabric = load(shared_data(f"cases/{name}")).fabric
    assert fabric.hosts == hosts
    assert fabric.num_links == links
    assert {rate for rate in fabric.link_rate.tolist() if rate == rate} == rates


@pytest.mark.parametrize(
    "state",
    [
        "4X undefined (128) Active/  LinkUp",
        "undefined (64) undefined (0) Active/  LinkUp",
        "4X No Extended Speed Active/  LinkUp",
        "4X          10.0 Gbps Active/  LinkUp) (HOQ:19 VL_Stall:7",
    ],
)
def test_iblinkinfo_reads_links_of_unknown_speed_and_with_settings_of_switches(state: str) -> None:
    usual = line_report(pair())
    text = usual.replace("4X          10.0 Gbps Active/  LinkUp", state)
    text += f'{S1} "sw1" 1 50[  ] ==( 4X 10.0 Gbps Active/  LinkUp)==>      "Port not available"\n'
    found, expected = (iblinkinfo.read([text_of(one)], Report()).fabric for one in (text, usual))
    assert links_of(found) == links_of(expected)
    rates = found.link_rate
    np.testing.assert_array_equal(rates, expected.link_rate if "HOQ" in state else np.full(len(rates), np.nan))


def test_differences_of_two_fabrics_are_refused_in_every_report() -> None:
    for module, text in ((iblinkinfo, line_report(pair())), (ibnetdiscover, default_report(pair()))):
        for sign in "<>":
            lines = text.splitlines()
            for at in (next(at for at, line in enumerate(lines) if S1[2:] in line), len(lines) - 2):
                mixed = "\n".join([*lines[:at], f"{sign} {lines[at]}", *lines[at + 1 :]])
                with pytest.raises(SourceError, match=rf"f:{at + 1}: expecting the report of one fabric, got the diff"):
                    module.read([text_of(mixed)], Report(partial=True))


BAD = {
    "cut line": (iblinkinfo, line_report(pair())[:-30], "f:"),
    "unknown speed": (
        iblinkinfo,
        line_report(pair()).replace("10.0 Gbps", "11.0 Gbps", 1),
        "f:1: expecting a link rate such as 4xQDR, got '4x11.0'",
    ),
    "node not listed": (
        dbcsv,
        sections(pair()).replace("END_LINKS", "0x1,1,0x2,1\nEND_LINKS"),
        "f:29: expecting a node of the section NODES, got 0x0000000000000001",
    ),
    "node of no kind": (
        dbcsv,
        "START_NODES\nNodeDesc,NodeType,NodeGUID\nn,9,0x1\n",
        "f:3: expecting NodeType 1, 2 or 3, got '9'",
    ),
    "no GUID": (
        dbcsv,
        "START_NODES\nNodeDesc,NodeType,NodeGUID\nn,1,x\n",
        "f:3: expecting a GUID as nodeguid, got 'x'",
    ),
    "no port": (
        dbcsv,
        sections(pair()).replace("END_LINKS", "0x1,,0x2,1\nEND_LINKS"),
        "f:29: expecting port numbers, got '', '1'",
    ),
    "no end": (
        opalinks,
        selected_links(pair()) + "0x00000000000000aa;1;FI;n9;\n",
        "f:5: expecting GUID;PORT;FI or SW;NAME",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_lists_are_refused_with_their_line(name: str) -> None:
    reader, text, message = BAD[name]
    with pytest.raises(SourceError) as caught:
        reader.read([text_of(text)], Report())
    assert str(caught.value).startswith(message)


BACK_TO_BACK = """\
vendid=0x2c9
caguid=0xa000
Ca	1 "H-000000000000a000"		# "left mlx5_0"
[1](a001) 	"H-000000000000a010"[1] (a011) 		# lid 1 lmc 0 "right mlx5_0" lid 2 4xQDR

vendid=0x2c9
caguid=0xa010
Ca	1 "H-000000000000a010"		# "right mlx5_0"
[1](a011) 	"H-000000000000a000"[1] (a001) 		# lid 2 lmc 0 "left mlx5_0" lid 1 4xQDR
"""


def test_two_adapters_back_to_back_are_two_hosts_one_hop_apart() -> None:
    report = Report()
    fabric = read_default(BACK_TO_BACK, report).fabric
    assert fabric.hosts == ("left", "right")
    assert set(fabric.adapter_ids) == {A1, A2}
    assert report.notes == [f"fabric.txt:4: adapters {A1} and {A2} are joined back to back"]
    assert fabric.num_switches == 1
    assert fabric.link_rate.tolist() == [4e9] * 4
    hops = HostRoutes(compute_routes(fabric), fabric.adapter_host).hops
    assert hops.tolist() == [[0, 1], [1, 0]]
    half = BACK_TO_BACK.split("\n\n")[0]
    assert read_default(half).fabric.hosts == ("left", "right")


def test_a_direct_cable_beside_switches_keeps_all_links() -> None:
    text = default_report(pair())
    found = read_default(
        text + "\n" + BACK_TO_BACK.replace("a0", "b0").replace("left", "n1").replace("right", "n2")
    ).fabric
    assert found.hosts == ("left", "right", "n1", "n2")
    assert found.num_links == len(pair().links()) + 4
