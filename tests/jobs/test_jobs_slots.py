"""Jobs on slots: nodes that several jobs share, metrics by slots, and nodes that are drained or down."""

import csv
import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT, command_line, examples
from tests.workloads import random_workload
from topompi.machine.jobs import (
    ALLOCATORS,
    AllocationError,
    Cluster,
    IsolationCheck,
    JobsError,
    NodeStates,
    Outcome,
    Promises,
    Workload,
    check,
    find_allocator,
    simulate,
)
from topompi.machine.jobs.allocation import Job, Occupancy, Placement, SlotOccupancy, requests_of
from topompi.machine.jobs.allocation.shared import SharingAllocator
from topompi.machine.jobs.exports import to_json, write_jobs
from topompi.machine.jobs.metrics import average_hops, figures, fragmentation, utilisation

QUEUES = ("no-overtaking", "easy", "conservative")


def jobs_on_slots(seed: int, jobs: int = 120, largest: int = 12) -> Workload:
    """Jobs of which two in three share nodes and ask for up to ``largest`` slots, or for none: whole nodes."""
    rng = np.random.default_rng(seed)
    made = random_workload(seed, jobs, 6)
    return made.with_columns(slots=rng.integers(0, largest + 1, jobs), shared=rng.random(jobs) < 0.66)


IRREGULAR = Cluster.of("irregular", [3, 2, 4, 1], [2, 2]).with_slots([4, 2, 8, 4, 4, 1, 8, 8, 2, 4])


def by_slot(outcome: Outcome) -> np.ndarray:
    """The job on each slot in each second, -1 for none; every slot is looked at one by one."""
    cluster = outcome.cluster
    table = np.full((int(outcome.end.max()) + 1, cluster.num_slots), -1)
    for job in outcome.ran.tolist():
        for place in outcome.resources_of(job).tolist():
            seconds = slice(int(outcome.start[job]), int(outcome.end[job]))
            assert (table[seconds, place] == -1).all(), f"slot {place} is held twice"
            table[seconds, place] = job
    return table


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("seed", range(4))
def test_no_slot_is_held_twice_and_only_jobs_that_share_meet_on_a_node(queue, seed):
    jobs, promises, watch = jobs_on_slots(seed), Promises(), IsolationCheck()
    outcome = simulate(jobs, IRREGULAR, queue, "shared", observers=[promises, watch])
    assert promises.broken == []
    assert watch.checks > 50
    table, met = by_slot(outcome), set[tuple[int, int]]()
    for second in table:
        for node in range(IRREGULAR.num_nodes):
            on = second[IRREGULAR.slot_start[node] : IRREGULAR.slot_start[node + 1]]
            met |= set(combinations(np.unique(on[on >= 0]).tolist(), 2))
    assert met
    assert all(jobs.shared[list(pair)].all() for pair in met)
    for job in outcome.ran.tolist():
        held, sharing = len(outcome.resources_of(job)), jobs.shared[job] and jobs.slots[job] > 0
        assert held == (jobs.slots[job] if sharing else IRREGULAR.slots[outcome.nodes_of(job)].sum())
        assert sharing or len(outcome.nodes_of(job)) == jobs.nodes[job]


def test_shared_nodes_are_filled_first_then_empty_ones():
    policy, cluster = find_allocator("shared"), Cluster.regular(6, 3).with_slots(4)
    state = policy.state(cluster)
    expected = [  # slots, nodes; whether it shares; the slots that it gets, as (node, slot)
        (3, 1, True, [(0, 0), (0, 1), (0, 2)]),
        (0, 1, False, [(1, -1)]),  # the leaf with the fewest empty nodes that suffice is the first one
        (2, 1, True, [(0, 3), (3, 0)]),
        (1, 1, True, [(3, 1)]),
        (9, 3, True, [(3, 2), (3, 3), (4, 0), (4, 1), (4, 2), (4, 3), (5, 0), (5, 1), (5, 2)]),
        (2, 1, True, [(5, 3), (2, 0)]),
        (4, 1, True, None),
        (0, 1, False, None),
        (3, 1, True, [(2, 1), (2, 2), (2, 3)]),
    ]
    for number, (slots, size, shared, places) in enumerate(expected):
        job = Job(number, size, asks={"slots": slots, "shared": shared})
        found = policy.place(job, state)
        got = None
        if found is not None:
            state.start(job, found)
            each = [-1] * len(found.nodes) if found.slots is None else found.slots.tolist()
            got = list(zip(found.nodes.tolist(), each, strict=True))
        assert got == places


