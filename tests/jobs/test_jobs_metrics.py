"""Metrics of an outcome: against their definitions, job by job, and numbers of the literature."""

import csv
import json
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.support import shared_data
from tests.workloads import random_workload
from topompi.machine.jobs import Backfill, Cluster, JobsError, Observer, Outcome, Workload, read_swf, simulate
from topompi.machine.jobs.exports import to_json, write_jobs
from topompi.machine.jobs.metrics import (
    average_hops,
    figures,
    fragmentation,
    queue_length,
    sharing,
    summarise,
    utilisation,
    wait_by_size,
)
from topompi.views.cluster import read_cluster

CLUSTER = Cluster.regular(24, 4, 3)


class Partners(Observer):
    """Pairs that share links of the tree after each pass, by the definition."""

    def __init__(self) -> None:
        self.pairs: tuple[set, set] = (set(), set())

    def passed(self, situation) -> None:
        running = situation.state.running
        for pairs, group in zip(self.pairs, (CLUSTER.leaf, CLUSTER.pod), strict=True):
            uses = {job: set(group[placement.nodes[: one.size]]) for job, (one, placement) in running.items()}
            crossing = {job: of for job, of in uses.items() if len(of) > 1}
            for a, b in combinations(sorted(crossing), 2):
                if crossing[a] & crossing[b]:
                    pairs.add((a, b))


def outcome_of(allocator: str = "first", seed: int = 5) -> Outcome:
    return simulate(random_workload(seed, 150, 20), CLUSTER, allocator=allocator)


def test_sharing_counts_the_pairs_that_an_observer_sees():
    for seed in range(4):
        seen = Partners()
        jobs = random_workload(seed, 200, 12)
        found = sharing(simulate(jobs, CLUSTER, allocator="first", observers=[seen]))
        both = seen.pairs[0] | seen.pairs[1]
        assert (found.leaf_pairs, found.pod_pairs) == (len(seen.pairs[0]), len(seen.pairs[1]))
        assert found.percent == pytest.approx(100 * len({job for pair in both for job in pair}) / len(jobs))
        assert found.partners == pytest.approx(2 * len(both) / len(jobs))


@pytest.mark.long
def test_sharing_of_the_first_free_nodes_on_a_real_log():
    log = read_swf(shared_data("workloads/LLNL-Thunder-2007-1.1-cln.swf.gz"), 4)
    found = sharing(simulate(log, Cluster.regular(1002, 18, 18), allocator="first"))
    assert (found.leaf_pairs, found.pod_pairs) == (227_314, 136_585)
    assert (round(found.percent, 2), round(found.partners, 3)) == (34.39, 4.747)


def test_three_jobs_of_the_literature_share_as_it_says():
    """A. Jokanovic 2014, section 4.3: A and B share a leaf, B and C another one, A and C the pods."""
    jobs = Workload.of("abc", submit=[0, 0, 0], run=[9, 9, 9], nodes=[2, 2, 2])
    nodes = np.array([0, 8, 1, 2, 3, 10], dtype=np.int32)
    zero = np.zeros(3, dtype=np.int64)
    cluster = Cluster.regular(16, 2, 4)
    outcome = Outcome(jobs, cluster, ("", "", ""), zero, zero, zero + 9, np.array([0, 2, 4, 6]), nodes)
    found = sharing(outcome)
    assert (found.leaf_pairs, found.pod_pairs, found.percent, found.partners) == (2, 1, 100.0, 2.0)


class Conflicting(Observer):
    """Pairs that share directed links after each pass, as `isolation.check` finds them."""

    def __init__(self) -> None:
        self.pairs: set[tuple[int, int]] = set()

    def passed(self, situation) -> None:
        self.pairs |= set(situation.state.conflicts().pairs)


@pytest.mark.parametrize("source", ["xgft:4,3,2;1,2,2", "XGFT(2; 4,6; 1,4)"])
@pytest.mark.parametrize("allocator", ["first", "contiguous", "disjoint"])
def test_with_routes_jobs_share_if_they_use_one_directed_link(source, allocator):
    """The column counts the jobs that ``--check`` finds on shared links."""
    cluster = read_cluster(source)
    for seed in range(3):
        seen = Conflicting()
        jobs = random_workload(seed, 120, 10)
        found = sharing(simulate(jobs, cluster, allocator=allocator, observers=[seen]))
        assert found.percent == pytest.approx(100 * len({job for pair in seen.pairs for job in pair}) / len(jobs))
        assert found.partners == pytest.approx(2 * len(seen.pairs) / len(jobs))
        assert (found.percent == 0) == (allocator == "disjoint" or not seen.pairs)


