"""`check_allocator`: every built-in allocator passes, and an allocator that breaks a promise is refused."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from topompi.machine.jobs import ALLOCATORS, AllocationError, WorkloadError, check_allocator, find_allocator, simulate
from topompi.machine.jobs.allocation import Job, Occupancy, Placement, SlotOccupancy
from topompi.machine.jobs.allocation.oblivious import CountingAllocator, First
from topompi.machine.jobs.allocation.shared import SharingAllocator

SLOW = {"exact": 40, "disjoint": 120}


@pytest.mark.parametrize("allocator", list(ALLOCATORS))
def test_every_allocator_of_ours_passes_and_finds_nodes_in_some_states(allocator):
    states = SLOW.get(allocator, 250)
    assert states / 5 < check_allocator(allocator, states=states) < states


class Whole(First):
    """First available, with one fault that a function adds to its nodes."""

    name = "faulty"
    by_count = False

    def __init__(self, change: Callable[[np.ndarray, Job, Occupancy], np.ndarray]) -> None:
        self.change = change

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        found = super().place(job, state)
        return None if found is None else Placement(self.change(found.nodes, job, state))


def ignores_closed(nodes: np.ndarray, job: Job, state: Occupancy) -> np.ndarray:
    held = np.concatenate([nodes[:0], *(held.nodes for _, held in state.running.values())])
    return np.setdiff1d(np.arange(state.cluster.num_nodes), held)[: job.size]


def ignores_jobs(nodes: np.ndarray, job: Job, state: Occupancy) -> np.ndarray:
    return np.flatnonzero(~state.closed)[: job.size] if (~state.closed).sum() >= job.size else nodes


def forgets_the_last_end(nodes: np.ndarray, job: Job, state: Occupancy) -> np.ndarray:
    return nodes[::-1] if len(state.running) > 1 and min(state.running) != next(iter(state.running)) else nodes


class Moody(First):
    """Answers otherwise at every second question."""

    name = "moody"
    asked = 0

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        self.asked += 1
        free = np.flatnonzero(state.busy == 0)
        return Placement(free[:: 1 if self.asked % 2 else -1][: job.size]) if job.size <= len(free) else None


class Hasty(First):
    """Marks nodes in the state as soon as it finds them."""

    name = "hasty"

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        found = super().place(job, state)
        if found is not None:
            state.busy[found.nodes] += 0 if len(state.running) < 2 else 1
        return found


class Optimist(First):
    name = "optimist"
    by_count = False

    def feasible(self, job: Job, state: Occupancy) -> bool:
        return job.size <= state.free + 1


class Pessimist(First):
    name = "pessimist"
    by_count = False

    def feasible(self, job: Job, state: Occupancy) -> bool:
        return job.size < state.free


class Claims(First):
    """Claims that counting suffices, but leaves one node free."""

    name = "claims"

    def feasible(self, job: Job, state: Occupancy) -> bool:
        return job.size < state.free

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        return super().place(job, state) if self.feasible(job, state) else None


class Fickle(Claims):
    """Finds nodes for some numbers of free ones only, and claims that an end takes away none."""

    name = "fickle"
    by_count = False

    def feasible(self, job: Job, state: Occupancy) -> bool:
        return job.size <= state.free and (job.size + state.free) % 3 != 0


class Raises(First):
    name = "raises"

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        return super().place(job, state) if len(state.running) < 3 else {}["x"]


class Lists(First):
    name = "lists"

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        found = super().place(job, state)
        return None if found is None else found.nodes


class Names(CountingAllocator):
    name = "names"

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        return First().place(job, state)


class Slots(SharingAllocator):
    """The allocator of slots, with one fault that a function adds to its placements."""

    name = "faulty"

    def __init__(self, change: Callable[[Placement, Job, SlotOccupancy], Placement]) -> None:
        self.change = change

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        assert isinstance(state, SlotOccupancy)
        found = super().place(job, state)
        return None if found is None else self.change(found, job, state)


def on_slots(change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]) -> Slots:
    def changed(found: Placement, job: Job, state: SlotOccupancy) -> Placement:
        if found.slots is None:
            return found
        nodes, slots = change(found.nodes, found.slots)
        return Placement(nodes, slots=slots)

    return Slots(changed)


class Intruder(SharingAllocator):
    """Gives whole nodes to jobs that share, which all other jobs may then share."""

    name = "intruder"

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        assert isinstance(state, SlotOccupancy)
        if job.slots and job.slots <= state.room.sum():
            return state.take_slots(np.flatnonzero(state.room), job.slots)
        return super().place(job, state)

    def feasible(self, job: Job, state: Occupancy) -> bool:
        return self.place(job, state) is not None


BROKEN = {
    "a node twice": (Whole(lambda nodes, *_: np.repeat(nodes[:1], len(nodes))), "expecting free slots, each once"),
    "a node of another job": (Whole(ignores_jobs), "expecting free slots, each once"),
    "a closed node": (Whole(ignores_closed), "expecting no closed node"),
    "one node fewer": (Whole(lambda nodes, *_: nodes[1:]), r"expecting (\d+) nodes, got \d"),
    "all nodes": (Whole(lambda nodes, job, state: np.flatnonzero(state.busy == 0)), r"expecting \d+ nodes, got \d"),
    "no node": (Whole(lambda nodes, *_: nodes + 100), "expecting nodes from 0 to"),
    "a real number": (Whole(lambda nodes, *_: nodes.astype(float)), "expecting nodes from 0 to"),
    "another answer": (Moody(), "expecting the same answer in the same state"),
    "an answer that depends on the order": (Whole(forgets_the_last_end), "expecting the same answer"),
    "a change of the state": (Hasty(), "expecting the state as it was before"),
    "feasible without nodes": (Optimist(), "expecting `feasible` and `place` to agree, got True and none"),
    "nodes that are not feasible": (Pessimist(), "expecting `feasible` and `place` to agree, got False and nodes"),
    "a wrong claim of by_count": (Claims(), "by_count: expecting nodes if and only if enough are free, got False"),
    "a wrong claim of monotone": (Fickle(), r"monotone: expecting a job that fits to fit after the end of job \d+"),
    "an error": (Raises(), "expecting nodes or none, got KeyError: 'x'"),
    "an array": (Lists(), "expecting a Placement or None, got ndarray"),
    "names although it counts": (Names(), "expecting nodes to be counted, got nodes"),
    "a slot twice": (on_slots(lambda nodes, slots: (nodes, slots * 0)), "expecting free slots, each once"),
    "a slot fewer": (on_slots(lambda nodes, slots: (nodes[1:], slots[1:])), r"expecting \d+ slots, got \d"),
    "no slot": (on_slots(lambda nodes, slots: (nodes, slots + 9)), "expecting a slot of its node for each node"),
    "a slot less than nodes": (on_slots(lambda nodes, slots: (nodes, slots[1:])), "expecting a slot of its node"),
    "a node of a job that does not share": (Intruder(), "expecting nodes without a job that does not share"),
}


@pytest.mark.parametrize("broken", list(BROKEN))
def test_an_allocator_that_breaks_one_promise_is_refused_for_it(broken):
    allocator, message = BROKEN[broken]
    with pytest.raises(AllocationError, match=f"^{allocator.name}: {message}") as refused:
        check_allocator(allocator)
    assert "nodes in leaves of [" in str(refused.value)
    assert str(refused.value).endswith("asks")


def test_a_counterexample_is_small_and_the_same_for_one_seed():
    said = []
    for _ in range(2):
        with pytest.raises(AllocationError) as refused:
            check_allocator(Whole(ignores_jobs), seed=3)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert said[0].count("holds") == 1  # one running job suffices
    with pytest.raises(AllocationError) as refused:
        check_allocator(Whole(ignores_closed))
    assert "are closed; no job runs; job" in str(refused.value)


class Pairs(SharingAllocator):
    name = "pairs"
    heeds = ("slots", "shared", "program")


def test_values_of_further_columns_come_from_the_caller():
    with pytest.raises(AllocationError, match="pairs: expecting values of the columns program, got none"):
        check_allocator(Pairs())
    assert check_allocator(Pairs(), values={"program": ["lu", "mg"]}) > 50


OWN = """
from topompi.machine.jobs import Backfill
from topompi.machine.jobs.allocation.oblivious import First as Mine
from topompi.machine.jobs.queueing.order import Order
from topompi.machine.jobs.speed import Faster

