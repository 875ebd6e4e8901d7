"""The loop in C places jobs on halves of nodes, and changes their rates, exactly as the loop in Python does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.colocation.scheduling.drawn import NAMES, drawn_jobs, drawn_table, seeds
from tests.support import examples, refusal
from topompi.colocation.scheduling.allocators import Halves, Matched
from topompi.colocation.scheduling.halves import on_halves
from topompi.colocation.scheduling.speed import ColocatedSpeed
from topompi.jobs import Backfill, Cluster, JobsError, simulate
from topompi.jobs import compiled as compiled_module

pytestmark = pytest.mark.skipif(compiled_module._engine is None, reason="installed without a compiler")


@given(seeds)
@examples(120)
def test_both_loops_give_equal_starts_ends_and_halves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 9))
    jobs = drawn_jobs(rng, 50, nodes)
    jobs = replace(jobs, run=np.where(rng.random(50) < 0.1, 0, jobs.run))
    halves = np.maximum(1, 2 * jobs.nodes - rng.integers(0, 2, 50))  # odd numbers, too
    jobs = on_halves(jobs, NAMES, seed=seed, halves=halves, stretch=1.3)
    cluster, truth, seen = Cluster.regular(nodes, 2).with_slots(2), drawn_table(rng), drawn_table(rng)
    queue = Backfill(int(rng.integers(0, 2)), ("fcfs", "sjf")[int(rng.integers(2))])
    for allocator in (Halves(), Matched(seen), Matched(seen, 1.1), Matched(seen, 0.1)):
        sides = [
            simulate(jobs, cluster, queue, allocator, ColocatedSpeed(truth), compiled=one) for one in (True, False)
        ]
        for column in ("start", "end", "start_pass", "offset", "nodes", "slots"):
            assert np.array_equal(*(getattr(side, column) for side in sides)), column


def test_the_loop_in_c_refuses_jobs_that_do_not_share() -> None:
    rng = np.random.default_rng(1)
    jobs = on_halves(drawn_jobs(rng, 5, 2).with_columns(shared=[True, False, True, True, True]), NAMES)
    cluster = Cluster.regular(4, 2).with_slots(2)
    given = jobs, cluster, "easy", Halves(), ColocatedSpeed(drawn_table(rng))
    assert "policy" in refusal(lambda: simulate(*given, compiled=True), error=JobsError)
