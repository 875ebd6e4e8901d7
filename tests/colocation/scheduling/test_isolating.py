"""Jobs that share nodes and are isolated on the network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.colocation.scheduling.drawn import NAMES, drawn_halves, drawn_jobs, drawn_table, seeds, table_of
from tests.support import examples
from topompi.machine.colocation.scheduling.allocators import Halves
from topompi.machine.colocation.scheduling.halves import on_halves
from topompi.machine.colocation.scheduling.isolating import IsolatedHalves, IsolatedMatched
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.jobs import Cluster, IsolationCheck, Promises, check_allocator, simulate


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


@pytest.mark.parametrize("allocator", [IsolatedHalves(), IsolatedMatched(table_of([[0.8, 1.5], [0.5, 1]], ("a", "b")))])
def test_isolated_allocators_of_halves_keep_the_contract_of_allocators(allocator: Halves) -> None:
    values = {"program": ("a", "b")} if "program" in allocator.heeds else None
    assert check_allocator(allocator, states=300, values=values) > 30
