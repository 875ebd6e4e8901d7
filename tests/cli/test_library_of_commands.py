"""Maps, schedules, allocations and profiles made by library calls, without a command line."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.support import ROOT, command_line
from topompi.errors import SettingError
from topompi.inputs.slurm.running import RunningJob
from topompi.machine.jobs import AllocationError, Cluster
from topompi.machine.jobs.now import offer
from topompi.mapping import CommunicationGraph, Machine, Mapping
from topompi.mapping.comparison import compare
from topompi.mapping.mapping import MappingError
from topompi.mapping.search import Search, solve
from topompi.mpi.selection.explanation import explain
from topompi.topology import HostRoutes, TopologyInterface, load_routes
from topompi.topology.service.generation import Generation
from topompi.views.allocation import allocation_of, machine_on
from topompi.views.cluster import read_cluster

SPEC = "XGFT(2; 4,4; 1,2)"


def test_a_search_of_the_library_is_that_of_the_command(tmp_path) -> None:
    (tmp_path / "g").write_text("0 3 5\n1 2 7\n")
    words = [str(tmp_path / "g"), "--topology", "tree=2:2@1:10", "--json", "--seed", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "topompi", "map", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = json.loads(done.stdout)
    graph, machine = CommunicationGraph.from_arrays(4, [0, 1], [3, 2], [5, 7]), Machine.hierarchy("2:2", "1:10")
    found = solve(Search(seed=3), graph, machine)
    assert told["slot_of_rank"] == found.slot_of_rank.tolist()
    maps = {"given": Mapping.identity(machine, 4), "mapped": found}
    sides = compare(graph, machine, maps, from_topology=False)
    assert sides.items() <= told.items()
    assert (sides["maps"]["given"]["doubled"], sides["maps"]["mapped"]["doubled"]) == (10 * 12, 1 * 12)


def test_a_search_refuses_what_its_mapper_does_not_take() -> None:
    with pytest.raises(MappingError, match="algorithm: expecting best beside an objective"):
        Search("refine", objective="link").check()


@pytest.mark.parametrize(
    ("told", "hosts", "slots", "is_part"),
    [
        ({}, 16, 1, False),
        ({"slots": "4"}, 4, 4, True),
        ({"slots": "4", "hosts": "all"}, 16, 4, False),
        ({"hosts": "h[0000-0003]"}, 4, 4, False),
        ({"environment": {"SLURM_JOB_NODELIST": "h[0001-0002]", "SLURM_TASKS_PER_NODE": "9(x2)"}}, 2, 9, False),
        ({"hosts": "h0003", "environment": {"SLURM_JOB_NODELIST": "h[0001-0002]"}}, 1, 16, False),
    ],
)
def test_hosts_are_those_told_or_the_jobs_or_the_first_filled(told, hosts, slots, is_part) -> None:
    routes = load_routes(SPEC)
    found = allocation_of(16, routes.fabric.hosts, **told)
    assert (len(found.hosts), set(found.slots), found.is_part) == (hosts, {slots}, is_part)
    assert machine_on(routes, found.hosts, found.slots).num_slots == hosts * slots


def test_a_host_that_is_named_twice_has_two_slots_unless_slots_are_told() -> None:
    assert allocation_of(2, (), hosts="a,b,a").slots == (2, 1)
    with pytest.raises(SettingError, match="each host once"):
        allocation_of(2, (), hosts="a,b,a", slots="1")


def test_an_offer_names_nodes_that_share_no_link_or_says_why_there_is_none() -> None:
    cluster, running = Cluster.parse("leaves=4x2x2", None), [RunningJob("old", ("n0", "n1", "n4"))]
    found = offer(5, cluster, running)
    assert (len(found.nodes), found.shares_with, found.free) == (5, (), 13)
    assert not {"n0", "n1", "n4"} & set(found.nodes)
    assert offer(5, cluster, running, "first").shares_with == ("old",)
    assert (offer(14, cluster, running).nodes, offer(14, cluster, running).why) == ((), "13 nodes are free")
    with pytest.raises(AllocationError, match="job new: expecting hosts of"):
        offer(1, cluster, [RunningJob("new", ("x",))])


def test_a_cluster_is_read_from_a_specification_or_a_source() -> None:
    assert read_cluster("leaves=4x2", 8).num_nodes == 8
    assert read_cluster(SPEC).num_leaves == 4


@pytest.mark.parametrize(("page", "begins"), [("mapping.md", "import os"), ("jobs.md", "from topompi.inputs.slurm")])
def test_the_programs_of_the_pages_run(page: str, begins: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    (tmp_path / "graph.txt").write_text("".join(f"{rank} {(rank + 5) % 16} 100\n" for rank in range(16)))
    (tmp_path / "now.txt").write_text("old n[0-1,4]\nother n[8-11]\n")
    blocks = re.findall(
        r"^```python(?: file=\w+\.py)?\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL
    )
    (program,) = [block for block in blocks if block.startswith(begins)]
    exec(compile(program, page, "exec"), {})
    printed = capsys.readouterr().out
    assert float(printed) <= 1 if page == "mapping.md" else "shares no link with a running job" in printed


def test_an_explanation_of_the_library_is_that_of_the_command() -> None:
    routes = load_routes(SPEC)
    interface = TopologyInterface.place(routes.fabric.hosts, routes, source=SPEC)
    for words in ([], ["--rules", str(ROOT / "docs" / "nowhere.json")]):
        done = command_line("why", "bcast", "64K", "--topology", SPEC, "--json", *words)
        assert (done.returncode == 0) == (not words)
    told = json.loads(command_line("why", "bcast", "64K", "--topology", SPEC, "--json").stdout)
    assert told == explain(interface, "Bcast", 1 << 16)


def test_the_switches_between_two_hosts_are_those_of_the_service_and_of_the_hops() -> None:
    routes = load_routes(SPEC)
    between, service = HostRoutes(routes, np.arange(16, dtype=np.int32)), Generation(1, routes, 0.0)
    for sender, receiver in ((0, 0), (0, 1), (0, 5), (15, 2)):
        found = between.switches(sender, receiver)
        assert len(found) == between.hops[sender, receiver]
        assert tuple(found) == service.route(routes.fabric.hosts[sender], routes.fabric.hosts[receiver])