def test_without_jobs_that_share_slots_change_nothing():
    """On leaves of equal nodes whole nodes are given: the starts are those of counting."""
    jobs, cluster = random_workload(7, 200, 16), Cluster.regular(16, 4, 2)
    counted = simulate(jobs, cluster)
    for machine in (cluster, cluster.with_slots(8)):
        outcome = simulate(jobs, machine, allocator="shared")
        assert outcome.slots is None
        assert (outcome.start == counted.start).all()
        assert utilisation(outcome).mean() == pytest.approx(utilisation(counted).mean())


@pytest.mark.parametrize("allocator", [name for name in ALLOCATORS if name != "shared"])
def test_policies_of_whole_nodes_do_not_see_slots(allocator):
    jobs = random_workload(4, 60, 12)
    cluster = Cluster.regular(24, 4, 3)
    plain = simulate(jobs, cluster, allocator=allocator)
    slotted = jobs.with_columns(slots=jobs.nodes, shared=np.ones(60, dtype=bool))
    other = simulate(slotted, cluster.with_slots(3), allocator=allocator)
    assert (plain.start == other.start).all()
    assert (plain.nodes == other.nodes).all()
    assert other.slots is None


def test_use_is_that_of_the_slots_counted_one_by_one():
    jobs = jobs_on_slots(2)
    outcome = simulate(jobs, IRREGULAR, allocator="shared")
    held = by_slot(outcome)[int(jobs.submit[0]) :]
    assert utilisation(outcome, held=True).mean() == pytest.approx((held >= 0)[:-1].mean())
    used = [np.minimum(slots or 99, len(outcome.resources_of(job))) for job, slots in enumerate(jobs.slots.tolist())]
    seconds = (outcome.end - outcome.start) @ np.array(used)
    assert utilisation(outcome).mean() == pytest.approx(seconds / (len(held) - 1) / IRREGULAR.num_slots)
    told = figures(outcome)
    assert told["utilisation"] < told["held"] < 1


def test_free_slots_on_leaves_in_use_are_those_counted_one_by_one():
    outcome = simulate(jobs_on_slots(3), IRREGULAR, allocator="shared")
    free = (by_slot(outcome) < 0)[int(outcome.workload.submit[0]) : -1]
    first = IRREGULAR.slot_start[IRREGULAR.leaf_start[:-1]]
    whole = np.logical_and.reduceat(free, first, axis=1).repeat(np.diff(np.append(first, free.shape[1])), axis=1)
    assert fragmentation(outcome) == pytest.approx(1 - whole.sum() / free.sum())


def test_hops_are_those_between_the_nodes_of_a_job_each_once():
    jobs = Workload.of("one", submit=[0], run=[9], nodes=[2], columns={"slots": [7], "shared": [True]})
    outcome = simulate(jobs, Cluster.regular(4, 1, 2).with_slots(4), allocator="shared")
    assert outcome.nodes_of(0).tolist() == [0, 1]
    assert outcome.slots_of(0).tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert average_hops(outcome).tolist() == [2]


