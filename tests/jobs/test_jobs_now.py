"""The nodes that jobs hold now, from all that Slurm prints, are never given away."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line, shared_data
from topompi.inputs.slurm.nodes import is_idle, read_closed
from topompi.inputs.slurm.running import RunningJob, read_running
from topompi.inputs.slurm.squeue import holds_nodes
from topompi.machine.jobs import ALLOCATORS, AllocationError, Cluster, find_allocator
from topompi.machine.jobs.now import held_nodes, node_names, offer, remarks

CLUSTER = Cluster.parse("leaves=4x2x2")
TABLE = """Thu Nov 26 08:00:00 2026
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
               101     batch   my job    user1  RUNNING       5:00   1:00:00      2 n[0-1]
               102     batch        b    user1 COMPLETI       5:00   1:00:00      1 n4
               103     batch        c    user1  PENDING       0:00   1:00:00      4 (Nodes required are DOWN, DRAINED)
         104_[1-4]     batch        c    user1  PENDING       0:00   1:00:00      4 (Resources)
"""
BARS = "JOBID|ST|NODELIST\n101|R|n0,n1\n102|CG|n4\n103|PD|\n104|CD|n7\n"
BLANKS = "JOBID ST NODELIST\n101 R n[0-1]\n103 PD \n102 S n4\n"
NAMELESS = "JOBID NODELIST\n101 n[0-1]\n103\n102 n4\n"
YAML = """---
jobs:
- job_id: 101
  job_state: [RUNNING]
  nodes: n[0-1]
- account: a
  job_id: 102
  job_state:
  - COMPLETED
  - COMPLETING
  node_count: {set: true, infinite: false, number: 1}
  nodes: n4
