"""Many jobs on one machine: numbers of real logs, and the guarantees of every queue."""

from functools import cache

import numpy as np
import pytest

from tests.support import shared_data
from tests.workloads import random_workload
from topompi.machine.jobs import (
    ALLOCATORS,
    Backfill,
    Cluster,
    IsolationCheck,
    Outcome,
    Promises,
    Workload,
    read_swf,
    simulate,
)
from topompi.machine.jobs.allocation import Allocator, Job, Occupancy, Placement
from topompi.machine.jobs.queueing.order import Multifactor

NAMED = [name for name in ALLOCATORS if name != "counts"]
ISOLATING = ("exclusive", "isolated", "disjoint", "exact")
SDSC, CTC, THUNDER = ("SDSC-SP2-1998-4.2", 1), ("CTC-SP2-1996-3.1", 1), ("LLNL-Thunder-2007-1.1", 4)
GOLDEN = [  # log, depth, allocator; makespan, mean wait, longest wait, mean bounded slowdown, sum of starts
    (SDSC, 0, "counts", (68_412_579, "1536541.854", 5_481_706, "13900.353", 1_577_125_548_153)),
    (SDSC, 1, "counts", (63_025_323, "20572.497", 459_740, "88.532", 1_495_196_500_215)),
    (SDSC, None, "counts", (63_046_547, "24337.855", 434_256, "101.967", 1_495_399_995_215)),
    (CTC, 1, "counts", (29_306_682, "13943.129", 303_954, "49.246", 1_117_337_330_383)),
    (CTC, None, "counts", (29_306_682, "21907.072", 308_002, "65.311", 1_117_952_321_949)),
    (THUNDER, 0, "counts", (12_976_994, "14822.065", 119_059, "469.403", 746_415_383_481)),
    (THUNDER, 1, "counts", (12_976_994, "333.831", 117_757, "4.965", 744_694_311_745)),
    (THUNDER, None, "counts", (12_976_994, "1233.879", 115_412, "34.193", 744_801_229_281)),
    (THUNDER, 1, "isolated", (13_155_517, "4494.075", 271_370, "46.496", 745_188_511_256)),
]
# The long queues of the second take conservative backfilling, which plans all of them at each pass, minutes.
SLOW = {(SDSC, 1, "counts"): (), (CTC, None, "counts"): pytest.mark.exhaustive}
NODES = {SDSC: Cluster.regular(128, 128), CTC: Cluster.regular(338, 338), THUNDER: Cluster.regular(1002, 18, 18)}


def figures(outcome: Outcome) -> tuple[int, str, int, str, int]:
    jobs = outcome.workload
    run = outcome.end - outcome.start
    wait = outcome.start - jobs.submit
    slow = np.maximum(1, (wait + run) / np.maximum(run, 10))
    makespan = int(outcome.end.max() - jobs.submit.min())
    return makespan, f"{wait.mean():.3f}", int(wait.max()), f"{slow.mean():.3f}", int(outcome.start.sum())


@cache
def log_of(log: tuple[str, int]) -> Workload:
    return read_swf(shared_data(f"workloads/{log[0]}-cln.swf.gz"), log[1])


@pytest.mark.parametrize(
    ("log", "depth", "allocator", "expected"),
    [pytest.param(*row, marks=SLOW.get(row[:3], pytest.mark.long)) for row in GOLDEN],
)
def test_real_logs_give_the_reference_figures_to_the_last_digit(log, depth, allocator, expected):
    assert figures(simulate(log_of(log), NODES[log], Backfill(depth), allocator)) == expected


@pytest.mark.parametrize("allocator", NAMED)
def test_on_one_leaf_every_allocator_equals_counting_with_easy(allocator):
    jobs, cluster = random_workload(7, 200, 16), Cluster.regular(16, 16)
    assert (simulate(jobs, cluster, allocator=allocator).start == simulate(jobs, cluster).start).all()


def naive_plan(jobs: Workload, nodes: int) -> list[int]:
    """Conservative backfilling on one number of free nodes for each second."""
    duration, estimate = jobs.duration.tolist(), jobs.estimate.tolist()
    start: dict[int, int] = {}
    ended: set[int] = set()
    instants = set(jobs.submit.tolist())
    horizon = int(jobs.submit.max()) + sum(estimate) + len(jobs) + 2
    while instants:
        now = min(instants)
        ended |= {job for job in start if start[job] + duration[job] == now}
        free = np.full(horizon, nodes)
        for job in start.keys() - ended:
            free[now : max(start[job] + estimate[job], now + 1)] -= jobs.nodes[job]
        again = False
        for job in range(len(jobs)):
            if job in start or jobs.submit[job] > now:
                continue
            length = max(1, estimate[job])
            at = next(at for at in range(now, horizon) if free[at : at + length].min() >= jobs.nodes[job])
            free[at : at + length] -= jobs.nodes[job]
            if at == now:
                start[job] = now
                instants.add(now + duration[job])
                again = again or duration[job] == 0
        if not again:  # jobs of no time end in a further pass of their instant
            instants.discard(now)
    return [start[job] for job in range(len(jobs))]


@pytest.mark.parametrize("base", [0, pytest.param(50, marks=pytest.mark.long)])
def test_conservative_equals_a_naive_timeline(base):
    for seed in range(base, base + (100 if base else 50)):
        jobs = random_workload(seed, 12, 8)
        found = simulate(jobs, Cluster.regular(8, 8), Backfill(None))
        assert found.start.tolist() == naive_plan(jobs, 8), seed