def test_a_node_of_two_jobs_is_legal_by_slots_and_a_slot_of_two_is_not():
    links = Cluster.regular(12, 6).links
    found = check({0: [0, 0, 7], 1: [0, 8]}, links, {0: [0, 1, 0], 1: [2, 0]})
    assert set(found.pairs) == {(0, 1)}
    assert {pair: nodes.tolist() for pair, nodes in found.nodes.items()} == {(0, 1): [0]}
    inside = check({0: [0, 1], 1: [1, 2]}, links, {0: [0, 0], 1: [1, 0]})
    assert not inside  # one leaf: no link between switches
    assert inside.nodes[0, 1].tolist() == [1]
    with pytest.raises(AllocationError, match="slots of one job each, got slot 1 of node 0 twice"):
        check({0: [0, 0], 1: [0]}, links, {0: [0, 1], 1: [1]})
    for slots in ({0: [0, 1]}, {0: [0, 1], 1: [-1]}):  # the other job holds the node whole
        with pytest.raises(AllocationError, match="nodes of one job each, got node 0 twice"):
            check({0: [0, 0], 1: [0]}, links, slots)
    with pytest.raises(AllocationError, match="a slot for each of 3 nodes, got 2"):
        check({0: [0, 0], 1: [0]}, links, {0: [0], 1: [1]})


def test_files_name_slots_node_by_node(tmp_path: Path):
    jobs = jobs_on_slots(5)
    outcome = simulate(jobs, IRREGULAR, allocator="shared")
    write_jobs(outcome, tmp_path / "jobs.csv")
    rows = list(csv.DictReader((tmp_path / "jobs.csv").open()))
    told = json.loads(to_json(outcome))["slots"]
    for job, row in enumerate(rows):
        parts = [part.split("-") for part in row["allocated_resources"].split()]
        places = [place for part in parts for place in range(int(part[0]), int(part[-1]) + 1)]
        assert places == outcome.resources_of(job).tolist()
        assert row["allocated_resources"] == told[job]


def test_slots_are_drawn_without_one_above_another(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from topompi.machine.jobs.drawing import draw

    draw(simulate(jobs_on_slots(5, 30), IRREGULAR, allocator="shared"), tmp_path / "a.svg")
    assert ">slot<" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("slots", "message"),
    [(0, "expecting 1 to 65535 slots a node, got 0 to 0"), ([1, 2], "slots of 4 nodes, got int64"), (1.5, "got float")],
)
def test_numbers_of_slots_that_make_no_cluster_are_refused(slots, message):
    with pytest.raises(JobsError, match=message):
        Cluster.regular(4, 4).with_slots(slots)


def test_the_slots_of_a_cluster_are_numbered_node_by_node():
    cluster = Cluster.regular(3, 3).with_slots([2, 1, 3])
    assert cluster.num_slots == 6
    assert cluster.slots_of(np.array([2, 0])).tolist() == [3, 4, 5, 0, 1]
    assert cluster.slots_of(np.array([2, 0, 1]), np.array([1, -1, 0])).tolist() == [4, 0, 1, 2]
    assert cluster.node_of_slot.tolist() == [0, 0, 1, 2, 2, 2]
    assert Cluster.regular(3, 3).slots_of(np.array([2, 0])).tolist() == [2, 0]


def test_an_allocator_is_told_of_the_columns_that_it_heeds_and_jobs_of_one_kind_ask_for_the_same():
    jobs = Workload.of(
        "five",
        submit=range(5),
        run=[1] * 5,
        nodes=[1] * 5,
        columns={"slots": [3, 5, 3, 3, 0], "shared": [True, True, True, False, True]},
    )
    asked = requests_of(jobs, Cluster.regular(4, 4).with_slots(2), find_allocator("shared"))
    assert asked.sizes.tolist() == [2, 3, 2, 1, 1]  # the least nodes
    assert asked.kinds[0] == asked.kinds[2]
    assert len(set(asked.kinds.tolist())) == 4
    assert asked.of_job(1, 9) == Job(1, 3, 9, {"slots": 5, "shared": True})
    whole = requests_of(jobs, Cluster.regular(4, 4), find_allocator("first"))
    assert whole.of_job(1) == Job(1, 1)


