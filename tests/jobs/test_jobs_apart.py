"""The allocator `apart`: no two nodes of a job share a link into their leaf wherever that can be avoided."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, shared_data
from topompi.machine.jobs import Cluster, check_allocator, find_allocator
from topompi.machine.jobs.allocation import Job
from topompi.machine.jobs.allocation.apart import Apart, sharing_nodes
from topompi.machine.jobs.now import offer
from topompi.topology import TopologyInterface, load
from topompi.views.cluster import cluster_of


class RandomRoutes:
    """Routes of one link each: from every leaf into the leaf of every node, by one of the leaf's links at random."""

    def __init__(self, leaf, links, rng):
        leaves = int(leaf.max()) + 1
        self.num_links = leaves * links
        self._table = rng.integers(links, size=(leaves, len(leaf), 1)) + leaf[None, :, None] * links
        self._table[leaf, np.arange(len(leaf))] = -1

    def links_of(self, nodes):
        raise NotImplementedError

    def table(self):
        return self._table


def share(nodes, cluster):
    """Whether two nodes of a job share a link into their leaf, by definition."""
    table, leaf = cluster.links.table()[:, :, 0], cluster.leaf
    leaves = set(leaf[nodes].tolist())
    entered = {node: {int(table[other, node]) for other in leaves if other != leaf[node]} for node in nodes}
    return any(leaf[a] == leaf[b] and entered[a] & entered[b] for a, b in combinations(nodes, 2))


@examples(60)
@given(st.data())
def test_nodes_share_a_link_only_if_every_choice_does(data):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    plain = Cluster.of("random", sizes, [len(sizes)])
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    routes = RandomRoutes(plain.leaf, data.draw(st.integers(1, 3)), rng)
    cluster = Cluster.of("random", sizes, [len(sizes)], routes=routes)
    policy = find_allocator("apart")
    state = policy.state(cluster)
    state.close(np.flatnonzero(rng.random(cluster.num_nodes) < 0.2))
    free = np.flatnonzero(state.busy == 0).tolist()
    for size in range(1, len(free) + 1):
        found = policy.place(Job(0, size), state).nodes.tolist()
        avoidable = any(not share(list(some), cluster) for some in combinations(free, size))
        assert share(found, cluster) != avoidable, (size, found)
        assert (len(sharing_nodes(np.array(found), cluster)) > 0) == share(found, cluster)


@pytest.mark.parametrize(("size", "leaves"), [(4, 1), (6, 3), (8, 4), (9, 3), (16, 4)])
def test_on_a_fat_tree_with_two_links_a_leaf_two_nodes_of_each_leaf_are_apart(size, leaves):
    cluster = cluster_of(load("xgft:4,2,2;1,2,2").routes)
    found = offer(size, cluster, policy="apart")
    nodes = np.array([cluster.hosts.index(host) for host in found.nodes])
    assert len(np.unique(cluster.leaf[nodes])) == leaves
    assert (len(sharing_nodes(nodes, cluster)) > 0) == (size > 8)


@pytest.mark.parametrize("engine", ["minhop", "dfsssp", "nue"])
def test_the_topology_interface_finds_no_shared_link_on_real_tables_up_to_a_node_a_leaf(engine):
    tables = shared_data(f"fabrics/derived-ibsim-opensm/janus.{engine}.opensm-lfts.dump.xz")
    routes = load(shared_data("fabrics/janus-2014.ibnetdiscover.xz"), lfts=tables).routes
    cluster = cluster_of(routes)
    for size in (20, cluster.num_leaves):
        names = offer(size, cluster, policy="apart").nodes
        nodes = np.array([cluster.hosts.index(host) for host in names])
        counted = TopologyInterface.place(names, routes).get_num_hosts_sharing_links()
        assert (len(nodes), len(sharing_nodes(nodes, cluster))) == (size, counted)
        assert counted == 0


def test_it_is_proved_as_the_others_and_the_program_runs_for_few_free_nodes_only():
    assert check_allocator("apart") > 100
    assert Apart(repair=0).place(Job(0, 5), Apart().state(Cluster.regular(9, 3, 3))) is not None
