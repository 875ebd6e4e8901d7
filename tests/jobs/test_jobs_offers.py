"""Slots for one further job beside running jobs whose CPUs are told."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line
from topompi.inputs.slurm.running import RunningJob, read_running
from topompi.machine.jobs import AllocationError, Cluster, Outcome, Workload
from topompi.machine.jobs.now import offer, remarks

CLUSTER = Cluster.parse("leaves=2x2x2").with_slots(8)
TABLE = "JOBID NODES CPUS NODELIST ST\n1 2 12 n[0-1] R\n2 1 2 n1 R\n3 1 0 n2 R\n"
SCONTROL = """JobId=1 JobState=RUNNING NodeList=n[0-1] NumNodes=2 NumCPUs=12
JobId=2 JobState=RUNNING NodeList=n1 NumNodes=1 NumCPUs=2
JobId=3 JobState=RUNNING NodeList=n2 NumNodes=1
"""


def number(value: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


def by_node(**cpus: int) -> dict[str, object]:
    listed = [{"name": name, "cpus": {"count": count, "used": 0}} for name, count in cpus.items()]
    return {"nodes": {"count": len(cpus), "allocation": listed}}


JSON = json.dumps(
    {
        "jobs": [
            {"job_id": 1, "job_state": ["RUNNING"], "nodes": "n[0-1]", "cpus": number(12)},
            {"job_id": 2, "job_state": ["RUNNING"], "nodes": "n1", "cpus": 9, "job_resources": by_node(n1=2)},
            {"job_id": 3, "job_state": ["RUNNING"], "nodes": "n2"},
        ]
    }
)


@pytest.mark.parametrize("text", [TABLE, SCONTROL, JSON])
def test_slots_beside_the_running_jobs_are_offered(text: str, tmp_path: Path) -> None:
    (tmp_path / "now").write_text(text)
    running = read_running(tmp_path / "now")
    assert [job.slots for job in running] == [(6, 6), (2,), ()]
    assert offer(2, CLUSTER, running, "shared", share=True).nodes == ("n0",)
    found = offer(42, CLUSTER, running, "shared", share=True)
    assert dict(zip(found.nodes, found.slots, strict=True)) == {"n0": 2} | {f"n{node}": 8 for node in range(3, 8)}
    assert offer(43, CLUSTER, running, "shared", share=True).why == "42 slots on 6 nodes are free"
    assert found.notes == ("jobs 1 and 2 share node n1: 8 of 8 slots",)


def test_the_commands_take_slots(tmp_path: Path) -> None:
    (tmp_path / "now").write_text(TABLE)
    words = ("jobs", "allocate", 5, "--topology", "leaves=2x2x2", "--running", tmp_path / "now", "--slots", 8)
    done = command_line(*words, "-p", "shared", "--share")
    assert done.stdout.splitlines()[:2] == ["n[0,4]", "slots: n0*2,n4*3"]
    found = command_line(*words, "-p", "shared", "--share", "--json").stdout
    assert found.count('"why"') == 1
    assert json.loads(found)["slots"] == {"n0": 2, "n4": 3}
    assert command_line(*words, "-p", "shared").stdout.splitlines()[0] == "n[4-7,3]"
    assert "such as shared, got first" in command_line(*words, "-p", "first", "--share").stderr
    done = command_line("jobs", "check", tmp_path / "now", "--topology", "leaves=2x2x2", "--slots", 8)
    assert "jobs 1 and 2 share node n1: 8 of 8 slots" in done.stderr


@given(
    held=st.lists(st.dictionaries(st.integers(0, 7), st.integers(0, 9), min_size=1, max_size=4), max_size=5),
    size=st.integers(1, 70),
)
def test_no_slot_that_a_job_holds_is_offered(held: list[dict[int, int]], size: int) -> None:
    """A job without CPUs (0) holds whole nodes, and none holds more than a node has."""
    running = [
        RunningJob(str(at), tuple(f"n{node}" for node in of), "", tuple(of.values()) if all(of.values()) else ())
        for at, of in enumerate(held)
    ]
    room = {f"n{node}": 8 for node in range(8)}
    for job in running:
        for host, count in zip(job.hosts, job.slots or (8,) * len(job.hosts), strict=True):
            room[host] = max(0, room[host] - count)
    found = offer(size, CLUSTER, running, "shared", share=True)
    assert bool(found.nodes) == (size <= sum(room.values()))
    assert all(count <= room[host] for host, count in zip(found.nodes, found.slots, strict=True))
    assert not found.nodes or sum(found.slots) == size


def test_jobs_whose_slots_are_not_told_are_named_without_numbers() -> None:
    jobs = [RunningJob("a", ("n0",), "", (3,)), RunningJob("b", ("n0",))]
    assert remarks(jobs, ["n0"], "m", np.array([8])) == ["jobs a and b share node n0"]
    with pytest.raises(AllocationError, match="such as shared, got disjoint"):
        offer(1, CLUSTER, jobs, share=True)


def test_a_job_with_whole_nodes_and_slots_of_others_holds_slots() -> None:
    workload = Workload.of("mine", submit=[0, 0], run=[5, 5], nodes=[2, 1])
    zeros, fives = np.zeros(2, dtype=np.int64), np.full(2, 5, dtype=np.int64)
    nodes, slots = np.array([1, 0, 0, 3], dtype=np.int32), np.array([-1, 2, 5, -1], dtype=np.int32)
    offset = np.array([0, 3, 4])
    outcome = Outcome(workload, CLUSTER, ("a", "b", "c"), zeros, zeros, fives, offset, nodes, slots)
    assert outcome.slots_of(0).tolist() == [-1, 2, 5]
    assert outcome.held_by(0).tolist() == [0, 1]
    assert outcome.slots_of(1) is None
    assert outcome.resources_of(0).tolist() == [2, 5, *range(8, 16)]
