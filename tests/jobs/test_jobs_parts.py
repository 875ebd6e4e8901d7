"""Clusters of several parts that no links join: each job's nodes lie in one part, by every policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ibreports import Model, default_report, read_default
from tests.support import examples, text_of
from topompi.inputs.slurm.running import RunningJob
from topompi.machine.jobs import ALLOCATORS, Cluster, Workload, simulate
from topompi.machine.jobs.allocation import Job, find_allocator, within_parts
from topompi.machine.jobs.now import offer
from topompi.topology import Report, compute_routes
from topompi.topology.routecheck import with_routes
from topompi.topology.sources import slurm
from topompi.views.cluster import cluster_of

NAMING = [name for name in ALLOCATORS if name != "counts"]


def trees(*leaves: list[int]) -> Cluster:
    """One tree per list, with a leaf of each size."""
    lines, host = [], 0
    for number, sizes in enumerate(leaves):
        for leaf, size in enumerate(sizes):
            lines.append(f"SwitchName=l{number}-{leaf} Nodes=n[{host}-{host + size - 1}]")
            host += size
        lines.append(f"SwitchName=s{number} Switches=" + ",".join(f"l{number}-{leaf}" for leaf in range(len(sizes))))
    routes = with_routes(slurm.read([text_of("\n".join(lines))], Report()), Report()).routes
    assert routes is not None
    return cluster_of(routes)


SHAPES = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=2, max_size=4)


@pytest.mark.parametrize("policy", NAMING)
@examples(15)
@given(shape=SHAPES, seed=st.integers(0, 2**16), depth=st.sampled_from(["easy", "conservative"]))
def test_no_job_gets_nodes_of_two_parts(policy: str, shape: list[list[int]], seed: int, depth: str) -> None:
    cluster = trees(*shape)
    assert cluster.part is not None
    rng, count = np.random.default_rng(seed), 12
    largest = int(np.bincount(cluster.part).max())
    workload = Workload.of(
        "drawn",
        submit=np.sort(rng.integers(0, 50, count)),
        run=rng.integers(1, 40, count),
        nodes=rng.integers(1, cluster.num_nodes + 1, count),
    )
    outcome = simulate(workload, cluster, depth, policy)
    for job in range(count):
        nodes = outcome.nodes_of(job)
        assert len(np.unique(cluster.part[nodes])) <= 1
        if workload.nodes[job] > largest:
            assert outcome.start[job] < 0


def test_a_policy_without_a_choice_of_parts_is_unchanged_where_one_part_suffices() -> None:
    cluster = trees([4, 4], [4, 4])
    plain, bound = find_allocator("first"), within_parts(find_allocator("first"), cluster)
    for size in (1, 5, 8):
        job = Job(0, size)
        assert np.array_equal(
            plain.place(job, plain.state(cluster)).nodes, bound.place(job, bound.state(cluster)).nodes
        )
    state = bound.state(cluster)
    state.start(Job(0, 6), bound.place(Job(0, 6), state))
    assert bound.place(Job(1, 4), state).nodes.tolist() == [8, 9, 10, 11]
    assert within_parts(plain, Cluster.parse("leaves=4x2", 8)) is plain


@pytest.mark.parametrize("policy", NAMING)
def test_the_reason_names_the_parts(policy: str) -> None:
    cluster = trees([8, 8], [8, 8], [8])
    running = [
        RunningJob("a", tuple(f"n{node}" for node in range(14)), "f:1"),
        RunningJob("c", tuple(f"n{node}" for node in range(16, 22)), "f:2"),
    ]
    waits = offer(12, cluster, running, policy)
    assert waits.nodes == ()
    assert waits.why == "20 nodes are free, at most 10 of them in one of 3 parts that no links join"
    runs = offer(8, cluster, running, policy)
    assert runs.why.endswith("; in one of 3 parts that no links join")
    assert len({cluster.part[cluster.hosts.index(name)] for name in runs.nodes}) == 1


def test_hosts_with_adapters_in_two_planes_are_one_part_in_whatever_order_they_are() -> None:
    model = Model()
    for _ in range(2):
        model.add_switch()
    planes = list(model.switches)
    for host in range(4):
        for rail in range(2):
            model.add_adapter(planes[(host + rail) % 2], f"n{host} mlx5_{rail}")
    model.add_adapter(planes[1], "login mlx5_0")
    cluster = cluster_of(compute_routes(read_default(default_report(model)).fabric))
    assert cluster.num_nodes == 5
    assert cluster.part is None
    assert cluster.num_leaves == 1


@pytest.mark.parametrize("policy", ["disjoint", "exact"])
def test_closed_nodes_are_forgotten_by_no_search(policy: str) -> None:
    cluster, allocator = trees([2, 2], [2, 2]), find_allocator(policy)
    state = allocator.state(cluster)
    before = allocator.place(Job(0, 3), state)
    assert before is not None
    state.close(before.nodes)
    after = allocator.place(Job(0, 3), state)
    assert after is None or not np.isin(after.nodes, before.nodes).any()
