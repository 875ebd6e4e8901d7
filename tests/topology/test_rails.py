"""Hosts with several adapters: views that agree on leaf switches and shared links, and selections of adapters."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ibreports import Model, default_report, read_default
from tests.support import command_line, examples, shared_data
from topompi.errors import FabricError
from topompi.topology import HostRoutes, Routes, TopologyInterface, compute_routes, load
from topompi.topology.discovery import Discovery
from topompi.topology.hostnames import hosts_apart
from topompi.topology.inspection import leaf_rows, link_use, select_rails
from topompi.topology.summary import summarise

CASE = "cases/A35-rails/topo.txt"


def shown(*words: object) -> dict:
    done = command_line("topology", "show", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_reported_rails_give_the_same_leaves_in_all_views() -> None:
    report = shared_data(CASE)
    job = shown(report)["job"]
    rows = json.loads(command_line("topology", "links", "--topology", report, "--by", "leaf", "--json").stdout)["rows"]
    assert job["leaf_switches"] == len(rows) == 3
    assert sorted(row["hosts"] for row in rows) == [4, 4, 5]
    assert job["hosts_per_leaf"] == {"4": 2, "5": 1}
    assert (job["hosts_sharing_links"], job["links_shared"]) == (0, 0)
    assert json.loads(command_line("topology", "links", "--topology", report, "--json").stdout)["rows"] == []


@pytest.mark.parametrize(
    "rails",
    [
        ("switch=leaf[01]",),
        ("adapter=mlx5_0", "adapter=mlx5_1", "!host=stor*"),
        ("!adapter=mlx5_9", "!host=stor1"),
        ("!switch=leaf2", "rate>=50", "rate=4xNDR"),
        ("!switch=0xb000000000000002",),
    ],
)
def test_a_storage_rail_is_left_out_on_request(rails: tuple[str, ...]) -> None:
    found = shown(shared_data(CASE), *(word for rail in rails for word in ("--rails", rail)))
    assert (found["hosts"], found["adapters"]) == (4, 8)
    assert found["job"]["hosts_per_leaf"] == {"4": 2}


def test_a_selection_is_exported_for_jobs(tmp_path: Path) -> None:
    target = tmp_path / "fabric.json"
    done = command_line("topology", "export", shared_data(CASE), "--rails", "adapter=mlx5_1", "-o", target)
    assert done.returncode == 0, done.stderr
    fabric = load(target).fabric
    assert fabric.hosts == ("gpu1", "gpu2", "gpu3", "gpu4")
    assert fabric.num_adapters == 4


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("mlx5_0", "--rails: expecting adapter="),
        ("adapter=mlx5_7", "--rails: expecting a condition that some adapter fulfils, got 'adapter=mlx5_7'"),
        ("rate=fast", "--rails: expecting a rate in GB/s or a name such as 4xNDR, got 'fast'"),
        ("host>=a", "--rails: expecting host=PATTERN, got 'host>=a'"),
        ("!host=*", "--rails: expecting conditions that some adapter fulfils"),
    ],
)
def test_a_condition_that_selects_nothing_is_refused(word: str, message: str) -> None:
    routes = compute_routes(railed([[0, 1]]).fabric)
    with pytest.raises(FabricError) as caught:
        select_rails(routes, [word], {})
    assert str(caught.value).startswith(message)


def railed(rails: list[list[int]], switches: int = 3) -> Discovery:
    """Hosts whose k-th adapter is at the k-th switch of their list; all switches are below a spine."""
    model = Model.on_leaves(*[()] * switches)
    leaves = list(model.switches)
    for host, places in enumerate(rails):
        for rail, place in enumerate(places):
            model.add_adapter(leaves[place], f"n{host} mlx5_{rail}")
    return read_default(default_report(model))


HOSTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3), min_size=2, max_size=5)


@examples(40)
@given(rails=HOSTS)
def test_shared_links_are_those_of_the_routes_that_hosts_use(rails: list[list[int]]) -> None:
    routes = compute_routes(railed(rails).fabric)
    fabric = routes.fabric
    interface = TopologyInterface.place(fabric.hosts, routes)
    pairs = HostRoutes(routes, np.arange(fabric.num_hosts, dtype=np.int32))
    entered: dict[int, set[str]] = {}
    for sender in range(fabric.num_hosts):
        for receiver in range(fabric.num_hosts):
            path = [link for link in pairs.paths()[sender, receiver].tolist() if link >= 0]
            if len(path) > 2:
                entered.setdefault(path[-2], set()).add(fabric.hosts[receiver])
    expected = {frozenset(hosts) for hosts in entered.values() if len(hosts) > 1}
    if fabric.num_adapters > fabric.num_hosts:
        assert set(map(frozenset, interface.sharing_groups)) == expected
    rows = leaf_rows(link_use(routes))
    job = summarise(routes, interface)["job"]
    assert job["leaf_switches"] == len(rows)
    assert sum(size * count for size, count in job["hosts_per_leaf"].items()) == sum(row["hosts"] for row in rows)
    assert job["mean_hosts_per_leaf"] == pytest.approx(np.mean([row["hosts"] for row in rows]))


@examples(40)
@given(rails=HOSTS, place=st.integers(0, 2))
def test_tables_and_computed_routes_lose_the_same_adapters(rails: list[list[int]], place: int) -> None:
    found = railed(rails)
    fabric = found.fabric
    left = [host for host, places in enumerate(rails) if any(one != place for one in places)]
    routes = compute_routes(fabric)
    if not left or all(place not in places for places in rails):
        return
    word = f"!switch={fabric.switch_ids[place]}"
    for one in (routes, Routes(fabric, "tables", routes.next_link)):
        rest = select_rails(one, [word], found.devices).fabric
        assert set(rest.hosts) == {f"n{host}" for host in left}
        assert rest.num_adapters == sum(one != place for places in rails for one in places)
        for host, adapters in zip(rest.hosts, rest.host_adapters, strict=True):
            assert len(adapters) == sum(one != place for one in rails[int(host[1:])])


def test_map_names_the_hosts_that_no_links_join(tmp_path: Path) -> None:
    folder = shared_data("cases/A32-disconnected")
    (tmp_path / "graph").write_text("0 1 100\n1 2 100\n2 3 100\n")
    words = ("map", tmp_path / "graph", "--topology", folder / "topology.conf", "-o", tmp_path / "out")
    apart = command_line(*words, "--hosts", "node[1-3,17]")
    assert apart.returncode == 0, apart.stderr
    assert "no links join node17 to the other hosts; they count as farthest away" in apart.stderr
    assert "no links join" not in command_line(*words, "--hosts", "node[1-4]").stderr
    assert hosts_apart(load(folder / "topology.conf").fabric, ["node1", "node33", "node40"]) == ["node1"]


SOURCE_COMMANDS = {
    "show": ("topology", "show", "SOURCE", "--hosts", "n[1-4]"),
    "links": ("topology", "links", "--topology", "SOURCE", "--hosts", "n[1-4]"),
    "leaves": ("topology", "links", "--topology", "SOURCE", "--by", "leaf", "--hosts", "n[1-4]"),
    "route": ("topology", "route", "--topology", "SOURCE", "n1", "n4"),
    "export": ("topology", "export", "SOURCE", "-o", "-"),
    "draw": ("topology", "draw", "SOURCE", "--hosts", "n[1-4]", "-o", "PLACE/f.svg"),
    "diff": ("topology", "diff", "SOURCE", "SOURCE", "--hosts", "n[1-4]"),
    "map": ("map", "PLACE/graph", "--topology", "SOURCE", "--hosts", "n[1-4]", "--slots", "1"),
    "map A B": (
        "map",
        "PLACE/graph",
        "given",
        "given",
        "--topology",
        "SOURCE",
        "--hosts",
        "n[1-4]",
    ),
    "allocate": ("jobs", "allocate", "2", "--topology", "SOURCE", "--running", "PLACE/running", "--closed", "n3"),
    "check": ("jobs", "check", "PLACE/running", "--topology", "SOURCE"),
    "simulate": ("jobs", "simulate", "PLACE/log", "--topology", "SOURCE", "--json"),
    "schedule": ("schedule", "bcast", "-a", "binomial", "--topology", "SOURCE", "--hosts", "n[1-4]"),
    "why": ("why", "bcast", "64K", "--topology", "SOURCE", "--hosts", "n[1-4]"),
    "compare": ("jobs", "simulate", "PLACE/log", "--topology", "SOURCE", "-p", "first"),
}


@pytest.mark.parametrize("command", SOURCE_COMMANDS)
def test_every_command_that_reads_a_fabric_takes_names_and_rails(command: str, tmp_path: Path) -> None:
    model = Model.on_leaves(["HCA-1"] * 2, ["HCA-1"] * 2)
    model.add_adapter(list(model.switches)[-1], "HCA-1")
    (tmp_path / "source").write_text(default_report(model))
    lines = [f"{guid} {name}" for guid, name in zip(model.adapters, ("n1", "n2", "n3", "n4", "nas"), strict=True)]
    (tmp_path / "names").write_text("\n".join(lines))
    (tmp_path / "running").write_text("a n1\n")
    (tmp_path / "graph").write_text("0 1 100\n2 3 100\n")
    (tmp_path / "log").write_text("; MaxNodes: 4\n1 0 -1 600 4 -1 -1 4 900 -1 1 1 -1 -1 -1 -1 -1 -1\n")
    words = [
        word.replace("SOURCE", str(tmp_path / "source")).replace("PLACE", str(tmp_path))
        for word in SOURCE_COMMANDS[command]
    ]
    options = ("--names", str(tmp_path / "names"), "--name-rule", "none", "--rails", "!host=nas")
    done = command_line(*words, *options)
    assert (done.returncode, "nas" in done.stdout) == (0, False), done.stderr
    nothing = command_line(*words, *options[:-1], "host=absent")
    assert (nothing.returncode, "--rails: expecting" in nothing.stderr) == (1, True)