- {job_id: 103, job_state: PENDING, nodes: ""}
meta: {plugin: {data_parser: v0.0.41}}
"""
OLD_JSON = json.dumps(
    {
        "jobs": [
            {"job_id": 101, "job_state": "RUNNING", "nodes": "n[0-1]", "node_count": 2},
            {"job_id": 102, "job_state": "COMPLETING", "nodes": "n4", "node_count": 1},
            {"job_id": 103, "job_state": "PENDING", "nodes": "", "node_count": 4},
        ]
    }
)


def held(path: Path) -> dict[str, tuple[str, ...]]:
    return {job.name: job.hosts for job in read_running(path)}


@pytest.mark.parametrize("text", [TABLE, BARS, BLANKS, NAMELESS, YAML, OLD_JSON])
def test_every_form_of_squeue_tells_which_jobs_hold_which_nodes(text: str, tmp_path: Path) -> None:
    (tmp_path / "now").write_text(text)
    assert held(tmp_path / "now") == {"101": ("n0", "n1"), "102": ("n4",)}


@pytest.mark.parametrize(
    ("states", "holds"),
    [
        (["COMPLETED", "COMPLETING"], True),
        (["RUNNING", "CONFIGURING"], True),
        (["RUNNING", "STOPPED"], True),
        (["PENDING", "POWER_UP_NODE"], True),
        ("SUSPENDED", True),
        ("A_STATE_OF_TOMORROW", True),
        (["PENDING", "RESV_DEL_HOLD"], False),
        (["COMPLETED"], False),
        ("CANCELLED", False),
        ("PD", False),
        ("CG", True),
    ],
)
def test_a_job_holds_its_nodes_until_it_has_ended_and_they_are_clean(states: object, holds: bool) -> None:
    assert holds_nodes(states) is holds


def test_completing_suspended_and_configuring_jobs_keep_their_nodes() -> None:
    path = shared_data("cases/C02-completing/squeue.json")
    assert sorted(int(host[1:]) for hosts in held(path).values() for host in hosts) == list(range(16))
    found = offer(1, Cluster.parse("leaves=4x2x3"), read_running(path), "first")
    assert (found.free, found.nodes) == (8, ("n16",))


def test_a_stopped_job_keeps_its_nodes_and_one_without_nodes_is_noted() -> None:
    notes: list[str] = []
    jobs = read_running(shared_data("cases/C15-drain/n.json"), notes=notes)
    assert [job.name for job in jobs] == ["11", "12"]
    assert notes == ["job 14 runs without nodes"]


def test_a_running_job_whose_nodes_are_unknown_is_refused(tmp_path: Path) -> None:
    job = {"job_id": 1, "job_state": ["RUNNING"], "nodes": "", "node_count": {"set": True, "number": 4}}
    (tmp_path / "now").write_text(json.dumps({"jobs": [job]}))
    with pytest.raises(AllocationError, match="job 1: expecting a host list of 4 nodes, got none"):
        read_running(tmp_path / "now", AllocationError)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("C06-shared-nodes/squeue.json", ["jobs 106 and 107 share node n13"]),
        ("C06-shared-nodes/lines.txt", ["jobs a, b and c share node n3"]),
        ("C06-shared-nodes/other.json", ["job 2 runs on hosts outside of 16 nodes, leaves=4x2, from gpu1 on"]),
        ("C15-drain/squeue.json", ["jobs 1 and 2 share node n2"]),
    ],
)
def test_nodes_that_jobs_share_and_jobs_elsewhere_are_named_and_allowed(name: str, said: list[str]) -> None:
    jobs = read_running(shared_data(f"cases/{name}"))
    assert remarks(jobs, node_names(CLUSTER), CLUSTER.name) == said
    assert offer(1, CLUSTER, jobs, "first").notes == tuple(said)


def test_drained_nodes_of_a_topology_are_not_given_away() -> None:
    folder = shared_data("cases/C15-drain")
    words = (
        "jobs",
        "allocate",
        2,
        "--topology",
        folder / "topology.conf",
        "--running",
        folder / "n.json",
        "-p",
        "first",
    )
    assert command_line(*words).stdout.splitlines()[0] == "n[5-6]"
    assert command_line(*words, "--closed", "n[5-6]").stdout.splitlines()[0] == "n[7-8]"
    assert command_line(*words, "--closed", "n[5-7]").returncode == 1


@pytest.mark.parametrize("cluster", ["leaves=4x2x2", "h"])
def test_jobs_that_share_a_node_are_checked_by_a_shape_and_by_a_source(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "now").write_text("a n[1-4]\nb n[4-5]\nc gpu1\n")
    lines = ["SwitchName=top Switches=leaf[1-2]", "SwitchName=leaf1 Nodes=n[1-4]", "SwitchName=leaf2 Nodes=n[5-8]"]
    (tmp_path / "topology.conf").write_text("\n".join(lines) + "\n")
    source = tmp_path / "topology.conf" if cluster == "h" else cluster
    done = command_line("jobs", "check", tmp_path / "now", "--topology", source)
    assert "jobs a and b share node n4" in done.stderr
    assert "job c runs on hosts outside of" in done.stderr
    assert "2 jobs, " in done.stdout


@given(
    held_by=st.lists(st.sets(st.integers(0, 15), min_size=1, max_size=6), max_size=5),
    closed=st.sets(st.integers(0, 15), max_size=6),
    size=st.integers(1, 8),
    policy=st.sampled_from(sorted(name for name in ALLOCATORS if find_allocator(name).names_nodes)),
)
def test_no_policy_offers_a_node_that_a_job_holds_or_that_is_closed(
    held_by: list[set[int]], closed: set[int], size: int, policy: str
) -> None:
    jobs = [RunningJob(str(at), tuple(f"n{node}" for node in sorted(nodes))) for at, nodes in enumerate(held_by)]
    found = offer(size, CLUSTER, jobs, policy, [f"n{node}" for node in closed])
    taken = {f"n{node}" for nodes in (*held_by, closed) for node in nodes}
    assert found.free == 16 - len(taken)
    assert not taken & {*found.nodes, *found.held_unused}


def test_a_job_that_is_partly_outside_of_the_cluster_is_refused() -> None:
    with pytest.raises(AllocationError, match=r"job a: expecting hosts of .*, got 'n99'"):
        held_nodes([RunningJob("b", ("n0",)), RunningJob("a", ("n1", "n99"))], CLUSTER)
    with pytest.raises(AllocationError, match="closed nodes: expecting hosts of"):
        offer(1, CLUSTER, closed=["m1"])


NODES = [("n0", ["IDLE"]), ("n1", ["IDLE", "DRAIN"]), ("n2", ["DOWN"]), ("n3", ["MIXED"]), ("n4", ["IDLE", "PLANNED"])]
SINFO = """NODELIST   NODES PARTITION       STATE CPUS REASON
n0             1    batch*        idle 4    none
n1             1    batch*     drained 4    bad fan, see ticket
n2             1    batch*       down* 4    Not responding
n3             1    batch*       mixed 4    none
n4             1    batch*       idle~ 4    none
"""
SINFO_SHORT = (
    "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nbatch* up infinite 2 idle n[0,4]\nbatch* up 1:0 3 drng n[1-3]\n"
)
SCONTROL = "\n\n".join(
    f"NodeName={name} Arch=x86_64 CoresPerSocket=2\n   RealMemory=1 State={'+'.join(states)} Weight=1"
    for name, states in NODES
)


@pytest.mark.parametrize(
    "text",
    [
        SINFO,
        SINFO_SHORT,
        SCONTROL,
        SCONTROL.replace("\n  ", " "),
        json.dumps({"nodes": [{"name": name, "state": states} for name, states in NODES]}),
        json.dumps({"nodes": [{"hostname": name, "state": one, "state_flags": more} for name, (one, *more) in NODES]}),
        json.dumps({"sinfo": [{"node": {"state": states}, "nodes": {"nodes": [name]}} for name, states in NODES]}),
        "REASON  USER TIMESTAMP NODELIST\nbad fan, see ticket root 2026-01-01T00:00:00 n1\nx root 2026-01-01 n[2-3]\n",
        "n1 # fan\nn[2-3]\n",
    ],
)
def test_nodes_that_are_not_idle_are_closed_by_every_report_of_slurm(text: str, tmp_path: Path) -> None:
    (tmp_path / "states").write_text(text)
    assert read_closed(str(tmp_path / "states")) == ("n1", "n2", "n3")


@pytest.mark.parametrize(
    "state", ["drain", "drng", "down*", "idle*", "IDLE+DRAIN", "maint", "resv", "mix", "alloc", "x"]
)
def test_a_node_in_any_other_state_than_idle_is_closed(state: str) -> None:
    assert not is_idle(state)


@pytest.mark.parametrize("state", ["idle", "idle~", "IDLE+CLOUD+POWERED_DOWN", "plnd", "idle%"])
def test_an_idle_node_that_saves_power_is_open(state: str) -> None:
    assert is_idle(state)


def test_running_jobs_may_spell_hosts_without_their_domain_and_in_another_case() -> None:
    cluster = Cluster.of("m", [2, 2], [2], ("n0.site.org", "N1.site.org", "n2", "n3"))
    jobs = [RunningJob("a", ("n0", "n1")), RunningJob("b", ("n2.site.org",)), RunningJob("c", ("n0",))]
    assert {name: nodes.tolist() for name, nodes in held_nodes(jobs, cluster).items()} == {
        "a": [0, 1],
        "b": [2],
        "c": [0],
    }
    assert remarks(jobs, node_names(cluster), "m") == ["jobs a and c share node n0.site.org"]
    assert offer(1, cluster, jobs).nodes == ("n3",)
    assert offer(1, cluster, jobs, closed=("N3.site",)).nodes == ()