class Forgetful(SharingAllocator):
    """The allocator of slots, which finds nothing for a job of 6 slots once the first job has ended."""

    name = "forgetful"
    monotone = False

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        return None if job.slots == 6 and 1 in state.running and 0 not in state.running else super().place(job, state)


def test_a_promise_of_slots_holds_beside_a_job_on_other_slots_of_a_node():
    """The fourth job is promised the end of the third one; the first one then ends before its request."""
    jobs = Workload.of(
        "five",
        submit=[0, 0, 0, 1, 2],
        run=[15, 90, 20, 10, 3],
        request=[50, 90, 20, 10, 3],
        nodes=[1] * 5,
        columns={"slots": [2, 3, 6, 6, 1], "shared": [True] * 5},
    )
    promises = Promises()
    outcome = simulate(jobs, Cluster.regular(3, 3).with_slots(4), "easy", Forgetful(), observers=[promises])
    assert outcome.start[3] == 20
    assert promises.made
    assert promises.broken == []


def changes(cluster: Cluster, seed: int, until: int) -> list[tuple[int, str, list[int]]]:
    """Nodes that fail, are drained and come back, at random seconds."""
    rng = np.random.default_rng(seed)
    states = ["drained", "down", "up", "up"]
    return [
        (int(rng.integers(until)), states[rng.integers(4)], rng.integers(cluster.num_nodes, size=3).tolist())
        for _ in range(40)
    ]


@pytest.mark.parametrize("allocator", [name for name in ALLOCATORS if name != "counts"])
@pytest.mark.parametrize("queue", QUEUES)
def test_no_job_starts_on_a_closed_node_and_none_goes_on_where_one_is_down(allocator, queue):
    jobs = jobs_on_slots(1, 60 if allocator != "exact" else 25)
    cluster = IRREGULAR if allocator == "shared" else Cluster.regular(10, 3, 2)
    rows = changes(cluster, 8, int(jobs.submit[-1]))
    outcome = simulate(jobs, cluster, queue, allocator, node_states=NodeStates.of(cluster, rows))
    state, history = np.zeros(cluster.num_nodes, dtype=int), dict[int, np.ndarray]()
    by_second = sorted(rows, key=lambda row: row[0])
    for second in range(int(outcome.end.max()) + 1):
        for when, word, nodes in by_second:
            if when == second:
                state[nodes] = ["up", "drained", "down"].index(word)
        history[second] = state.copy()
    assert len(outcome.ran) > len(jobs) / 3
    for job in outcome.ran.tolist():
        held, start, end = outcome.held_by(job), int(outcome.start[job]), int(outcome.end[job])
        assert (history[start][held] == 0).all()
        assert all((history[second][held] < 2).all() for second in range(start, end))
        assert (job in outcome.lost) == (end - start < jobs.duration[job])
        assert job not in outcome.lost or (history[end][held] == 2).any()
    assert len(outcome.lost)


def test_a_job_for_which_too_few_nodes_are_up_keeps_no_other_one_waiting():
    cluster = Cluster.regular(4, 4)
    jobs = Workload.of("three", submit=[0, 1, 2], run=[10, 10, 10], nodes=[1, 4, 3])
    for queue in QUEUES:
        gone = NodeStates.of(cluster, [(0, "drained", [3])])
        outcome = simulate(jobs, cluster, queue, "first", node_states=gone)
        assert outcome.start.tolist() == [0, -1, 10]
        back = NodeStates.of(cluster, [(0, "drained", [3]), (50, "up", [3])])
        assert simulate(jobs, cluster, queue, "first", node_states=back).start.tolist() == [0, 50, 10]
        assert simulate(jobs, cluster, queue, "counts", node_states=back).start.tolist() == [0, 50, 10]


