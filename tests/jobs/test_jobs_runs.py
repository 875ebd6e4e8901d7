"""A simulation depends on its arguments alone: nothing of one run is left for the next."""

import pickle
import re
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from studies.coscheduling2025.measured import Measured, Measurements
from tests.colocation.scheduling.drawn import NAMES, drawn_halves, table_of
from tests.support import ROOT, examples
from topompi.errors import TopompiError
from topompi.machine.colocation.scheduling.registered import table_of_file
from topompi.machine.jobs import (
    ALLOCATORS,
    ORDERS,
    QUEUES,
    Backfill,
    Cluster,
    JobsError,
    Observer,
    Outcome,
    Workload,
    simulate,
)
from topompi.machine.jobs.allocation import MADE_FROM, find_allocator
from topompi.machine.jobs.allocation.oblivious import First
from topompi.machine.jobs.queueing import Order, Situation, find_order
from topompi.machine.jobs.speed import SPEEDS, Speed, find_speed
from topompi.topology import load
from topompi.views.cluster import cluster_of

FILES = ("matched", "isolated-matched", "colocated")
LEARNS = "measured"
RATES = np.random.default_rng(1).uniform(0.5, 1.6, (len(NAMES),) * 2).round(2)


@cache
def machine(source: str) -> Cluster:
    return cluster_of(load(source).routes).with_slots(2)


@cache
def drawn(seed: int) -> Workload:
    jobs = drawn_halves(np.random.default_rng(seed), 10, 12)
    return replace(jobs, user=jobs.number % 3)


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("heat") / "heat.csv"
    write(path, RATES)
    return path


def write(path: Path, rates: np.ndarray[Any, Any]) -> None:
    rows = [",".join((name, *map(str, row))) for name, row in zip(NAMES, rates.tolist(), strict=True)]
    path.write_text("\n".join((",".join(("", *NAMES)), *rows)) + "\n")


def named(name: str, heat: Path) -> str:
    return f"{name}:{heat}" if name in FILES else name


def facts(outcome: Outcome) -> list[Any]:
    slots = None if outcome.slots is None else outcome.slots.tolist()
    return [outcome.policy, outcome.start.tolist(), outcome.end.tolist(), outcome.nodes.tolist(), slots]


def ran(jobs: Workload, cluster: Cluster, *policies: Any, observers: list[Observer] | None = None) -> object:
    """The outcome, or the error, of one run; a scheduler that learns is watched by an observer of its own."""
    watch = list(observers or [])
    if isinstance(policies[1], Measured):
        watch.append(Measurements(lambda a, b: float(RATES[NAMES.index(a), NAMES.index(b)]), 1))
    try:
        return facts(simulate(jobs, cluster, *policies, watch))
    except TopompiError as error:
        return str(error)


class Interleaved(Observer):
    """Runs another simulation by the same policies in the middle of this one."""

    def __init__(self, other: Callable[[], object]) -> None:
        self._other, self._passes = other, 0

    def passed(self, situation: Situation) -> None:
        self._passes += 1
        if self._passes == 6:
            self._other()


@given(
    queue=st.sampled_from([None, *(name for name in QUEUES if name == "filler")]),
    depth=st.sampled_from([0, 1, 2, None]),
    order=st.sampled_from(list(ORDERS)),
    allocator=st.sampled_from([*ALLOCATORS, *MADE_FROM, LEARNS]),
    speed=st.sampled_from(
        [{"faster": "faster:10", "shared": "shared:20"}.get(one, one) for one in SPEEDS] + ["links&colocated"]
    ),
    seeds=st.tuples(*[st.integers(0, 30)] * 2),
    copied=st.sampled_from([copy, deepcopy, lambda one: pickle.loads(pickle.dumps(one))]),
)
@example(queue=None, depth=1, order="multifactor", allocator="first", speed="as-logged", seeds=(3, 5), copied=copy)
@example(queue=None, depth=1, order="fcfs", allocator=LEARNS, speed="colocated", seeds=(3, 5), copied=copy)
@example(queue=None, depth=0, order="fcfs", allocator="counts", speed="colocated", seeds=(0, 0), copied=copy)
@examples(120)
def test_runs_by_the_same_policies_are_equal_again_in_copies_and_interleaved(
    heat: Path,
    queue: str | None,
    depth: int | None,
    order: str,
    allocator: str,
    speed: str,
    seeds: tuple[int, int],
    copied: Callable[[Any], Any],
) -> None:
    jobs, others = map(drawn, seeds)
    small, large = machine("xgft:4,3;1,2"), machine("xgft:4,2,2;1,2,2")

    def made() -> tuple[Any, ...]:
        place = Measured(table_of(1.0)) if allocator == LEARNS else find_allocator(named(allocator, heat))
        rates = "&".join(named(part, heat) for part in speed.split("&"))
        return QUEUES[queue] if queue else Backfill(depth, find_order(order)), place, find_speed(rates)

    expected, used = ran(jobs, small, *made()), made()
    ran(others, large, *used)
    assert ran(jobs, small, *used) == expected
    watch = Interleaved(lambda: ran(others, small, *used))
    assert ran(jobs, small, *used, observers=[watch]) == expected
    assert ran(jobs, small, *map(copied, used)) == expected