class Last(Mine):
    name = ""
    def _choose(self, size, state):
        return super()._choose(state.free, state)[-size:]

class Largest(Order):
    def keys(self, jobs, now):
        return -jobs.nodes

def half():
    return Faster(50, above=0)

def strict():
    return Backfill(0, "own:Largest")

def number():
    return 1

def fails():
    return {}["x"]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("own", None)


def workload():
    from topompi.machine.jobs import Workload

    return Workload.of("four", submit=[0, 1, 1, 1], run=[100, 10, 10, 10], nodes=[3, 1, 2, 4])


def test_policies_of_a_user_s_own_are_named_where_built_in_names_are(own):
    from topompi.machine.jobs import Cluster

    outcome = simulate(workload(), Cluster.regular(4, 4), "own:strict", "own:Last", "own:half")
    assert outcome.policy == ("own:Largest no overtaking", "own:Last", "faster:50")
    assert outcome.nodes_of(0).tolist() == [1, 2, 3]
    assert outcome.start.tolist() == [0, 55, 55, 50]  # the largest waiting job first, after the half of 100 s
    assert check_allocator("own:Last") > 50
    assert find_allocator("own:Last").name == "own:Last"


WRONG = """
import numpy as np
from topompi.machine.jobs.allocation import Allocator, Placement
from topompi.machine.jobs.speed import Speed

class Twice(Allocator):
    def place(self, job, state):
        return Placement(np.arange(job.size))

class Raises(Allocator):
    def place(self, job, state):
        return {}["x"]

class Late(Twice):
    def place(self, job, state):
        return [1] if state.running else super().place(job, state)

class Slow(Speed):
    def durations(self, workload):
        return workload["rack"]

class Fails(Speed):
    def durations(self, workload):
        return 1 / 0
"""
TAKEN = r"own:Twice: expecting free slots, each once, got nodes \[0\]; job 1 of 1 nodes at 1 s"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"allocator": "own:Twice"}, TAKEN),
        ({"allocator": "own:Raises"}, "own:Raises: KeyError: 'x'"),
        ({"allocator": "own:Late"}, "own:Late: AttributeError: 'list' object has no attribute 'nodes'"),
        ({"speed": "own:Slow"}, "four: expecting a column of number, .*, got 'rack'"),
        ({"speed": "own:Fails", "allocator": "first"}, "own:Fails: ZeroDivisionError"),
    ],
)
def test_what_a_policy_of_a_user_s_own_does_wrong_is_one_error_under_its_name(own, tmp_path, policy, message):
    from topompi.machine.jobs import Cluster, JobsError

    (tmp_path / "own.py").write_text(WRONG)
    with pytest.raises((AllocationError, JobsError, WorkloadError), match=f"^{message}"):
        simulate(workload(), Cluster.regular(4, 4), **policy)