def test_json_has_all_figures_and_the_nodes_of_each_job():
    outcome = outcome_of()
    told = json.loads(to_json(outcome))
    assert told["summary"].pop("rejected_because") == outcome.rejections
    assert told["summary"] == pytest.approx(figures(outcome))
    assert {"average_hops", "percent", "partners", "makespan"} <= set(told["summary"])
    for job, written in enumerate(told["nodes"]):
        parts = [part.split("-") for part in written.split()]
        nodes = [node for part in parts for node in range(int(part[0]), int(part[-1]) + 1)]
        assert nodes == sorted(outcome.held_by(job).tolist())
    assert "nodes" not in json.loads(to_json(outcome_of("counts")))


def test_mean_hops_follow_their_definition():
    outcome = outcome_of()
    hops = average_hops(outcome)
    for job in outcome.ran[:60].tolist():
        pairs = list(combinations(outcome.nodes_of(job).tolist(), 2))
        each = [2 * (CLUSTER.leaf[a] != CLUSTER.leaf[b]) + 2 * (CLUSTER.pod[a] != CLUSTER.pod[b]) for a, b in pairs]
        assert hops[job] == pytest.approx(np.mean(each) if pairs else 0)


@pytest.mark.parametrize("allocator", ["first", "leaf-exclusive"])
def test_use_queue_and_fragmentation_equal_a_count_second_by_second(allocator):
    outcome = outcome_of(allocator)
    jobs, begin = outcome.workload, int(outcome.workload.submit.min())
    span = int(outcome.end.max()) - begin
    held, used, waiting = np.zeros((span, 24), dtype=bool), np.zeros(span), np.zeros(span)
    for job in outcome.ran.tolist():
        run = slice(outcome.start[job] - begin, outcome.end[job] - begin)
        held[run, outcome.held_by(job)] = True
        used[run] += jobs.nodes[job]
        waiting[jobs.submit[job] - begin : outcome.start[job] - begin] += 1
    assert utilisation(outcome).mean() == pytest.approx(used.mean() / 24)
    assert utilisation(outcome, held=True).mean() == pytest.approx(held.mean())
    assert queue_length(outcome).mean() == pytest.approx(waiting.mean())
    on_free_leaves = (~held.reshape(span, 6, 4).any(axis=2)).sum() * 4
    assert fragmentation(outcome) == pytest.approx(1 - on_free_leaves / (~held).sum())


def test_waits_by_size_are_those_of_all_jobs():
    outcome = outcome_of()
    waits = wait_by_size(outcome)
    assert list(waits) == ["1", "2-4", "5-18", "19-64"]
    assert np.concatenate(list(waits.values())).sum() == (outcome.start - outcome.workload.submit).sum()


def test_nodes_that_were_only_counted_have_no_packing():
    with pytest.raises(JobsError, match="names nodes"):
        average_hops(outcome_of("counts"))


def test_files_for_others_have_every_job_and_its_nodes(tmp_path: Path):
    outcome = simulate(random_workload(5, 40, 26), CLUSTER, Backfill(1), "leaf-exclusive")
    write_jobs(outcome, tmp_path / "jobs.csv")
    rows = list(csv.DictReader((tmp_path / "jobs.csv").open()))
    assert len(rows) == 40
    for job, row in enumerate(rows):
        if outcome.start[job] < 0:
            assert row["final_state"] == "REJECTED"
            continue
        parts = [part.split("-") for part in row["allocated_resources"].split()]
        nodes = [node for part in parts for node in range(int(part[0]), int(part[-1]) + 1)]
        assert nodes == sorted(outcome.held_by(job).tolist())
        assert all(int(a[-1]) + 1 < int(b[0]) for a, b in pairwise(parts))
    assert len(outcome.rejected) > 0


def test_evalys_reads_our_jobs_and_agrees_on_the_mean_wait_and_the_use(tmp_path: Path):
    from evalys.jobset import JobSet  # takes seconds, which only this test needs

    outcome = outcome_of()
    write_jobs(outcome, tmp_path / "jobs.csv")
    read = JobSet.from_csv(str(tmp_path / "jobs.csv"), resource_bounds=(0, CLUSTER.num_nodes - 1))
    ran = read.df[read.df["starting_time"].notna()]
    assert (ran["starting_time"] - ran["submission_time"]).mean() == pytest.approx(summarise(outcome).mean_wait)
    assert ran["waiting_time"].mean() == pytest.approx(summarise(outcome).mean_wait)
    used = sum(len(nodes) * run for nodes, run in zip(ran["allocated_resources"], ran["execution_time"], strict=True))
    assert used == (outcome.workload.nodes * (outcome.end - outcome.start))[outcome.ran].sum()