class Remembers:
    """Policies of a user's own that change after their third call."""

    calls = 0

    def later(self) -> bool:
        self.calls += 1
        return self.calls > 3


class OwnOrder(Order, Remembers):
    name, fixed = "own", False

    def keys(self, jobs: Workload, now: int) -> Any:
        return -jobs.submit if self.later() else jobs.submit


class OwnAllocator(First, Remembers):
    def _choose(self, size: int, state: Any) -> Any:
        return np.flatnonzero(state.busy == 0)[:: -1 if self.later() else 1][:size]


class OwnSpeed(Speed, Remembers):
    name = "own"

    def durations(self, workload: Workload) -> Any:
        return workload.duration * (1 + self.later())


class OwnQueue(Remembers):
    name, order = "own", "fcfs"

    def start_jobs(self, situation: Situation) -> None:
        if self.later():
            Backfill().start_jobs(situation)


@pytest.mark.parametrize(
    "policies",
    [
        (Backfill(1, OwnOrder()), "first", "as-logged"),
        (None, OwnAllocator(), "as-logged"),
        (None, "first", OwnSpeed()),
        (OwnQueue(), "first", "as-logged"),
    ],
    ids=["order", "allocator", "speed", "queue"],
)
def test_what_a_policy_of_a_user_s_own_remembers_ends_with_the_run(policies: tuple[Any, ...]) -> None:
    jobs, cluster = drawn(3), machine("xgft:4,3;1,2")
    found = [ran(jobs, cluster, *policies) for _ in range(4)]
    assert found[1:] == found[:1] * 3


def test_a_policy_that_cannot_be_copied_is_refused_by_its_name(tmp_path: Path) -> None:
    policy = OwnAllocator()
    expected = pytest.raises(JobsError, match=r"expecting a policy that can be copied, .*, got OwnAllocator")
    with (tmp_path / "log").open("w") as policy.log, expected:  # type: ignore[attr-defined]
        simulate(drawn(3), machine("xgft:4,3;1,2"), None, policy)


def test_a_file_of_speed_ups_that_changes_between_runs_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "heat.csv"
    for rates in (RATES, RATES[::-1]):
        write(path, rates)
        assert (table_of_file(str(path)).rates[:, : len(NAMES)] == rates).all()


def test_routes_are_found_once_for_a_cluster_and_kept_by_it_alone() -> None:
    cluster, made = machine("xgft:4,3;1,2"), list[Cluster]()
    for _ in range(2):
        cluster.derived(made.append)
    assert made == [cluster]
    for name in ("disjoint", "exact", "apart"):
        policy = find_allocator(name)
        before = dict(vars(policy))
        simulate(drawn(3), cluster, None, policy)
        assert vars(policy) == before


def test_no_module_changes_at_its_import_what_it_has_imported() -> None:
    """A policy's name would otherwise depend on what else has been imported."""
    found = list[str]()
    for path in sorted((*ROOT.glob("topompi/**/*.py"), *ROOT.glob("studies/**/*.py"))):
        text = path.read_text(encoding="utf-8")
        changed = re.findall(
            r"^(\w+)(?:\[.*\] =|\.(?:update|append|add|extend|setdefault|insert)\(|\.\w+ = )", text, re.M
        )
        imports = set(re.findall(r"\w+", " ".join(re.findall(r"^from .*? import (\([^)]*\)|.*)", text, re.M))))
        found += [f"{path}: {name}" for name in changed if name in imports]
    assert not found
