"""A scheduler that learns from measured rates separates bad pairs, and breaks no promise by what it learns."""

import numpy as np
from hypothesis import example, given

from studies.coscheduling2025.measured import Measured, Measurements
from studies.coscheduling2025.measures import improvement, job_speedups, pair_figures
from tests.colocation.scheduling.drawn import drawn_halves, drawn_table, seeds, table_of
from tests.support import examples
from topompi.machine.colocation.scheduling.allocators import Halves
from topompi.machine.colocation.scheduling.halves import on_halves
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.colocation.scheduling.table import RateTable
from topompi.machine.jobs import Cluster, Observer, Promises, Workload, simulate
from topompi.machine.jobs.speed import find_speed


def learning(truth: RateTable, seen: RateTable, window: int = 60) -> tuple[Measured, Measurements]:
    allocator, number = Measured(seen), {name: at for at, name in enumerate(truth.programs)}
    return allocator, Measurements(lambda a, b: float(truth.rates[number[a], number[b]]), window)


def test_a_bad_pair_runs_once_and_is_then_separated() -> None:
    names = ("a", "b")
    truth, seen = table_of([[1.0, 0.5], [0.5, 1.0]], names), table_of(1.2, names)
    programs = ["a", "b", "a", "b"]
    made = Workload.of("mine", submit=[0, 0, 900, 900], run=[400] * 4, nodes=[1] * 4, columns={"program": programs})
    allocator, observer = learning(truth, seen)
    cluster = Cluster.regular(4, 4).with_slots(2)
    outcome = simulate(on_halves(made, names), cluster, "easy", allocator, ColocatedSpeed(truth), [observer])
    held = [set(outcome.nodes_of(job).tolist()) for job in range(4)]
    assert held[0] == held[1]
    assert not held[2] & held[3]
    assert observer.learned is not None
    assert observer.learned.table.rates[0, 1] == 0.5
    assert seen.rates[0, 1] == 1.2  # the prediction stays as it was


def test_a_pair_that_met_for_less_than_the_window_is_not_measured() -> None:
    names = ("a", "b")
    made = Workload.of("mine", submit=[0, 0], run=[30, 400], nodes=[1, 1], columns={"program": list(names)})
    truth = table_of(1.0, names)
    allocator, observer = learning(truth, table_of(1.2, names))
    cluster = Cluster.regular(2, 2).with_slots(2)
    simulate(on_halves(made, names), cluster, "easy", allocator, ColocatedSpeed(truth), [observer])
    assert observer.learned is not None
    assert not observer.learned.seen.any()


def test_the_window_begins_when_the_later_of_two_jobs_starts() -> None:
    names = ("a", "b")
    made = Workload.of("mine", submit=[0, 370], run=[400, 400], nodes=[1, 1], columns={"program": list(names)})
    truth = table_of(1.0, names)
    for window, met in ((31, False), (30, True)):
        allocator, observer = learning(truth, table_of(1.2, names), window)
        cluster = Cluster.regular(2, 2).with_slots(2)
        outcome = simulate(on_halves(made, names), cluster, "easy", allocator, ColocatedSpeed(truth), [observer])
        assert outcome.end[0] == 400
        assert observer.learned is not None
        assert observer.learned.seen.tolist() == [[False, met], [met, False]]


def test_doubtful_pairs_are_tried_once_and_each_cell_is_measured_once() -> None:
    names, asked = ("a", "b"), list[tuple[str, str]]()
    programs = ["a", "b"] * 3
    submit = [0, 0, 900, 900, 1800, 1800]
    made = Workload.of("mine", submit=submit, run=[400] * 6, nodes=[1] * 6, columns={"program": programs})
    truth = table_of([[1.0, 1.1], [1.1, 1.0]], names)
    allocator = Measured(table_of(0.85, names))  # below the threshold of 0.9, and with the margin above it

    def rate(one: str, other: str) -> float:
        asked.append((one, other))
        return 1.1

    cluster = Cluster.regular(2, 2).with_slots(2)
    observer = Measurements(rate)
    outcome = simulate(on_halves(made, names), cluster, "easy", allocator, ColocatedSpeed(truth), [observer])
    assert [outcome.nodes_of(job).tolist() for job in (0, 1)] == [[0, 1], [0, 1]]
    assert sorted(asked) == [("a", "b"), ("b", "a")]


