"""Jobs on half nodes: rates by the neighbours, equality with whole nodes, and promises that no wrong matrix breaks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.colocation.scheduling.drawn import NAMES, drawn_halves, drawn_jobs, drawn_table, seeds, table_of
from tests.support import examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.scheduling.allocators import Halves, Matched
from topompi.machine.colocation.scheduling.halves import halves_of, nodes_of, on_halves
from topompi.machine.colocation.scheduling.isolating import IsolatedHalves, IsolatedMatched
from topompi.machine.colocation.scheduling.preferences import REFUSED, favoured
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.jobs import Backfill, Cluster, IsolationCheck, Promises, Workload, check_allocator, simulate
from topompi.machine.jobs.queueing.backfill import Filler

PAIR = table_of([[0.8, 1.5], [0.5, 1.0]], ("a", "b"))


def jobs_of(submit: list[int], run: list[int], nodes: list[int], programs: list[str], **more: object) -> Workload:
    made = Workload.of("mine", submit=submit, run=run, nodes=nodes, columns={"program": programs, **more})
    return on_halves(made, PAIR.programs)


def ends(jobs: Workload, nodes: int, allocator: Halves, queue: str = "easy") -> list[int]:
    cluster = Cluster.regular(nodes, nodes).with_slots(2)
    return simulate(jobs, cluster, queue, allocator, ColocatedSpeed(PAIR)).end.tolist()


def test_rates_change_at_each_start_and_end_of_a_neighbour() -> None:
    # a runs at 1.5 for 100 s, then beside b at 1.5, b at 0.5 until a ends at 200 s, then b alone at 1.0
    jobs = jobs_of([0, 100], [300, 100], [1, 1], ["a", "b"])
    assert ends(jobs, 2, Halves()) == [200, 250]


def test_a_job_that_does_not_share_runs_alone_as_logged() -> None:
    jobs = jobs_of([0, 0], [100, 100], [1, 1], ["a", "b"], shared=[False, True])
    assert ends(jobs, 3, Halves()) == [100, 100]


def test_processes_are_rounded_to_whole_and_half_nodes_as_by_the_source() -> None:
    processes = [256, 1024, 64]
    assert nodes_of(processes, 20).tolist() == [13, 52, 4]
    assert halves_of(processes, 20).tolist() == [26, 103, 7]
    assert (nodes_of([256], 48).tolist(), halves_of([256], 48).tolist()) == ([6], [11])


def test_requests_are_stretched_and_run_times_cut_at_the_request_first() -> None:
    made = Workload.of("mine", submit=[0, 0], run=[100, 7], nodes=[1, 1], request=[50, 10])
    jobs = on_halves(made, NAMES, stretch=1.25)
    assert (jobs.run.tolist(), jobs.request.tolist()) == ([50, 7], [63, 13])


def test_matched_takes_the_best_neighbours_and_refuses_slow_pairs() -> None:
    table = table_of([[1.0, 1.2, 0.7], [1.1, 1.0, 1.0], [1.3, 1.0, 1.0]], ("a", "b", "c"))
    jobs = Workload.of("mine", submit=[0, 1, 2], run=[99] * 3, nodes=[1] * 3, columns={"program": ["c", "b", "a"]})
    cluster = Cluster.regular(4, 4).with_slots(2)
    outcome = simulate(on_halves(jobs, table.programs), cluster, "easy", Matched(table), ColocatedSpeed(table))
    # c gets empty nodes; b goes beside it, at 1.0 each; a, which c's rows refuse, finds no free half there
    assert [outcome.nodes_of(job).tolist() for job in range(3)] == [[0, 1], [0, 1], [2, 3]]


@given(seeds)
@examples(90)
def test_with_rates_of_1_half_nodes_equal_easy_on_twice_as_many_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 9))
    jobs, table = drawn_jobs(rng, 40, nodes), table_of(1.0)
    depth = int(rng.integers(0, 2))
    doubled = simulate(
        replace(jobs, nodes=2 * jobs.nodes), Cluster.regular(2 * nodes, nodes), Backfill(depth), "counts"
    )
    cluster, halves = Cluster.regular(nodes, 2).with_slots(2), on_halves(jobs, NAMES, seed=seed)
    for allocator in (Halves(), Matched(table), Matched(table, 0.5)):
        paired = simulate(halves, cluster, Backfill(depth), allocator, ColocatedSpeed(table))
        assert paired.start.tolist() == doubled.start.tolist()
        assert paired.end.tolist() == doubled.end.tolist()


@given(seeds)
@examples(90)
def test_no_head_waits_longer_than_promised_however_wrong_the_matrix_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 9))
    jobs, truth, wrong = drawn_halves(rng, 40, nodes), drawn_table(rng), drawn_table(rng)
    cluster = Cluster.regular(nodes, 2).with_slots(2)
    for allocator in (Halves(), Matched(wrong, 0.9), Matched(wrong, 1.2)):
        watch = Promises()
        simulate(jobs, cluster, Backfill(1), allocator, ColocatedSpeed(truth), [watch])
        assert not watch.broken


@given(seeds)
@examples(60)
def test_every_job_ends_no_later_than_at_the_slowest_rate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, truth = drawn_halves(rng, 40, 5), drawn_table(rng)
    outcome = simulate(jobs, Cluster.regular(5, 2).with_slots(2), "easy", Halves(), ColocatedSpeed(truth))
    ran = outcome.end - outcome.start
    assert (ran <= np.ceil(jobs.run / truth.slowest)).all()
    assert (ran >= np.floor(jobs.duration / truth.rates.max())).all()


@pytest.mark.parametrize("allocator", [Halves(), Matched(PAIR), IsolatedHalves(), IsolatedMatched(PAIR)])
def test_the_allocators_of_halves_keep_the_contract_of_allocators(allocator: Halves) -> None:
    values = {"program": ("a", "b")} if "program" in allocator.heeds else None
    assert check_allocator(allocator, states=300, values=values) > 30


def test_filler_equals_easy_if_all_jobs_have_one_size() -> None:
    rng = np.random.default_rng(3)
    jobs = drawn_jobs(rng, 60, 6)
    jobs = on_halves(replace(jobs, nodes=np.full_like(jobs.nodes, 2)), NAMES)
    cluster, table = Cluster.regular(6, 3).with_slots(2), drawn_table(rng)
    found = [simulate(jobs, cluster, queue, Halves(), ColocatedSpeed(table)) for queue in ("easy", Filler())]
    assert found[0].start.tolist() == found[1].start.tolist()


def test_filler_starts_the_largest_job_that_fits() -> None:
    jobs = on_halves(Workload.of("mine", submit=[0, 1, 1, 1], run=[9] * 4, nodes=[2, 2, 1, 2]), NAMES)
    outcome = simulate(jobs, Cluster.regular(4, 4).with_slots(2), Filler(), Halves(), ColocatedSpeed(table_of(1.0)))
    assert outcome.start.tolist() == [0, 1, 10, 9]


def test_wrong_programs_and_slots_are_errors_that_name_the_job() -> None:
    jobs = on_halves(Workload.of("mine", submit=[0], run=[9], nodes=[1], number=[17]), ("x",))
    cluster = Cluster.regular(2, 2)
    speed = ColocatedSpeed(PAIR)
    assert "job 17" in refusal(simulate, jobs, cluster.with_slots(2), "easy", Halves(), speed, error=ColocationError)
    known = on_halves(jobs, PAIR.programs)
    assert "2 slots" in refusal(simulate, known, cluster.with_slots(4), "easy", Halves(), speed, error=ColocationError)


# --- Jobs that share nodes and are isolated on the network.


@given(seeds)
@examples(60)
def test_no_two_jobs_share_a_link_though_they_share_nodes_and_promises_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, truth, wrong = drawn_halves(rng, 40, 12), drawn_table(rng), drawn_table(rng)
    cluster = Cluster.regular(12, 2, 3).with_slots(2)
    for allocator in (IsolatedHalves(), IsolatedMatched(wrong)):
        watch, isolation = Promises(), IsolationCheck()
        outcome = simulate(jobs, cluster, "easy", allocator, ColocatedSpeed(truth), [watch, isolation])
        assert not watch.broken
        assert not any(conflicts.pairs for _, conflicts in isolation.found)
        assert not len(outcome.rejected)


def test_two_jobs_of_one_leaf_share_its_nodes() -> None:
    rng = np.random.default_rng(0)
    jobs = on_halves(drawn_jobs(rng, 60, 4), NAMES)
    cluster = Cluster.regular(12, 4, 3).with_slots(2)
    outcome = simulate(jobs, cluster, "easy", IsolatedHalves(), ColocatedSpeed(table_of(1.0)))
    shared = outcome.slots is not None and (outcome.slots >= 0).all()
    assert shared
    together = [
        np.intersect1d(outcome.nodes_of(a), outcome.nodes_of(b)).size
        for a in range(60)
        for b in range(a)
        if outcome.start[b] <= outcome.start[a] < outcome.end[b]
    ]
    assert max(together) > 0


# --- The order in which programs take neighbours, against the rule cell by cell.


@given(seeds, st.sampled_from([0.5, 0.9, 1.0, 1.1]))
@examples(60)
def test_slow_pairs_are_refused_and_the_others_ordered_by_what_both_get_done(seed: int, threshold: float) -> None:
    table = drawn_table(np.random.default_rng(seed))
    found = favoured(table, threshold)
    assert found.numbers == {name: at for at, name in enumerate(NAMES)}
    for one in range(len(NAMES)):
        rank, worth, good = found.rank[one + 1], dict[int, float](), list[bool]()
        for other in range(len(NAMES)):
            rates = table.rates[one, other], table.rates[other, one]
            assert (rank[other + 1] == REFUSED) == (min(rates) < threshold)
            if rank[other + 1] != REFUSED:
                worth[other] = sum(rates) / 2
                good.append(worth[other] >= 1)
                assert (rank[other + 1] < found.last[one + 1]) == good[-1]
        by_rank = sorted(worth, key=lambda other: rank[other + 1])
        assert all(worth[a] >= worth[b] for a, b in pairwise(by_rank))
        assert found.spread[one + 1] == any(good)
