"""Reports and forwarding tables of real fabrics: hops counted by other means, and their known damage."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from tests.ibreports import histogram
from tests.support import shared_data, text_of
from topompi.errors import SourceError
from topompi.inputs import open_inputs
from topompi.topology.discovery import Report
from topompi.topology.routes import Routes
from topompi.topology.sources import ibnetdiscover, ibports, tables

DERIVED = "fabrics/derived-ibsim-opensm"


def real(fabric: str, lfts: str | None = None, report: Report | None = None) -> Routes:
    """Routes of a fabric whose tables lie in a file of their own, or in the same archive."""
    report = report or Report()
    texts = open_inputs(shared_data(fabric))
    kind = ibports if lfts is None else ibnetdiscover
    found = kind.read([text for text in texts if kind.recognise(text.head())], report)
    texts = texts if lfts is None else open_inputs(shared_data(f"{DERIVED}/{lfts}"))
    return tables.read([text for text in texts if tables.recognise(text.head())], found, report)


JANUS = "fabrics/janus-2014.ibnetdiscover.xz"


@cache
def minhop() -> Routes:
    """Routes of Janus by OpenSM's minhop."""
    return real(JANUS, "janus.minhop.opensm-lfts.dump.xz")


def test_janus_minhop_has_the_hops_that_were_counted_independently() -> None:
    routes = minhop()
    assert routes.fabric.num_hosts == 1356
    hops = histogram(routes)
    total = sum(hops.values())
    assert total == 1356 * 1355
    assert {hop: round(100 * count / total, 1) for hop, count in hops.items()} == {1: 1.2, 3: 33.8, 5: 65.0}
    again = real(JANUS, "janus.minhop.dump_fts.xz")
    assert (again.next_link == routes.next_link).all()


def test_janus_minhop_has_the_hops_that_opensm_wrote_down() -> None:
    """``opensm.fdbs`` states hops from each switch to each LID: an oracle that is not ours."""
    routes = minhop()
    fabric = routes.fabric
    (text,) = open_inputs(shared_data(f"{DERIVED}/janus.minhop.opensm.fdbs.xz"))
    stated: dict[tuple[str, int], int] = {}
    switch = ""
    for _, line in text.lines():
        if match := re.search(r"Switch (0x[0-9a-f]{16})", line):
            switch = match[1]
        elif match := re.match(r"(0x[0-9A-Fa-f]{4})\s*: \d+\s*: (\d+)\s*:", line):
            stated[switch, int(match[1], 16)] = int(match[2])
    lids = read_lids()
    hops = routes.tables.hops_from(np.arange(214, dtype=np.int32), np.arange(1356, dtype=np.int32))
    found = {
        (fabric.switch_ids[s], lids[fabric.adapter_ids[a]]): int(hops[s, a]) for s in range(214) for a in range(1356)
    }
    assert len(found) == 214 * 1356
    assert Counter(stated[key] - hop for key, hop in found.items()) == {0: len(found)}


def read_lids() -> dict[str, int]:
    lids = ibnetdiscover.read(open_inputs(shared_data(JANUS)), Report()).lids
    return {identity: lid for lid, identity in lids.items()}


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


def test_plafrim2_tables_with_the_tools_error_for_a_footer_are_whole_but_for_the_one_that_is_cut() -> None:
    report, texts = Report(partial=True), open_inputs(shared_data("fabrics/netloc-plafrim2.txz"))
    found = ibports.read([text for text in texts if ibports.recognise(text.head())], report)
    dumps = {text.name: text.text() for text in texts if tables.recognise(text.head())}
    error = "iberror: failed: dump tables: linear forwarding table get failed"
    cut = [text_of(re.sub(r"(\d+ valid lids dumped.*)?$", error, dump.rstrip()), name) for name, dump in dumps.items()]
    routes = tables.read(cut, found, report)
    assert (routes.next_link == real("fabrics/netloc-plafrim2.txz", None, Report(partial=True)).next_link).all()
    assert len(report.notes) == len(dumps) - 1 == 7
    assert ["switch LID 60 " in problem for problem in report.problems if "truncated" in problem] == [True]


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
