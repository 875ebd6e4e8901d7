"""Allocators: the guarantees of each, worked examples, and the exact allocator as an oracle."""

import random
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.machine.jobs import (
    AllocationError,
    Cluster,
    check,
    find_allocator,
)
from topompi.machine.jobs.allocation import Job
from topompi.topology import load
from topompi.views.cluster import cluster_of

ISOLATING = ("exclusive", "isolated", "disjoint", "exact")


def test_the_worked_sequence_of_the_isolated_allocator():
    """Pollard et al., SC18: three pods of three leaves of three nodes."""
    policy, cluster = find_allocator("isolated"), Cluster.regular(27, 3, 3)
    state = policy.state(cluster)
    expected = [
        (2, [0, 1]),
        (4, [3, 4, 5, 6]),
        (3, [9, 10, 11]),
        (10, [12, *range(18, 27)]),
        (1, [2]),
        (2, [7, 8]),
        (4, None),
        (12, None),
        (-1, None),  # the second job ends
        (5, None),
        (3, [3, 4, 5]),
    ]
    for index, (size, nodes) in enumerate(expected):
        if size < 0:
            state.end(1)
            continue
        placement = policy.place(Job(index, size), state)
        assert (None if placement is None else sorted(placement.nodes.tolist())) == nodes
        if placement is not None:
            state.start(Job(index, size), placement)


def test_the_detector_finds_the_conflicts_of_the_literature():
    """Figure 2 of Pollard et al.: red and blue share a leaf's links, blue and yellow a pod's, red and yellow none."""
    cluster = Cluster.regular(18, 3, 3)
    found = check({0: [0, 3], 1: [1, 2, 4, 9, 10], 2: [6, 12, 13]}, cluster.links)
    assert set(found.pairs) == {(0, 1), (1, 2)}


@examples(40)
@given(seed=st.integers(0, 10**6))
def test_where_any_isolating_allocator_finds_nodes_the_exact_one_does(seed):
    rng = random.Random(seed)
    cluster = Cluster.regular(24, 3, 4)
    policies = {name: find_allocator(name) for name in ISOLATING}
    states = {name: policy.state(cluster) for name, policy in policies.items()}
    for index in range(6):
        job = Job(index, rng.randint(1, 12))
        found = {name: policies[name].place(job, states[name]) for name in ISOLATING}
        if found["exact"] is None:
            assert found["disjoint"] is None
            assert found["isolated"] is None
            continue
        for name in ISOLATING:  # all go on from one state
            states[name].start(job, found["exact"])


def by_definition(jobs: dict[int, list[int]], cluster: Cluster) -> dict[tuple[int, int], list[int]]:
    """The links of each pair of jobs, from the routes of every ordered pair of nodes."""
    table = cluster.links.table()
    uses = {
        job: {int(link) for a, b in permutations(nodes, 2) for link in table[cluster.leaf[a], b] if link >= 0}
        for job, nodes in jobs.items()
    }
    return {(a, b): sorted(uses[a] & uses[b]) for a, b in combinations(sorted(jobs), 2) if uses[a] & uses[b]}


@pytest.mark.parametrize("where", ["tree", "xgft:4,3,2;1,2,2"])
@examples(30)
@given(owners=st.lists(st.integers(0, 4), min_size=24, max_size=24))
def test_the_detector_finds_all_pairs_and_links_of_the_definition_and_no_other(where, owners):
    cluster = Cluster.regular(24, 4, 3) if where == "tree" else cluster_of(load(where).routes)
    jobs = {job: [node for node, owner in enumerate(owners) if owner == job] for job in range(1, 5)}
    found = check(jobs, cluster.links)
    assert {pair: links.tolist() for pair, links in found.pairs.items()} == by_definition(jobs, cluster)
    assert found.num_links == len({link for links in found.pairs.values() for link in links.tolist()})


def test_a_node_of_two_jobs_is_refused():
    with pytest.raises(AllocationError, match="got node 4 twice"):
        check({0: [0, 4], 1: [4, 5]}, Cluster.regular(12, 6).links)