@pytest.mark.parametrize("allocator", ["first", "leaf-exclusive", "blocks", "shared"])
def test_an_allocator_of_ours_passes_the_check_of_every_start(allocator):
    from tests.workloads import random_workload
    from topompi.machine.jobs import Cluster, NodeStates, PlacementCheck

    cluster = Cluster.regular(24, 4, 3).with_slots(2)
    jobs = random_workload(3, 80, 20)
    jobs = jobs.with_columns(slots=2 * jobs.nodes - 1, shared=jobs.number % 2 == 0)
    states = NodeStates.of(cluster, [(100, "drained", [3, 4]), (300, "down", [4, 9]), (600, "up", [3, 4])])
    watch = PlacementCheck(cluster, find_allocator(allocator))
    assert len(simulate(jobs, cluster, "easy", allocator, observers=[watch], node_states=states).ran) > 60


@pytest.mark.parametrize("kind", ["allocator", "speed", "queue"])
def test_what_is_wrong_with_a_user_s_function_is_one_line(own, kind):
    from topompi.machine.jobs import Cluster, JobsError

    what = {"allocator": "Allocator", "speed": "Speed", "queue": "Queue"}[kind]
    wrong = {
        "own:number": f"own:number: expecting a function that makes one {what}, got int",
        "own:fails": "own:fails: KeyError: 'x'",
        "own:nothing": "own:nothing: expecting a function 'nothing' in own, got none",
        "nowhere:x": "nowhere:x: expecting module:function, such as mine:ring",
        "neither nor": f"{kind}: expecting .* or a module:function, got 'neither nor'",
    }
    for name, message in wrong.items():
        with pytest.raises((AllocationError, JobsError), match=message):
            simulate(workload(), Cluster.regular(4, 4), **{kind: name})
