"""Inspections of a fabric, compared with walks of single pairs, sets by hand, and a real fabric's figures."""

import csv
import io
import json
import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ibreports import Model, default_report, opensm_dump, pair, read_default
from tests.support import examples, refusal, shared_data
from tests.topology.test_computed import fabrics
from tests.topology.test_ibtables import read_tables
from topompi.errors import FabricError, SourceError
from topompi.inputs.slurm.running import RunningJob, read_running
from topompi.machine.jobs import check
from topompi.machine.jobs.now import held_nodes
from topompi.topology import HostRoutes, Routes, compute_routes, load
from topompi.topology.inspection import (
    compare,
    leaf_rows,
    link_rows,
    link_use,
    slow_cables,
    study_jobs,
    usual_rates,
    without,
)
from topompi.views.cluster import cluster_of

SPECS = ("XGFT(2; 4,4; 1,2)", "XGFT(2; 5,4; 1,2; 1,2)", "dragonfly:3,2,1", "torus:3x4@hosts_per_switch=2")


def tables(routes: Routes) -> Routes:
    """The same routes as a table, as forwarding tables are."""
    return Routes(routes.fabric, "tables", routes.next_link)


def pair_by_pair(routes: Routes, hosts: list[int]) -> tuple[Counter, int]:
    """Routes on each link and lost ones, one ordered pair at a time."""
    count, lost = Counter(), 0
    for a in hosts:
        for b in hosts:
            if a != b:
                pair = HostRoutes(routes, np.array([a, b], dtype=np.int32))
                if pair.hops[0, 1] < 0:
                    lost += 1
                else:
                    path = pair.paths()[0, 1]
                    count.update(path[path >= 0].tolist())
    return count, lost


@examples(40)
@given(fabrics(), st.data())
def test_routes_on_links_are_those_of_single_pairs(fabric, data) -> None:
    routes = compute_routes(fabric)
    if not fabric.num_hosts:
        return
    hosts = data.draw(st.lists(st.integers(0, fabric.num_hosts - 1), unique=True))
    use = link_use(routes, np.array(hosts, dtype=np.int32))
    count, lost = pair_by_pair(routes, hosts)
    assert {link: int(times) for link, times in enumerate(use.routes.tolist()) if times} == dict(count)
    assert (use.lost, use.pairs) == (lost, len(hosts) * (len(hosts) - 1))


def test_routes_lost_on_a_further_path_are_counted_for_hosts_with_two_adapters() -> None:
    model = pair(rails=2, lmc=1)
    routes = read_tables(model, [opensm_dump(model)])
    broken = routes.next_link.copy()
    broken[1, :, 0] = -1
    routes = Routes(routes.fabric, "tables", broken)
    source, destination = (axis.ravel() for axis in np.indices((routes.fabric.num_hosts,) * 2))
    for path in (0, 1):
        without_links = (routes.tables.paths(source, destination, path) < 0).all(axis=1) & (source != destination)
        assert link_use(routes, path=path).lost == without_links.sum()
    assert link_use(routes, path=1).lost > 0


@pytest.mark.parametrize("spec", SPECS)
def test_rows_of_links_and_leaves_add_up(spec: str) -> None:
    routes = load(spec).routes
    use = link_use(routes)
    fabric = routes.fabric
    hops = HostRoutes(routes, np.arange(fabric.num_hosts, dtype=np.int32)).hops
    assert sum(row["routes"] for row in link_rows(use)) == int(np.maximum(hops - 1, 0).sum())
    assert [row["routes"] for row in link_rows(use)] == sorted((row["routes"] for row in link_rows(use)), reverse=True)
    leaves = leaf_rows(use)
    assert sum(row["hosts"] for row in leaves) == fabric.num_hosts
    if spec.startswith("XGFT"):
        apart = int((fabric.adapter_leaf[:, None] != fabric.adapter_leaf[None, :]).sum())
        assert sum(row["out"] for row in leaves) == sum(row["in"] for row in leaves) == apart
    if spec == SPECS[0]:
        assert {(row["hosts"], row["uplinks"], row["oversubscription"]) for row in leaves} == {(4, 2, 2.0)}


