"""The neighbours of jobs in a schedule, against a count second by second, and the work that follows from them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given

from tests.colocation.scheduling.drawn import NAMES, drawn_halves, drawn_jobs, drawn_table, seeds, table_of
from tests.support import examples
from topompi.machine.colocation.prices.worth import NOBODY, OWN
from topompi.machine.colocation.scheduling.allocators import Halves, Matched
from topompi.machine.colocation.scheduling.halves import on_halves
from topompi.machine.colocation.scheduling.neighbours import intervals_of
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.colocation.scheduling.table import ALONE, ITSELF, RateTable, program_numbers
from topompi.machine.jobs import Cluster, Outcome, Workload, simulate


def second_by_second(outcome: Outcome, table: RateTable) -> list[tuple[int, int, int, float]]:
    """Job, second, neighbour that slows it most, and share of its speed, by the owners of all halves in each second."""
    jobs, rows = outcome.workload, list[tuple[int, int, int, float]]()
    program = program_numbers(jobs, table.programs)
    for second in range(int(outcome.end.max(initial=0))):
        running = [job for job in outcome.ran.tolist() if outcome.start[job] <= second < outcome.end[job]]
        shared = [job for job in running if outcome.slots_of(job) is not None]
        owner = {half: job for job in shared for half in outcome.resources_of(job).tolist()}
        rows += [(job, second, OWN, 1.0) for job in running if job not in shared]
        for job in shared:
            beside = [owner.get(half ^ 1, NOBODY) for half in outcome.resources_of(job).tolist()]
            rate = {NOBODY: ALONE, job: ITSELF}
            speeds = [
                (table.rates[program[job], rate.get(one, program[one])], OWN if one == job else one) for one in beside
            ]
            solo = min(table.rates[program[job], ITSELF if one == job else ALONE] for one in beside)
            speed, slowest = min(speeds)
            rows.append((job, second, slowest, speed / solo))
    return sorted(rows)


@given(seeds)
@examples(60)
def test_intervals_have_the_slowest_neighbour_of_each_second_and_no_two_in_a_row_are_equal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 7))
    jobs, truth = drawn_halves(rng, 25, nodes), drawn_table(rng)
    jobs = replace(jobs, run=np.where(rng.random(25) < 0.1, 0, jobs.run))
    if rng.random() < 0.3:  # equal rates, so that numbers decide
        truth = table_of(1.0)
    cluster = Cluster.regular(nodes, 2).with_slots(2)
    for allocator in (Halves(), Matched(truth), "first"):
        outcome = simulate(jobs, cluster, "easy", allocator, ColocatedSpeed(truth))
        found = intervals_of(outcome, truth)
        columns = (found.job, found.partner, found.start.astype(int), found.end.astype(int), found.share)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        every = [(job, at, beside, share) for job, beside, start, end, share in rows for at in range(start, end)]
        assert sorted(every) == second_by_second(outcome, truth)
        assert not any(one[:2] == next_[:2] and one[3] == next_[2] for one, next_ in pairwise(rows))


@given(seeds)
@examples(60)
def test_rates_times_intervals_are_the_work_of_each_job(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, truth = int(rng.integers(1, 9)), drawn_table(rng)
    jobs = on_halves(drawn_jobs(rng, 40, nodes), NAMES, seed=seed, stretch=1 / truth.slowest)
    program = program_numbers(jobs, NAMES)
    outcome = simulate(jobs, Cluster.regular(nodes, 2).with_slots(2), "easy", Halves(), ColocatedSpeed(truth))
    found = intervals_of(outcome, truth)
    column = np.where(found.partner == NOBODY, ALONE, np.where(found.partner == OWN, ITSELF, program[found.partner]))
    done = np.bincount(found.job, truth.rates[program[found.job], column] * (found.end - found.start), len(jobs))
    # Ends are whole seconds, rounded up, and the last second's rate is at most the largest.
    assert (done >= jobs.duration - 1e-6).all()
    assert (done < jobs.duration + truth.rates.max()).all()


def test_a_workload_without_jobs_has_no_intervals() -> None:
    none = on_halves(Workload.of("none", submit=[], run=[], nodes=[]), NAMES)
    outcome = simulate(none, Cluster.regular(2, 2).with_slots(2), "easy", Halves(), ColocatedSpeed(table_of(1.0)))
    assert len(intervals_of(outcome, table_of(1.0))) == 0