def test_a_job_ends_when_a_node_of_its_own_goes_down_and_not_when_it_is_drained(tmp_path: Path):
    cluster = Cluster.regular(4, 4)
    jobs = Workload.of("two", submit=[0, 0, 1], run=[10, 10, 5], nodes=[2, 2, 2])
    rows = [(4, "drained", [0]), (6, "down", [3]), (8, "up", [0])]
    outcome = simulate(jobs, cluster, allocator="first", node_states=NodeStates.of(cluster, rows))
    assert outcome.end.tolist()[:2] == [10, 6]
    assert outcome.lost.tolist() == [1]
    assert (outcome.start[2], outcome.held_by(2).tolist()) == (10, [0, 1])
    write_jobs(outcome, tmp_path / "jobs.csv")
    assert [row["final_state"][:11] for row in csv.DictReader((tmp_path / "jobs.csv").open())][1] == "COMPLETED_K"
    assert json.loads(to_json(outcome))["lost"] == [2]


@examples(20)
@given(seed=st.integers(0, 10**6), allocator=st.sampled_from([name for name in ALLOCATORS if name != "exact"]))
def test_drained_nodes_that_nobody_needs_change_no_start(seed, allocator):
    """A cluster whose last pod is drained runs jobs as the cluster without that pod."""
    jobs = random_workload(seed, 40, 6)
    whole, small = Cluster.regular(18, 3, 2), Cluster.regular(12, 3, 2)
    gone = NodeStates.of(whole, [(0, "drained", range(12, 18))])
    one = simulate(jobs, whole, allocator=allocator, node_states=gone)
    other = simulate(jobs, small, allocator=allocator)
    assert one.start.tolist() == other.start.tolist()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((-1, "up", [0]), "expecting seconds from 0 below"),
        ((0, "idle", [0]), "expecting up, drained or down, got 'idle'"),
        ((0, "up", [4]), "expecting nodes from 0 to 3, got "),
        ((0, "up", [0.5]), "expecting nodes from 0 to 3, got "),
    ],
)
def test_changes_that_mean_nothing_are_refused(row, message):
    with pytest.raises(JobsError, match=f"node states: {message}"):
        NodeStates.of(Cluster.regular(4, 4), [row])


def test_what_runs_outside_is_adopted_with_its_slots():
    policy, cluster = find_allocator("shared"), Cluster.regular(2, 2).with_slots(4)
    state = policy.state(cluster)
    assert isinstance(state, SlotOccupancy)
    held = np.array([0, 0]), np.array([1, 3])
    shares = {"slots": 2, "shared": True}
    state.start(Job(0, 1, asks=shares), policy.adopt(Job(0, 1, asks=shares), held[0], cluster, held[1]))
    found = policy.place(Job(1, 1, asks=shares), state)
    assert (found.nodes.tolist(), found.slots.tolist()) == ([0, 0], [0, 2])
    assert not check({0: held[0], 1: found.nodes}, cluster.links, {0: held[1], 1: found.slots})


@pytest.mark.parametrize("queue", ["easy", "conservative"])
@pytest.mark.parametrize("allocator", [name for name in ALLOCATORS if name != "exact"])
def test_promises_reckon_with_nodes_that_are_drained_under_running_jobs(allocator, queue):
    rng = np.random.default_rng(5)
    cluster = IRREGULAR if allocator == "shared" else Cluster.regular(10, 3, 2)
    made = 0
    for _ in range(5):
        run, nodes = rng.integers(20, 90, 40), np.concatenate((rng.integers(1, 4, 3), rng.integers(1, 6, 37)))
        submit = np.concatenate(([0, 0, 0], 2 + np.sort(rng.integers(0, 200, 37))))
        shares = {"slots": nodes, "shared": rng.random(40) < 0.5}
        jobs = Workload.of("drained", submit=submit, run=run, request=run, nodes=nodes, columns=shares)
        drained = NodeStates.of(cluster, [(1, "drained", rng.integers(0, 10, 3))])  # before any job has to wait
        promises = Promises()
        simulate(jobs, cluster, queue, allocator, observers=[promises], node_states=drained)
        made += promises.made
        assert promises.broken == []
    assert made


