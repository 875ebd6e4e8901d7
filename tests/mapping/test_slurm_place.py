"""``topompi slurm place``: hosts of tasks within an allocation of Slurm, by environment and by options."""

import json
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services import running
from tests.support import examples
from topompi.inputs.hostlist import compress
from topompi.machine.slurm.placement import nodes_of_job, place, tasks_of_job
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.mapping import Mapping
from topompi.mapping.rankfiles import read_mapping
from topompi.mapping.search import Search
from topompi.topology import Report, load_routes
from topompi.topology.service.store import RouteStore
from topompi.topology.sources import automatic, slurm_addresses

FABRIC = "XGFT(2; 2,2; 1,2)"  # 2 leaf switches of 2 hosts h0000 ...
JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[0000-0003]", "SLURM_TASKS_PER_NODE": "2(x4)"}
SWITCHES = "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=h[0000-0001]\n"
SWITCHES += "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=h[0002-0003]\n"
SWITCHES += "SwitchName=top Level=1 LinkSpeed=1 Nodes=h[0000-0003] Switches=leaf[0-1]\n"


@pytest.fixture
def run(monkeypatch, command, tmp_path):
    """Runs the command; named arguments are the job's variables, and no service or Slurm is here."""

    def with_job(*words, **job):
        for name in [
            *JOB,
            "SLURM_NTASKS",
            "SLURM_TOPOLOGY_ADDR",
            "SLURMD_NODENAME",
            "TOPOMPI_TOPOLOGY",
            "TOPOMPI_SERVER",
        ]:
            monkeypatch.delenv(name, raising=False)
        for name, value in job.items():
            monkeypatch.setenv(name, value)
        return command("slurm", "place", *words)

    monkeypatch.setattr(automatic, "SOCKET", "/no/such/socket")
    monkeypatch.setenv("PATH", str(tmp_path))
    return with_job


@pytest.fixture
def halo(tmp_path):
    """Rank r exchanges most with rank r + 4, so that the given order, two ranks a node, is the worst."""
    path = tmp_path / "halo.txt"
    pairs = [(r, r + 4, 900) for r in range(4)] + [(r, r + 1, 10) for r in (0, 2, 4, 6)]
    path.write_text("".join(f"{u} {v} {b}\n{v} {u} {b}\n" for u, v, b in pairs))
    return path


