"""Mappings for messages that are joined between hosts: an exact cost, never worse, another choice than by edges."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mapping import CommunicationGraph, Machine, Mapping, best, evaluate
from topompi.mapping.joined import Joining, best_joined, joined_cost


@st.composite
def jobs(draw):
    """A graph of random edges, hosts with some slots on a tree, a mapping, and terms."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    slots = rng.integers(1, 5, 2 * draw(st.integers(1, 4)))
    ranks = int(rng.integers(1, slots.sum() + 1))
    number = draw(st.integers(0, 60))
    source, target = rng.integers(0, ranks, (2, number))
    graph = CommunicationGraph.from_arrays(ranks, source, target, rng.choice([0, 1, 30, 5000], number))
    machine = Machine.tree(None, slots, np.arange(len(slots))[None] // 2, [3, 1, 0])
    given_ = Mapping.of(rng.permutation(int(slots.sum()))[:ranks], machine.hosts, slots)
    return graph, machine, given_, Joining(int(rng.integers(0, 200)), int(rng.choice([0, 10, 100, 10000])))


def counted(mapping, graph, machine, joining):
    """The cost by a loop over the edges."""
    messages = defaultdict(int)
    for edge, (source, target) in enumerate(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)):
        nbytes, hosts = int(graph.volume[edge]), (mapping.host_of_rank[source], mapping.host_of_rank[target])
        if nbytes and hosts[0] != hosts[1]:
            messages[(*hosts, None if nbytes <= joining.limit else edge)] += nbytes
    costs = {hosts: int(machine.distance(*hosts[:2])) * (joining.start + nbytes) for hosts, nbytes in messages.items()}
    busy = [
        sum(cost for hosts, cost in costs.items() if hosts[end] == host)
        for end in (0, 1)
        for host in range(machine.num_hosts)
    ]
    return sum(costs.values()) + machine.num_hosts * max(busy)


@given(jobs())
@examples(200)
def test_the_cost_is_that_of_the_messages_left(job):
    graph, machine, given_, joining = job
    assert joined_cost(given_, graph, machine, joining) == counted(given_, graph, machine, joining)


@given(jobs())
@examples(15)
def test_the_order_found_is_never_worse_than_the_given_one(job):
    graph, machine, given_, joining = job
    found = best_joined(graph, machine, joining, given=given_)
    assert counted(found, graph, machine, joining) <= counted(given_, graph, machine, joining)


def test_edges_and_joined_messages_choose_differently():
    """A halo on a cube of ranks: cubes of ranks have the fewest edges between hosts, slices the fewest neighbours."""
    steps = np.stack(np.meshgrid(*(np.arange(-1, 2),) * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    graph = CommunicationGraph.cartesian((4, 4, 4), weights=8, offsets=steps[steps.any(axis=1)])
    machine = Machine.tree(None, np.full(8, 8), np.zeros((0, 8), dtype=np.int64), [1, 0])
    by_edges = best(graph, machine)
    joined = best_joined(graph, machine, Joining(2700, 1350))
    pairs = []
    for one in (by_edges, joined):
        hosts = one.host_of_rank[np.stack((graph.sources, graph.targets))]
        pairs.append(len(np.unique(hosts[:, hosts[0] != hosts[1]], axis=1).T))
    nbytes = [evaluate(one, graph, machine).doubled for one in (by_edges, joined)]
    assert pairs[1] < pairs[0]
    assert nbytes[1] > nbytes[0]