def test_a_job_that_was_refused_starts_when_nodes_come_back():
    """The second job has the reservation, and the third one needs a leaf whose two nodes are up."""
    cluster = Cluster.regular(6, 2, 3)
    jobs = Workload.of("three", submit=[0, 1, 1], run=[100, 10, 10], nodes=[3, 3, 2])
    states = NodeStates.of(cluster, [(0, "drained", [4]), (50, "up", [4])])
    outcome = simulate(jobs, cluster, "easy", "isolated", node_states=states)
    assert outcome.start.tolist() == [0, 100, 50]


def test_a_refused_job_keeps_only_jobs_of_its_kind_from_starting():
    """On two nodes, a job that wants a node alone finds none, and one that shares the first node does."""
    jobs = Workload.of(
        "five",
        submit=[0, 0, 1, 2, 2],
        run=[100, 100, 10, 10, 10],
        nodes=[1, 1, 2, 1, 1],
        columns={"slots": [2, 0, 0, 0, 1], "shared": [True, False, False, False, True]},
    )
    outcome = simulate(jobs, Cluster.regular(2, 2).with_slots(4), "easy", "shared")
    assert outcome.start.tolist() == [0, 0, 100, 110, 2]


SMALL = "; MaxNodes: 6\n" + "".join(
    f"{job} {submit} -1 {run} {slots} -1 -1 {slots} {2 * run} -1 1 1 -1 -1 -1 -1 -1 -1\n"
    for job, (submit, run, slots) in enumerate(
        [(0, 600, 12), (10, 300, 3), (20, 200, 2), (30, 100, 10), (30, 100, 10)], 1
    )
)


def command(tmp_path: Path, *words: str) -> dict[str, object]:
    (tmp_path / "small.swf").write_text(SMALL)
    done = command_line("jobs", *words, "small.swf", "--topology", "leaves=3", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_runs_jobs_on_slots(tmp_path: Path):
    told = command(tmp_path, "simulate", "--slots", "8", "--share", "-p", "first,shared")
    assert told["first"]["mean_wait"] == 20
    assert told["shared"]["mean_wait"] == 0
    used = (600 * 12 + 300 * 3 + 200 * 2 + 2 * 100 * 10) / (600 * 48)
    assert [told[name]["utilisation"] for name in told] == pytest.approx([used, used])
    assert told["shared"]["held"] == pytest.approx(used)
    assert told["first"]["held"] > used + 0.1
    one = command(tmp_path, "simulate", "--slots", "8", "--share", "-p", "shared", "-o", str(tmp_path / "j.csv"))
    assert one["slots"] == ["0-11", "12-14", "15 24", "25-34", "16-20 35-39"]
    asked = [row["requested_number_of_resources"] for row in csv.DictReader((tmp_path / "j.csv").open())]
    assert asked == ["12", "3", "2", "10", "10"]


def test_the_command_names_queues(tmp_path: Path):
    (tmp_path / "own.py").write_text(
        "from topompi.machine.jobs import Backfill\n\ndef strict():\n    return Backfill(0)\n"
    )
    told = [command(tmp_path, "simulate", "--cores", "4", "--queue", name)["queue"] for name in ("own:strict", "easy")]
    assert told == ["fcfs no overtaking", "fcfs EASY"]


def test_the_programs_of_the_page_run(capsys: pytest.CaptureFixture[str]):
    page = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(programs) == 1
    for program in programs:
        exec(compile(program, "docs/jobs.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[:2] == ["[0] [5 6 7] [1]", "{(0, 1): array([0])}"]