@pytest.mark.parametrize("depth", [1, 3, None])
@pytest.mark.parametrize("allocator", list(ALLOCATORS))
def test_no_promise_to_a_head_of_the_queue_is_broken(allocator, depth):
    promises = Promises()
    jobs, cluster = random_workload(3, {"exact": 20, "apart": 30}.get(allocator, 80), 20), Cluster.regular(24, 4, 3)
    simulate(jobs, cluster, Backfill(depth), allocator, observers=[promises])
    assert promises.made
    assert promises.broken == []


class Fickle(Allocator):
    """The first free nodes; but of 7 free ones none for a job of 6, which may so fit no more after an end."""

    name = "fickle"
    monotone = False

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        if job.size > state.free or (job.size, state.free) == (6, 7):
            return None
        return Placement(np.flatnonzero(state.busy == 0)[: job.size])


@pytest.mark.parametrize("depth", [1, 3, None])
def test_a_promise_keeps_nodes_that_the_allocator_would_not_find_again(depth):
    """The job of 6 nodes is promised 20 s, beside the second one, which then ends before its request."""
    jobs = Workload.of(
        "early",
        submit=[0, 0, 0, 1, 2, 30, 32],
        run=[20, 15, 99, 10, 3, 5, 1],
        request=[20, 50, 99, 10, 3, 5, 1],
        nodes=[5, 1, 1, 6, 1, 1, 1],
    )
    promises = Promises()
    started = simulate(jobs, Cluster.regular(8, 4), Backfill(depth), Fickle(), observers=[promises]).start
    assert started[3] == 20
    assert promises.made
    assert promises.broken == []


@pytest.mark.parametrize("allocator", ISOLATING)
def test_what_is_called_isolated_shares_no_link_after_any_event(allocator):
    watch = IsolationCheck()
    jobs = random_workload(5, 150 if allocator != "exact" else 40, 20)
    simulate(jobs, Cluster.regular(24, 4, 3), Backfill(1), allocator, observers=[watch])
    assert watch.checks
    assert watch.found == []


def test_first_available_does_share_links():
    watch = IsolationCheck()
    simulate(random_workload(5, 150, 20), Cluster.regular(24, 4, 3), allocator="first", observers=[watch])
    assert watch.found


def queue_of(submit: list[int], run: list[int], nodes: list[int], user: list[int] | None = None) -> Workload:
    return Workload.of("queue", submit=submit, run=run, nodes=nodes, user=user)


@pytest.mark.parametrize(
    ("order", "second"),
    [
        ("fcfs", 1),  # arrived first
        ("sjf", 3),  # 9 s
        ("saf", 2),  # 50 node-seconds
        ("xf", 3),  # has waited longest for its length
        (Multifactor(age=1, size=0, share=0), 1),
        (Multifactor(age=0, size=1, share=0), 1),
        (Multifactor(age=0, size=0, share=1), 2),  # of the user who has used least
    ],
)
def test_each_order_takes_the_job_that_it_says_next(order, second):
    jobs = queue_of([0, 10, 11, 12], [100, 50, 10, 9], [8, 8, 5, 6], [1, 1, 2, 1])
    started = simulate(jobs, Cluster.regular(8, 8), Backfill(0, order)).start
    assert np.argsort(started, kind="stable")[1] == second


def test_an_order_that_changes_with_time_breaks_no_promise():
    for order in ("xf", "multifactor"):
        promises = Promises()
        jobs, cluster = random_workload(3, 120, 20), Cluster.regular(24, 4, 3)
        simulate(jobs, cluster, Backfill(1, order), "isolated", observers=[promises])
        assert promises.made
        assert promises.broken == []


def test_jobs_too_large_for_the_cluster_are_rejected_and_named():
    jobs = queue_of([0, 0, 5], [10, 10, 10], [4, 9, 8])
    found = simulate(jobs, Cluster.regular(8, 4), allocator="first")
    assert found.rejected.tolist() == [1]
    assert found.start.tolist() == [0, -1, 10]
    assert found.nodes_of(0).tolist() == [0, 1, 2, 3]


def test_a_queue_of_no_jobs_is_a_simulation_too():
    assert len(simulate(queue_of([], [], []), Cluster.regular(8, 4), allocator="first").ran) == 0


def test_faster_jobs_end_earlier_and_small_ones_do_not():
    jobs = queue_of([0, 0, 0], [10_000] * 3, [4, 5, 512])
    cluster = Cluster.regular(600, 18)
    assert simulate(jobs, cluster, speed="faster:20").end.tolist() == [10_000, 8_000, 8_000]
    for kind, least in (("V1", [9_977, 9_971, 7_000]), ("V2", [10_000, 9_980, 7_000])):
        ends = np.array([simulate(jobs, cluster, speed=f"{kind}:{seed}").end for seed in range(40)])
        assert ends.min(axis=0).tolist() == least
        assert len(set(ends[:, 2].tolist())) == 3


def test_jobs_run_slower_exactly_while_they_share_links():
    """Jobs of 3 nodes on leaves of 2: the second shares a leaf's links with the first for its 10 s, 12 with 20 %."""
    cluster, jobs = Cluster.regular(6, 2), queue_of([0, 5], [30, 10], [3, 3])
    found = simulate(jobs, cluster, allocator="first", speed="shared:20")
    assert found.end.tolist() == [32, 17]
    assert simulate(jobs, cluster, allocator="first").end.tolist() == [30, 15]
