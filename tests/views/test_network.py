"""The network of a job as arrays: its clusters are those of the tree, whether or not hosts share leaf switches."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs, routes
from tests.support import examples
from topompi.topology import Routes, TopologyInterface, load
from topompi.views.network import UNKNOWN_RATE, known_rates, network_of
from topompi.views.part import restricted


@pytest.mark.parametrize("hosts", [(0, 2, 4, 8, 10, 12, 16, 18), (0, 1, 4, 8, 9, 12)])
def test_groups_are_a_level_though_no_two_hosts_share_a_leaf(hosts):
    """The groups of a dragonfly stand above the leaf switches, which are the last level."""
    network = job("dragonfly:4,2,2", hosts, [1] * len(hosts))
    groups, leaves = ([host // width for host in hosts] for width in (8, 2))
    assert len(network.clusters) == 2
    for cluster, expected in zip(network.clusters, (groups, leaves), strict=True):
        assert np.array_equal(cluster[:, None] == cluster, np.array(expected)[:, None] == expected)


@examples(60)
@given(jobs())
def test_hosts_of_a_leaf_are_those_one_hop_apart(network):
    """The last level is the leaf switches, and each level lies within the one above."""
    assert np.array_equal(network.leaf[:, None] == network.leaf, network.hops <= 1)
    for outer, inner in zip(network.clusters, network.clusters[1:], strict=False):
        assert not ((inner[:, None] == inner) & (outer[:, None] != outer)).any()


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([8.0, 2.0, 8.0, np.nan], [8.0, 2.0, 8.0, 8.0]),
        ([8.0, np.nan, 2.0], [8.0, 2.0, 2.0]),
        ([np.nan, np.nan], [UNKNOWN_RATE, UNKNOWN_RATE]),
    ],
)
def test_links_of_unknown_rate_are_as_fast_as_most_others(rates, expected):
    assert known_rates(np.array(rates)).tolist() == expected


def test_one_unknown_rate_leaves_the_rates_of_all_other_links():
    whole = routes("XGFT(2; 5,4; 1,2; 1,2)")
    rate = whole.fabric.link_rate.copy()
    rate[whole.fabric.switch_links] *= 2
    rate[whole.fabric.switch_links[0]] = np.nan
    known = Routes(replace(whole.fabric, link_rate=rate), "tables", whole.next_link)
    interface = TopologyInterface.place(whole.fabric.hosts, known)
    given = interface.routes.fabric.link_rate
    capacity = network_of(interface).capacity
    assert np.isnan(given).sum() == 1
    assert (capacity == given)[~np.isnan(given)].all()
    assert capacity[np.isnan(given)].tolist() == [given[interface.routes.fabric.adapter_uplink[0]]]  # of 40 hosts


@examples(60)
@given(jobs(), st.data())
def test_messages_load_the_links_of_their_routes_with_tables_and_without(network, data):
    host = st.integers(0, network.num_hosts - 1)
    messages = data.draw(st.lists(st.tuples(host, host, st.integers(0, 10**6)), min_size=1, max_size=20))
    source, destination, nbytes = (np.array(column) for column in zip(*messages, strict=True))
    loads = np.zeros(len(network.capacity))
    for one, other, size in messages:
        path = network.links[one, other]
        loads[path[path >= 0]] += size
    traffic = np.zeros((network.num_hosts, network.num_hosts))
    np.add.at(traffic, (source, destination), nbytes)
    spelt_out = replace(network, paths=network.links)
    for found in (network.loads_of(source, destination, nbytes), network.loads(traffic)):
        assert found.tolist() == loads.tolist()
    assert spelt_out.loads_of(source, destination, nbytes).tolist() == loads.tolist()


# --- The part of a topology that some ranks see.


ROUTES = load("xgft:2,2,2;1,1,1").routes


@examples(60)
@given(st.data())
def test_a_part_of_a_topology_is_that_of_its_ranks_alone(data):
    """A restricted interface equals one placed anew: hosts, distances, levels, and levels inside hosts."""
    size = data.draw(st.integers(1, 12))
    hosts = data.draw(st.lists(st.sampled_from(ROUTES.fabric.hosts), min_size=size, max_size=size))
    ranks = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
    packages = data.draw(st.lists(st.integers(-1, 1), min_size=size, max_size=size))
    whole = TopologyInterface.place(hosts, ROUTES, source="s", virtual=True).with_domains([("package", packages)])
    part = restricted(whole, np.array(ranks))
    alone = TopologyInterface.place([hosts[rank] for rank in ranks], ROUTES, source="s", virtual=True)
    alone = alone.with_domains([("package", [packages[rank] for rank in ranks])])
    assert part.hosts == alone.hosts
    assert part.describe() == alone.describe()
    assert part.rank_host.tolist() == alone.rank_host.tolist()
    assert part.hop_matrix.tolist() == alone.hop_matrix.tolist()
    assert part.get_hosts_sharing_links() == alone.get_hosts_sharing_links()
    assert [(one.name, one.cluster.tolist()) for one in part.levels] == [
        (one.name, one.cluster.tolist()) for one in alone.levels
    ]


def test_the_whole_is_no_copy():
    whole = TopologyInterface.place(["a", "b", "a"])
    assert restricted(whole, np.arange(3)) is whole
    assert restricted(whole, np.array([2, 0])).hosts == ("a",)