def hosts_in(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_partners_meet_on_a_node_and_the_gain_is_said(run, halo):
    done = run(halo, "--topology", FABRIC, **JOB)
    hosts = hosts_in(done.out)
    assert [hosts[rank] for rank in range(4)] == [hosts[rank + 4] for rank in range(4)]
    assert Counter(hosts) == {f"h000{n}": 2 for n in range(4)}
    # By hand: 4 pairs of 2 x 900 bytes and 4 of 2 x 10; in blocks only the latter stay on their nodes. h0 and h1 hold
    # ranks 0 to 3, so that all of the former cross the leaf switches.
    assert done.err == (
        "8 tasks on 4 of 4 nodes; bytes across nodes 7,200 -> 80 (98.9 % -> 1.1 %), "
        f"across leaf switches 7,200 -> 0 (98.9 % -> 0.0 %); topology: {FABRIC}\n"
    )


def test_json_has_the_same_figures_and_the_files_the_same_hosts(run, halo, tmp_path):
    files = {form: tmp_path / form for form in ("slurm", "rankfile5", "hydra")}
    for form, path in files.items():
        done = run(halo, "--topology", FABRIC, "--json", "--format", form, "-o", path, **JOB)
    told = json.loads(done.out)
    before, after = told["figures"]["maps"].values()
    assert (before["across_nodes"], before["across_leaves"], after["across_nodes"], after["across_leaves"]) == (
        7200,
        7200,
        80,
        0,
    )
    assert (told["tasks"], told["slots"], told["warning"]) == (8, [2] * 4, "")
    assert hosts_in(files["slurm"].read_text()) == told["hosts"]
    for path in files.values():
        mapping = read_mapping(path)
        assert [mapping.hosts[host] for host in mapping.host_of_rank] == told["hosts"]


def test_unequal_slots_of_the_job_are_kept(run, halo):
    counts = {**JOB, "SLURM_TASKS_PER_NODE": "3,2(x2),1"}
    hosts = hosts_in(run(halo, "--topology", FABRIC, **counts).out)
    assert Counter(hosts) == {"h0000": 3, "h0001": 2, "h0002": 2, "h0003": 1}
    fewer = hosts_in(run(halo, "--topology", FABRIC, "--slots", "2,2,4,1", **JOB).out)
    assert all(
        Counter(fewer)[host] <= most for host, most in zip([f"h000{n}" for n in range(4)], [2, 2, 4, 1], strict=True)
    )


@pytest.mark.parametrize(
    ("variables", "words", "warning"),
    [
        ({}, [], "no PROFILE"),
        ({"SLURM_NTASKS": "7"}, ["HALO"], "expecting 7 ranks, as the job has tasks, got 8"),
        ({}, ["HALO", "-n", "5"], "holds at least 8 ranks, but 5 were asked for"),
    ],
)
def test_without_a_graph_that_fits_the_given_order_stays_with_a_warning(run, halo, variables, words, warning):
    done = run(*(str(halo) if word == "HALO" else word for word in words), **JOB, **variables)
    assert done.code == 0
    first, *_, last = done.err.splitlines()
    assert warning in first
    assert first.endswith("; all pairs of tasks weigh the same: the given order stays")
    tasks = {"7": 7}.get(variables.get("SLURM_NTASKS"), 5 if "-n" in words else 8)
    assert hosts_in(done.out) == [f"h000{rank // 2}" for rank in range(tasks)]
    assert last == f"{tasks} tasks on {(tasks + 1) // 2} of 4 nodes, in the given order"


def test_a_graph_that_cannot_be_read_is_an_error(run, tmp_path):
    (tmp_path / "damaged").write_text("0 1\n0 x y z\n")
    for graph, more in product((tmp_path / "none", tmp_path / "damaged", tmp_path), ((), ("-n", "4"))):
        done = run(graph, *more, "-o", tmp_path / "hosts", **JOB)
        assert (done.code, done.out) == (1, "")
        assert str(graph) in done.err
        assert not (tmp_path / "hosts").exists()


def test_outside_an_allocation_the_error_names_the_options_that_replace_it(run, halo):
    done = run(halo)
    assert done.code == 1
    assert "expecting an allocation of Slurm (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE), got none" in done.err
    assert "--hosts LIST and --slots N replace it" in done.err
    told = run(halo, "--hosts", "h[0000-0003]", "--slots", "2", "--topology", FABRIC)
    assert Counter(hosts_in(told.out)) == {f"h000{n}": 2 for n in range(4)}


@pytest.mark.parametrize(
    ("variables", "words", "error"),
    [
        ({**JOB, "SLURM_NTASKS": "9"}, [], "expecting a slot for each of 9 tasks, got 8 on 4 nodes"),
        ({**JOB, "SLURM_TASKS_PER_NODE": "2(x3)"}, [], "expecting SLURM_TASKS_PER_NODE for 4 hosts, got 3"),
        ({}, ["--hosts", "h[0-1]"], "expecting slots of the nodes or a number of tasks, got neither"),
        ({}, ["--hosts", "all"], "expecting names of nodes, got 'all'"),
        (JOB, ["--lfts", "x"], "expecting --topology beside --lfts"),
        (JOB, ["--topology", "XGFT(1; 2; 1)", "HALO"], "h0002"),
    ],
)
def test_an_allocation_that_holds_no_such_job_is_an_error(run, halo, variables, words, error):
    done = run(*(str(halo) if word == "HALO" else word for word in words), **variables)
    assert done.code == 1
    assert error in done.err


def test_the_topology_is_that_of_auto_where_none_is_named(run, halo, tmp_path):
    lone = run(halo, **{**JOB, "SLURM_JOB_ID": ""})
    assert lone.err.endswith("topology: nodes only: auto: no service, and no job of Slurm\n")
    assert "across leaf" not in lone.err
    script = tmp_path / "scontrol"
    script.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{SWITCHES}END\n")
    script.chmod(0o755)
    done = run(halo, **JOB)
    assert "across leaf switches 7,200 -> 0" in done.err
    assert done.err.endswith(f"topology: auto: scontrol show topology, {automatic.LACKS}\n")
    absent = run(halo, **{**JOB, "SLURM_JOB_NODELIST": "h[0002-0005]"})
    assert "topology: hosts only: 2 hosts are not in auto: scontrol show topology" in absent.err
    assert Counter(hosts_in(absent.out)) == {f"h000{n}": 2 for n in range(2, 6)}


def test_a_service_comes_first_and_is_asked_for_the_nodes_of_the_job(run, halo):
    with running(RouteStore(lambda: load_routes(FABRIC))) as (_, address):
        done = run(halo, TOPOMPI_SERVER=str(address), **JOB)
    assert "across leaf switches 7,200 -> 0" in done.err
    assert done.err.endswith(f"topology: auto: {address}\n")


def test_the_switches_of_a_job_of_one_node_are_those_that_slurm_tells_it(run, halo):
    told = {"SLURM_TOPOLOGY_ADDR": "top.leaf1.h0002", "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node"}
    one = {**JOB, "SLURM_JOB_NODELIST": "h0002", "SLURM_TASKS_PER_NODE": "8", "SLURMD_NODENAME": "h0002", **told}
    assert f"topology: auto: {slurm_addresses.NAME}" in run(halo, **one).err
    two = {**one, "SLURM_JOB_NODELIST": "h[0002-0003]", "SLURM_TASKS_PER_NODE": "4(x2)"}
    assert slurm_addresses.NAME not in run(halo, **two).err  # another node's address is not known here


@examples(60)
@given(slots=st.lists(st.integers(0, 4), min_size=2, max_size=4).filter(any), seed=st.integers(0, 99), data=st.data())
def test_every_task_has_a_slot_and_no_placement_costs_more_than_the_given_one(slots, seed, data) -> None:
    ranks = data.draw(st.integers(1, sum(slots)))
    rng = np.random.default_rng(seed)
    graph = CommunicationGraph.from_matrix(rng.integers(0, 9, (ranks, ranks)))
    routes = load_routes(FABRIC)
    hosts = routes.fabric.hosts[: len(slots)]
    written = ",".join(map(str, slots))
    nodes = nodes_of_job({"SLURM_JOB_NODELIST": compress(hosts), "SLURM_TASKS_PER_NODE": written}, ranks)
    found = place(ranks, nodes, graph, Search(seed=seed), Report(), environment={}, routes=routes, source=FABRIC)
    counts = Counter(found.hosts)
    assert len(found.hosts) == ranks
    assert all(counts[host] <= most for host, most in zip(hosts, slots, strict=True))
    assert found.figures is not None
    before, after = found.figures["maps"].values()
    assert after["doubled"] <= before["doubled"]
    for side, on in ((before, Mapping.identity(found.machine, ranks)), (after, found.mapping)):
        host = np.array(on.host_of_rank)
        volume = graph.volume
        apart = host[graph.sources] != host[graph.targets]
        leaf = host // 2
        assert side["across_nodes"] == volume[apart].sum()
        assert side["across_leaves"] == volume[leaf[graph.sources] != leaf[graph.targets]].sum()


def test_the_number_of_tasks_is_slurms_unless_hosts_are_given():
    assert tasks_of_job({"SLURM_NTASKS": "12"}) == 12
    assert tasks_of_job({"SLURM_NTASKS": "12"}, "h[0-1]") is None
    assert [tasks_of_job({"SLURM_NTASKS": odd}) for odd in ("", "0", "x", "-1", "1e3")] == [None] * 5
