"""InfiniBand forwarding tables: reading gives what was printed, and errors name damage."""

import re
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ibreports import A1, S1, S2, Model, ibroute, models, opensm_dump, pair, read_tables
from tests.support import examples, shared_data, text_of
from topompi.errors import RouteError, SourceError
from topompi.topology import FabricBuilder, load
from topompi.topology.discovery import Discovery, Report
from topompi.topology.routes import Routes
from topompi.topology.sources import tables


def next_ports(routes: Routes) -> dict[tuple[int, str, str], int]:
    """(path, switch, adapter) -> port, as read."""
    fabric = routes.fabric
    return {
        (path, fabric.switch_ids[s], fabric.adapter_ids[a]): int(fabric.link_source_port[routes.next_link[path, s, a]])
        for path, s, a in np.argwhere(routes.next_link >= 0).tolist()
    }


@examples(60)
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


ERROR = "ibroute: iberror: failed: dump tables: linear forwarding table get failed"


def ends_in_error(model: Model, switch: str, last: str) -> str:
    """A table that announces LIDs up to ``last``, with the tool's error where the footer stands."""
    text = ibroute(model, switch).replace("[0x0-0x28]", f"[0x0-{last}]")
    return re.sub(r"\d+ valid lids dumped.*", ERROR, text)


def test_a_table_that_ends_in_the_tools_error_after_its_last_lid_is_whole_and_the_error_is_noted() -> None:
    texts = [ends_in_error(pair(), S1, "0x4"), ibroute(pair(), S2)]
    for printed in (texts, ["".join(texts)]):
        report = Report()
        routes = read_tables(pair(), printed, report)
        assert next_ports(routes) == next_ports(read_tables(pair(), [opensm_dump(pair())]))
        assert report.notes == [f"lft/0.txt:6: {TABLE1} has all of its entries, then the tool's error {ERROR!r}"]


@examples(40)
@given(models(connected=True), st.integers(1, 60))
def test_a_table_that_ends_in_the_tools_error_before_its_last_lid_is_truncated(model: Model, beyond: int) -> None:
    switch = next(iter(model.switches))
    last = max(model.forwarding()[switch])
    report = Report(partial=True)
    read_tables(model, [ends_in_error(model, switch, hex(last + beyond))], report)
    assert not report.notes
    assert f"is truncated: expecting a footer that ends its (at most {last + beyond}) LIDs" in report.problems[0]


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


@examples(100)
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
        f"lft/0.txt:4: {TABLE1} is truncated: expecting a footer that ends its (at most 40) LIDs, "
        "got 3 entries and no footer",
    ),
    "no footer at the end": (
        [ROUTE1, ROUTE2[: ROUTE2.index("3 valid")]],
        f"lft/1.txt:6: {TABLE2} is truncated: expecting a footer that ends its (at most 40) LIDs, "
        "got 3 entries and no footer",
    ),
    "entry lost": (
        [ROUTE1, ROUTE2.replace("0x0003", "oops")],
        f"lft/1.txt:6: {TABLE2} is damaged: expecting 3 entries by its footer, got 2",
    ),
    "other footer": (
        [changed("40 lids dumped", "39 lids dumped")],
        f"lft/0.txt:4: {TABLE1} is damaged: expecting 40 LIDs by its header, got 39 by its footer",
    ),
    "cut GUID": (
        [changed("0x000000000000a001: 'left HCA-1'", "0x000000")],
        "lft/0.txt:3: expecting LID, port and destination, got '0x0003 003 # Channel Adapter portguid 0x000000'",
    ),
    "cut header": (
        [changed("switch Lid 2 guid 0x0000000000005020", "sw")],
        "lft/0.txt:6: expecting 'Unicast lids [..] of switch .. guid 0x..', "
        "got \"Unicast lids [0-40] of sw ('MF0;sw2:X/U1'):\"",
    ),
    "no header": (
        [opensm_dump(pair()).split("\n", 1)[1]],
        "lft/0.txt:1: expecting a table's header before "
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
        f"lft/0.txt: expecting forwarding tables of 2 switches, got none of 1: {S2} (MF0;sw2:X/U1)",
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
        f"lft/1.txt:1: adapter {A1} has LID 19 here, but 3 in another table: expecting tables of the same time",
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


# --- OpenSM's opensm.fdbs: routes equal to those of opensm-lfts.dump, and errors that name damage.


DERIVED = "fabrics/derived-ibsim-opensm"
GUIDS = ("0x0000000000000001", "0x0000000000000002")


def two_hosts() -> Discovery:
    """Two switches of one host each; LIDs 1 and 2 are the hosts, 3 and 4 the switches."""
    builder = FabricBuilder("pair")
    for number, switch in enumerate(GUIDS):
        builder.add_switch(switch)
        builder.add_adapter(f"0xa{number}", f"h{number}")
        builder.add_cable(f"0xa{number}", switch, 1, 1)
    builder.add_cable(*GUIDS, 2, 2)
    return Discovery(builder.build(), lids={1: "0xa0", 2: "0xa1", 3: GUIDS[0], 4: GUIDS[1]})


HEAD = "dump_ucast_routes: Switch {}\nLID    : Port : Hops : Optimal\n"
FIRST = HEAD.format(GUIDS[0]) + "0x0001 : 001  : 00   : yes\n0x0002 : 002  : 01   : yes\n0x0003 : 000  : 00   : yes\n"
SECOND = (
    HEAD.format(GUIDS[1]) + "0x0001 : 002  : 01   : No 0 hop path possible via port 1!\n0x0002 : 001  : 00   : yes\n"
)
WHOLE = FIRST + "0x0004 : UNREACHABLE\n\n" + SECOND + "0x0003 : UNREACHABLE\n0x0004 : 000  : 00   : yes\n"


def test_entries_are_found_by_lid_and_unreachable_ones_are_none() -> None:
    routes = tables.read([text_of(WHOLE)], two_hosts(), Report())
    ports = np.where(routes.next_link[0] >= 0, routes.fabric.link_source_port[routes.next_link[0]], -1)
    assert ports.tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FIRST + SECOND, "f:9: the forwarding table of switch 0x0000000000000002 is truncated: expecting LIDs up to 3"),
        (
            WHOLE.replace("0x0002 : 001  : 00   : yes", "0x0002 : 0"),
            "f:11: expecting 'LID : Port : Hops : Optimal', got ",
        ),
        (WHOLE.replace(GUIDS[1], "0x0000000000000009"), "no such switch in pair"),
        (FIRST.replace("0x0002 : 002", "0x0002 : 007"), "ports without a link (port 7)"),
    ],
)
def test_damage_is_named_with_its_line(content: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        tables.read([text_of(content)], two_hosts(), Report())
    assert message in str(caught.value)


def test_janus_has_the_routes_of_its_dump_of_tables() -> None:
    fabric = shared_data("fabrics/janus-2014.ibnetdiscover.xz")
    one, other = (
        load(fabric, shared_data(f"{DERIVED}/janus.minhop.{name}.xz")).routes
        for name in ("opensm.fdbs", "opensm-lfts.dump")
    )
    assert (one.next_link == other.next_link).all()
