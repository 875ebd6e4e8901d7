"""`disjoint` against a plain program, and the state that it keeps against the definition."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.mixes import capacity_mix
from tests.jobs.plain_disjoint import PlainDisjoint, open_routes_of
from tests.support import examples, shared_data
from topompi.machine.jobs import Backfill, Cluster, simulate
from topompi.machine.jobs.allocation import Job, Placement
from topompi.machine.jobs.allocation import leaf_bits as bits
from topompi.machine.jobs.allocation.disjoint import Disjoint
from topompi.machine.jobs.nodestates import NodeStates
from topompi.topology import load
from topompi.views.cluster import cluster_of

# Leaves of 4 and of 3 nodes, of 40 nodes (words of 64 bits), of 2 words, of 1 to 3 words, of one node.
FABRICS = ("xgft:4,4,4;1,2,2", "leaves=3x4", "xgft:40,4;1,8", "xgft:70,3;1,9", "uneven", "dragonfly:3,2,1")


@cache
def cluster(name: str) -> Cluster:
    if name == "uneven":
        return Cluster.of("uneven", [5, 130, 1, 64, 65], [2, 3])
    if name == "plafrim":
        return cluster_of(load(shared_data("fabrics/netloc-plafrim.txz")).routes)
    return Cluster.parse(name, 36) if name.startswith("leaves=") else cluster_of(load(name).routes)


def check_walk(where: str, seed: int, allocators: tuple[Disjoint, PlainDisjoint], events: int = 25) -> int:
    """Jobs placed that need several leaves; in each state, both allocators choose the same nodes for some sizes."""
    machine, rng, several = cluster(where), np.random.default_rng(seed), 0
    kept = allocators[0].state(machine)
    for number in range(events):
        kind = rng.random()
        if kind < 0.35 and kept.running:
            kept.end(int(rng.choice(list(kept.running))))
        elif kind < 0.45:
            nodes = rng.integers(machine.num_nodes, size=2)
            (kept.reopen if kept.closed[nodes[0]] else kept.close)(nodes)
        elif kind < 0.5:
            kept = kept.copy()
        for size in rng.integers(1, machine.num_nodes + 1, 4).tolist() + rng.integers(1, 30, 3).tolist():
            job = Job(number, min(size, machine.num_nodes))
            found, plain = (allocator.place(job, kept) for allocator in allocators)
            assert (found is None) == (plain is None)
            assert found is None or found.nodes.tolist() == plain.nodes.tolist()
        if found is not None:
            kept.start(job, found)
            several += len(np.unique(machine.leaf[found.nodes])) > 1
    return several


@pytest.mark.parametrize("where", FABRICS)
@examples(40)
@given(seed=st.integers(0, 10**6), starts=st.sampled_from([1, 3, 16]))
def test_disjoint_chooses_the_nodes_of_the_plain_program(where, seed, starts):
    check_walk(where, seed, (Disjoint(0, starts), PlainDisjoint(0, starts)))


@examples(10)
@given(seed=st.integers(0, 10**6))
def test_disjoint_chooses_the_nodes_of_the_plain_program_with_the_integer_program(seed):
    check_walk("xgft:4,4;1,2", seed, (Disjoint(), PlainDisjoint()), 10)


def test_disjoint_chooses_the_nodes_of_the_plain_program_on_real_tables():
    assert sum(check_walk("plafrim", seed, (Disjoint(0), PlainDisjoint(0))) for seed in range(8)) > 20


@pytest.mark.parametrize("where", FABRICS)
@examples(25)
@given(seed=st.integers(0, 10**6))
def test_a_kept_state_knows_the_open_routes_for_any_running_jobs_even_if_they_share_links(where, seed):
    machine, rng = cluster(where), np.random.default_rng(seed)
    state = Disjoint().state(machine)
    states = [state]
    for number in range(30):
        if state.running and rng.random() < 0.4:
            state.end(int(rng.choice(list(state.running))))
        else:
            nodes = rng.permutation(machine.num_nodes)[: rng.integers(1, 9)]
            state.start(Job(number, len(nodes)), Placement(nodes))
        if number % 10 == 5:
            states.append(state := state.copy())
    everything = np.arange(machine.num_leaves), np.arange(machine.num_nodes)
    for one in states:
        assert np.array_equal(one.is_open(*everything), open_routes_of(one))
        used = [machine.links.links_of(placement.nodes) for _, placement in one.running.values()]
        links = np.concatenate([np.empty(0, dtype=int), *used])
        assert np.array_equal(one.used, np.bincount(links, minlength=machine.links.num_links))
        for number in list(one.running):
            one.end(number)
        assert not any(digit.any() for digit in one.digits)


@pytest.mark.parametrize("depth", [1, 0, 3, None])
def test_simulations_by_disjoint_and_by_the_plain_program_are_equal(depth):
    machine = cluster("xgft:4,4,4;1,2,2")
    jobs = capacity_mix(np.random.default_rng(5), 60 if depth == 1 else 25, 64, 1.5)
    hours = [(3600 * hour, state, [hour % 64]) for hour, state in ((2, "drained"), (5, "down"), (9, "up"))]
    changes = NodeStates.of(machine, hours)
    one, other = (
        simulate(jobs, machine, Backfill(depth), allocator, node_states=changes)
        for allocator in (Disjoint(0), PlainDisjoint(0))
    )
    for column in ("start", "start_pass", "end", "offset", "nodes"):
        assert np.array_equal(getattr(one, column), getattr(other, column))
    assert (one.start > jobs.submit).any()


@examples(30)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9), st.sampled_from(["<u1", "<u2", "<u4", "<u8"]))
def test_bits_are_counted_without_the_function_of_numpy_2(numbers, kind):
    words = np.array(numbers, dtype=np.uint64).astype(kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(np, "bitwise_count", raising=False)
        counted = bits.bit_count(words)
    assert counted.tolist() == [int(word).bit_count() for word in words]
    assert counted.tolist() == bits.bit_count(words).tolist()