def test_a_spine_down_loses_the_routes_of_tables_and_moves_computed_ones() -> None:
    routes = load("XGFT(2; 4,4; 1,2)").routes
    spine = routes.fabric.switch_names.index("L2/0.1")
    through = {link for link in range(routes.fabric.num_links) if routes.fabric.link_target[link] == 16 + spine}
    use = link_use(routes)
    crossing = sum(int(use.routes[link]) for link in through)
    lost = compare(tables(routes), without(tables(routes), ["L2/0.1"]))
    assert lost.switches == {"gone": ["L2/0.1"], "new": []}
    assert len(lost.cables["gone"]) == 4
    assert lost.pairs == {"pairs": 240, "changed": 0, "hops": 0, "lost": crossing, "found": 0}
    assert lost.examples[0]["after"] is None
    moved = compare(routes, without(routes, ["L2/0.1"]))
    assert moved.pairs == {"pairs": 240, "changed": crossing, "hops": 0, "lost": 0, "found": 0}
    assert [levels[0]["oversubscription"] for levels in moved.levels] == [2.0, 4.0]


def test_a_cable_down_is_named_by_switch_and_port_and_leaves_the_other_one() -> None:
    routes = load("XGFT(2; 4,2; 1,1; 1,2)").routes
    rest = without(routes, ["L2/0.0:1"])
    assert rest.fabric.num_links == routes.fabric.num_links - 2
    assert link_use(rest).lost == 0
    found = compare(routes, rest)
    assert len(found.cables["gone"]) == 1
    assert "L2/0.0:1" in found.cables["gone"][0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("L9", "expecting one switch 'L9' (such as "),
        ("L2/0.0:99", "expecting a port of "),
        ("L2/0.0:x", "expecting one switch 'L2/0.0:x'"),
    ],
)
def test_what_is_no_switch_is_refused(name: str, message: str) -> None:
    assert message in refusal(without, load("XGFT(2; 4,2; 1,1; 1,2)").routes, [name], error=FabricError)


def test_a_fabric_does_not_differ_from_itself_and_ids_decide_what_is_the_same() -> None:
    routes = load("XGFT(2; 4,4; 1,2)").routes
    assert not compare(routes, tables(routes))
    other = compare(routes, load("XGFT(2; 4,4; 1,3)").routes, ["h0000", "h0004"])
    assert other
    assert (other.switches["gone"], len(other.switches["new"])) == ([], 1)
    assert other.pairs["pairs"] == 2


def test_a_job_in_one_leaf_shares_nothing_and_scattered_ones_do() -> None:
    routes = load("XGFT(2; 4,4; 1,2)").routes
    hosts = routes.fabric.hosts
    jobs = [RunningJob("leaf", hosts[:3]), RunningJob("a", hosts[4::4]), RunningJob("b", hosts[5::4])]
    leaf, a, b = study_jobs(routes, jobs).rows
    assert (leaf.leaves, leaf.levels, leaf.links, leaf.shares_with, leaf.oversubscription) == (1, 1, 0, (), None)
    assert (a.leaves, a.levels, a.hosts) == (3, 2, 3)
    used = [set(link_use(routes, np.flatnonzero(np.isin(hosts, job.hosts))).switch_links.tolist()) for job in jobs]
    assert a.shared_links == b.shared_links == len(used[1] & used[2])
    assert a.oversubscription == 1 / min(1, 2)  # one host, one up-link towards the two others


@examples(25)
@given(
    picks=st.lists(st.sets(st.integers(0, 15), min_size=1), min_size=1, max_size=4),
    paths=st.integers(1, 2),
)
def test_jobs_share_the_links_that_the_isolation_of_jobs_finds(picks: list[set[int]], paths: int) -> None:
    """Two ways to the same links: walks between leaves here, tables of steps there; also with two paths to a host."""
    routes = load("XGFT(2; 4,4; 1,2)").routes
    if paths == 2:  # the second one takes the other link up
        fabric, first = routes.fabric, routes.next_link[0]
        up = [
            link
            for link in fabric.switch_links
            if fabric.switch_level[fabric.link_source[link] - fabric.num_adapters] == 0
        ]
        other = np.arange(fabric.num_links)
        for leaf in np.unique(fabric.link_source[up]):
            pair = np.array(up)[fabric.link_source[up] == leaf]
            other[pair] = pair[::-1]
        routes = Routes(
            fabric, "two paths", np.stack([first, np.where(first < 0, first, other[first])]).astype(np.int32)
        )
    taken: set[int] = set()
    hosts = []
    for pick in picks:
        hosts.append(tuple(routes.fabric.hosts[host] for host in sorted(pick - taken)))
        taken |= pick
    jobs = [RunningJob(str(number), some) for number, some in enumerate(hosts) if some]
    study = study_jobs(routes, jobs)
    found = check(dict(enumerate(held_nodes(jobs, cluster_of(routes)).values())), cluster_of(routes).links)
    assert study.pairs == {(jobs[a].name, jobs[b].name): len(links) for (a, b), links in found.pairs.items()}
    assert study.links == found.num_links == len(study.shared)
    for name, count in ((job.name, row.shared_links) for job, row in zip(jobs, study.rows, strict=True)):
        assert sum(name in users for _, users in study.shared) == count


