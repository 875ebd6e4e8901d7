"""Lists of links (iblinkinfo -l, db_csv, opaextractsellinks): reading gives what was written, errors name damage."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.ibreports import A1, A2, S1, Model, default_report, links_of, models, pair, read_default
from tests.support import examples, refusal, shared_data, text_of
from tests.support import read_text as read
from topompi.errors import SourceError, TopompiError
from topompi.topology import HostRoutes, TopologyInterface, compute_routes, load
from topompi.topology.discovery import Report
from topompi.topology.routecheck import with_routes
from topompi.topology.sources import FORMATS, dbcsv, iblinkinfo, ibnetdiscover, netq, opalinks


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


# --- NetQ's topology graph: its links, and the errors that it may contain.


def answer(nodes: dict[str, int], links: list[str]) -> list[dict[str, Any]]:
    listed = [{"id": f"id-{name}", "name": name, "tier": tier, "state": "up"} for name, tier in nodes.items()]
    ids = ["-*-".join(f"id-{end}" for end in link.split()) for link in links]
    return [{"links": [{"id": one} for one in ids], "nodes": [{"compounded_nodes": listed}], "alerts": 0}]


TIERS = {"a": -1, "b": -1, "c": -1, "leaf1": 1, "leaf2": 1, "spine": 2}
LINKS = ["leaf1 a", "b leaf1", "leaf2 c", "leaf1 spine", "leaf2 spine", "spine leaf2"]


def test_hosts_cross_the_switches_that_links_join() -> None:
    discovery, problems = read(netq, json.dumps(answer(TIERS, LINKS)))
    fabric = discovery.fabric
    assert (fabric.hosts, fabric.switch_names, fabric.cabled) == (("a", "b", "c"), ("leaf1", "leaf2", "spine"), False)
    assert fabric.num_links == 2 * 5  # the last link is the fifth, from its other end
    routes = with_routes(discovery, Report()).routes
    view = TopologyInterface.place(fabric.hosts, routes)
    assert view.hop_matrix.tolist() == [[0, 1, 3], [1, 0, 3], [3, 3, 0]]
    assert not problems


def test_a_host_of_two_switches_has_two_adapters() -> None:
    fabric = read(netq, json.dumps(answer(TIERS, [*LINKS, "a leaf2"])))[0].fabric
    assert (fabric.num_hosts, fabric.num_adapters) == (3, 4)


BAD_GRAPHS: dict[str, tuple[Any, str]] = {
    "twice": (answer(TIERS | {"x": 1}, LINKS) * 2, "f: expecting one graph, got 2"),
    "no nodes": ([{"links": []}], "f: field nodes: expecting a list, got none"),
    "no tier": ([{"links": [], "nodes": [{"compounded_nodes": [{"id": "a", "name": "a"}]}]}], "field tier"),
    "boolean tier": (answer({"a": True}, []), "f: field tier: expecting a whole number, got True"),
    "unknown end": (answer(TIERS, [*LINKS, "a leaf7"]), "one a switch at least, got the link id-a-*-id-leaf7"),
    "two hosts": (answer(TIERS, [*LINKS, "a b"]), "one a switch at least, got the link id-a-*-id-b"),
    "one end": (answer(TIERS, [*LINKS, "a"]), "f: field links.id: expecting NODE-*-NODE, got 'id-a'"),
    "no link": (answer(TIERS, LINKS[1:]), "f: expecting links of host a, got none"),
}


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_what_is_wrong_is_named_with_its_field(case: str) -> None:
    content, message = BAD_GRAPHS[case]
    assert message in refusal(read, netq, json.dumps(content))


def test_partial_reading_keeps_what_is_sound() -> None:
    content = answer(TIERS, [*LINKS[1:], "a leaf7"])
    discovery, problems = read(netq, json.dumps(content), partial=True)
    assert discovery.fabric.hosts == ("b", "c")
    assert len(problems) == 2


def test_it_is_found_by_its_content(tmp_path: Any) -> None:
    path = tmp_path / "answer"
    for content in (answer(TIERS, LINKS), answer(TIERS, LINKS)[0]):
        path.write_text(json.dumps(content))
        assert load(path).fabric.hosts == ("a", "b", "c")
    assert not netq.recognise('{"lldp": [{"hostname": "leaf01", "peerHostname": "a-*-b"}]}')