@given(seeds)
@example(19)  # breaks a promise if the halves that were found for the head are not kept
@examples(60)
def test_no_promise_is_broken_by_learning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, truth, wrong = drawn_halves(rng, 40, 3), drawn_table(rng), drawn_table(rng)
    allocator, observer = learning(truth, wrong, window=5)
    watch = Promises()
    observers: list[Observer] = [observer, watch]
    simulate(jobs, Cluster.regular(3, 3).with_slots(2), "easy", allocator, ColocatedSpeed(truth), observers)
    assert not watch.broken


def test_figures_of_a_schedule_follow_from_its_starts_and_ends() -> None:
    names = ("a", "b")
    truth = table_of([[1.0, 2.0], [0.5, 1.0]], names)
    made = Workload.of("mine", submit=[0, 0], run=[100, 100], nodes=[1, 1], columns={"program": list(names)})
    cluster = Cluster.regular(2, 2).with_slots(2)
    jobs = on_halves(made, names)
    outcome = simulate(jobs, cluster, "easy", Measured(truth, 0.1), ColocatedSpeed(truth))
    # a at 2.0 ends at 50 s, b at 0.5 until then, and at 1.0 for the 75 s that are left
    assert outcome.end.tolist() == [50, 125]
    assert job_speedups(outcome).tolist() == [2.0, 0.8]
    found = pair_figures(outcome)
    assert (found.speedup, found.slowed, found.turnaround) == (1.4, 0.5, 87.5)
    assert found.weighted == (2.0 * 50 + 0.8 * 125) / 175
    whole = simulate(made, Cluster.regular(1, 1), "easy", "counts")
    assert improvement(outcome, whole) == 200 / 125 - 1


def test_a_pair_of_models_multiplies_their_rates() -> None:
    jobs = Workload.of("mine", submit=[0, 1], run=[100, 100], nodes=[3, 3])
    cluster = Cluster.regular(8, 2)
    both = simulate(jobs, cluster, "easy", "first", find_speed("shared:50&shared:100"))
    assert both.end[0] == 1 + 3 * 99  # at a third of the speed from second 1 on


def test_figures_leave_out_jobs_of_no_time_and_count_those_ended_at_their_request() -> None:
    names = ("a",)
    truth = table_of([[0.5]], names)
    columns = {"program": ["a"] * 4}
    made = Workload.of("mine", submit=[0] * 4, run=[100, 100, 0, 10], nodes=[1] * 4, request=[150, 150, 0, 30])
    jobs = on_halves(made.with_columns(**{name: np.array(one, object) for name, one in columns.items()}), names)
    outcome = simulate(jobs, Cluster.regular(2, 2).with_slots(2), "easy", Halves(), ColocatedSpeed(truth))
    # Two jobs run at 0.5 beside each other and are ended at 150 s; the last one starts then, alone at 0.5.
    assert outcome.end.tolist() == [150, 150, 150, 170]
    found = pair_figures(outcome)
    assert found.ended == 2 / 3
    assert found.slowed == 1.0
    assert found.turnaround == (150 + 150 + 170) / 3
    assert found.steady_use == 1.0  # while jobs waited, both nodes were full
    # A job that its own log ends at the request is not counted, though it is slowed.
    logged = on_halves(Workload.of("mine", submit=[0], run=[40], nodes=[1], request=[30]), names)
    outcome = simulate(logged, Cluster.regular(2, 2).with_slots(2), "easy", Halves(), ColocatedSpeed(truth))
    assert (outcome.end.tolist(), pair_figures(outcome).ended) == ([30], 0.0)