def test_without_jobs_no_link_is_shared() -> None:
    assert study_jobs(load("XGFT(2; 4,4; 1,2)").routes, []).shared == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("job,hosts\na\n", ":2: expecting job,hosts, got 'a'"),
        ("a,n1\na,n2\n", ":2: expecting each job once, got 'a' again, first at "),
        ("a,n[1-\n", ":1: "),
        ("job,hosts\n# none\n", ": expecting lines 'job,hosts', got none"),
    ],
)
def test_a_bad_list_of_jobs_is_refused_with_its_line(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(content)
    assert message in refusal(read_running, tmp_path / "jobs.csv", error=SourceError)


def test_commas_of_a_host_list_need_no_quotes(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text('job,hosts\na,n[1-2,5],m1\nb,"n3,n4"\n')
    assert [(job.name, job.hosts) for job in read_running(tmp_path / "jobs.csv")] == [
        ("a", ("n1", "n2", "n5", "m1")),
        ("b", ("n3", "n4")),
    ]


@pytest.fixture
def topompi(monkeypatch, command):
    """Runs ``topompi topology`` in this process."""
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    return partial(command, "topology")


def test_the_commands_print_tables_json_and_csv(topompi) -> None:
    spec = "XGFT(2; 4,4; 1,2)"
    rows = json.loads(topompi("links", "--topology", spec, "--top", 3, "--json").out)["rows"]
    assert [row["routes"] for row in rows] == [24, 24, 24]
    table = list(
        csv.DictReader(
            io.StringIO(topompi("links", "--topology", spec, "--by", "leaf", "--csv", "--hosts", "h[0000-0005]").out)
        )
    )
    assert [(row["leaf"], row["hosts"]) for row in table] == [("L1/0.0", "4"), ("L1/1.0", "2")]
    assert "240 routes, 96 of them lost" not in topompi("links", "--topology", spec, "--without", "L2/0.1").out
    assert topompi("links", "--topology", spec, "--json", "--csv").code == 1
    assert topompi("show", spec, "--without", "L2/0.1", "--json").out.count('"oversubscription": 4.0') == 1


def test_diff_exits_with_1_where_asked_and_something_differs(topompi, tmp_path: Path) -> None:
    spec = "XGFT(2; 4,4; 1,2)"
    (tmp_path / "jobs.csv").write_text("a,h[0000-0004]\nb,h[0000-0001]\n")
    done = topompi("diff", spec, "--without", "L2/0.1", "--jobs", tmp_path / "jobs.csv", "--check")
    assert done.code == 1
    assert "switches gone: 1: L2/0.1" in done.out
    assert "job a: 5 hosts" in done.out
    assert "job b" not in done.out  # it stays below one leaf
    assert topompi("diff", spec, "--without", "L2/0.1").code == 0
    assert topompi("diff", spec, spec, "--check").out == "nothing differs\n"
    assert topompi("diff", spec).code == 1


@examples(20)
@given(cables=st.integers(2, 6), slow=st.integers(0, 5), rate=st.sampled_from(["4xDDR", "1xQDR", "4xSDR"]))
def test_a_cable_slower_than_those_parallel_to_it_is_found_at_both_ends(cables: int, slow: int, rate: str) -> None:
    model = Model()
    model.add_switch()
    model.add_switch()
    one, other = model.switches
    for _ in range(cables):
        model.cable(one, other)
    model.add_adapter(one, "n1 HCA-1")
    model.add_adapter(other, "n2 HCA-1")
    assert not slow_cables(read_default(default_report(model)).fabric)
    text = default_report(model)
    line = next(line for line in text.splitlines() if line.startswith(f"[{slow % cables + 1}]"))
    fabric = read_default(
        text.replace(line, line.replace("4xQDR", rate))
    ).fabric  # the lower rate of the two ends counts
    found = ~np.isnan(usual_rates(fabric))
    assert fabric.link_source_port[found].tolist() == [slow % cables + 1] * 2
    assert usual_rates(fabric)[found].tolist() == [4e9, 4e9]


def test_a_host_port_slower_than_most_is_found_and_two_generations_are_not() -> None:
    text = default_report(Model.on_leaves(f"n{number} HCA-1" for number in range(4)))
    one = re.sub(r'(.*"n0 HCA-1" lid \d+) 4xQDR', r"\1 1xQDR", text)
    one = re.sub(r'("n0 HCA-1"\n.*) 4xQDR', r"\1 1xQDR", one)
    assert slow_cables(read_default(one).fabric).startswith("1 cable is slower than others like it: ")
    both = re.sub(r'(.*"n1 HCA-1" lid \d+) 4xQDR', r"\1 1xQDR", one)
    both = re.sub(r'("n1 HCA-1"\n.*) 4xQDR', r"\1 1xQDR", both)
    assert slow_cables(read_default(both).fabric) == ""


def test_a_reported_uplink_at_ddr_is_flagged_and_links_sort_by_time(topompi) -> None:
    report = shared_data("cases/A23-degraded/topo.txt")
    words = "note: 1 cable is slower than others like it: leaf0:41 - spine0:2 has 2 GB/s, others like it 12.5 GB/s\n"
    assert topompi("show", report).err == words
    said = topompi("links", "--topology", report, "--by", "time", "--json")
    assert said.err == words
    rows = json.loads(said.out)["rows"]
    slow = [{row["from"], row["to"]} for row in rows if row["slower_than"] == 12.5e9]
    assert slow
    assert set(map(frozenset, slow)) == {frozenset({"leaf0", "spine0"})}
    assert (rows[0]["rate"], rows[0]["time"]) == (2e9, rows[0]["routes"] * 1e6 / 2e9)
    assert [row["time"] for row in rows] == sorted((row["time"] for row in rows), reverse=True)
    assert "slower than" in topompi("links", "--topology", report).out
    assert topompi("links", "--topology", report, "--by", "name").code == 1


def test_an_exchanged_adapter_is_named_with_its_host(topompi, tmp_path: Path) -> None:
    text = default_report(Model.on_leaves(f"n{number} HCA-1" for number in range(3)))
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text(text)
    after.write_text(text.replace("a010", "b010").replace("a011", "b011"))
    said = topompi("diff", before, after, "--check")
    assert said.code == 1
    names = [f"0x{guid:016x}" for guid in (0xA011, 0xB011)]
    assert f"adapters exchanged: 1: n1: {names[0]} → {names[1]}\n" in said.out
    assert "hosts" not in said.out.splitlines()[0]
    assert " 0 have another path" in said.out


def two_leaves() -> str:
    return default_report(Model.on_leaves(["n0 HCA-1", "n1 HCA-1"], ["n2 HCA-1", "n3 HCA-1"]))


def test_a_cable_that_became_slower_is_named(topompi, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    text = two_leaves()
    rate = next(word for word in text.split() if word.startswith("4x"))
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("[1]") and '"S-' in line)
    before.write_text(text)
    after.write_text("\n".join([*lines[:at], lines[at].replace(rate, "1x" + rate[2:]), *lines[at + 1 :]]))
    said = topompi("diff", before, after, "--check")
    assert said.code == 1
    assert "cables slower: 1: " in said.out
    assert "nothing differs" in topompi("diff", after, after).out
    assert "cables faster: 1: " in topompi("diff", after, before).out


def test_an_exchanged_or_renamed_switch_leaves_its_cables_and_routes_as_they_were(topompi, tmp_path: Path) -> None:
    text = two_leaves()
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text(text)
    fabric = load(before).fabric
    identity, name = fabric.switch_ids[0], fabric.switch_names[0]
    for changed, words in (
        (
            text.replace(identity[2:], "00000000000000ee"),
            f"switches exchanged: 1: {name}: {identity} → 0x00000000000000ee",
        ),
        (text.replace(f'"{name}"', '"rack"'), f"switches renamed: 1: {name} → rack"),
    ):
        assert changed != text
        after.write_text(changed)
        said = topompi("diff", before, after).out
        assert said.splitlines()[0] == words
        assert "cables" not in said
        assert " 0 have another path" in said


@pytest.mark.parametrize("name", ["n3[a]", "n[1", "n]", "[/bold]n", "n1,x", "[1-2]"])
def test_host_names_with_brackets_and_commas_are_shown(name: str, topompi, tmp_path: Path) -> None:
    model = Model.on_leaves(f"{host} HCA-1" for host in (name, f"{name}9", "m"))
    (tmp_path / "report").write_text(default_report(model))
    for words in (["show"], ["links", "--topology"], ["links", "--by", "leaf", "--topology"]):
        assert topompi(*words, tmp_path / "report").code == 0
    shown = topompi("show", tmp_path / "report").out
    assert name in shown
    assert f"{name}9" in shown
    assert topompi("draw", tmp_path / "report", "-o", tmp_path / "p.svg").code == 0
