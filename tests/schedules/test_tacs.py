"""TACS1, TACS2 and the choice of a scheme: the reference's requirements, on random jobs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs, link_loads, one_message_each, routes, steps
from tests.support import examples, shared_data
from topompi.schedules.alltoall.dcss import DEFAULT, dcss, hosts_sharing_links
from topompi.schedules.alltoall.hostschedule import HostSchedule
from topompi.schedules.alltoall.leafroutes import room
from topompi.schedules.alltoall.tacs import matchings, tacs1, tacs2
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

few = examples(40)


@few
@given(jobs())
def test_every_pair_of_hosts_meets_once(network):
    """The matchings are a factorisation of the complete graph of hosts."""
    pairs = matchings(network)
    assert sorted(map(sorted, pairs[:, 1:].tolist())) == [list(p) for p in combinations(range(network.num_hosts), 2)]
    for step in range(int(pairs[:, 0].max(initial=-1)) + 1):
        hosts = pairs[pairs[:, 0] == step, 1:].ravel().tolist()
        assert len(set(hosts)) == len(hosts) > 0


@few
@given(jobs(), st.integers(1, 3))
def test_no_link_carries_more_than_allowed(network, limit):
    """Routes there and back together keep the limit on every link in every step, and host links carry one."""
    own = set(network.links[:, :, 0].ravel().tolist())
    carried = room(network)
    for pairs in steps(tacs1(network, limit=limit)).values():
        for link, carries in link_loads(network, pairs).items():
            assert carries <= (1 if link in own else limit * carried[link])


@few
@given(jobs())
def test_no_pair_of_idle_hosts_could_still_exchange(network):
    """A step leaves no two hosts idle that have their exchange ahead and free links for it."""
    by_step = steps(tacs1(network))
    ahead = set(combinations(range(network.num_hosts), 2))
    for _, pairs in sorted(by_step.items()):
        ahead -= set(pairs)
        used = link_loads(network, pairs)
        carried = room(network)
        idle = set(range(network.num_hosts)) - {host for pair in pairs for host in pair}
        for one, other in ahead:
            if one in idle and other in idle:
                more = link_loads(network, [(one, other), (other, one)])
                assert any(used[link] + load > carried[link] for link, load in more.items())


@few
@given(jobs())
def test_the_first_host_takes_a_farthest_partner(network):
    """In the first step all links are free, so the first host to choose exchanges with a leaf farthest away."""
    pairs = matchings(network)
    if len(pairs):
        host, partner = pairs[0, 1:]
        assert network.hops[host, partner] == network.hops[host].max()


@few
@given(jobs())
def test_a_rank_sends_and_receives_once_a_step(network):
    """Unequal numbers of ranks on two hosts take as many rounds as the larger one, one message a rank and round."""
    assert one_message_each(tacs1(network))


@few
@given(jobs())
def test_tacs2_has_no_extra_steps(network):
    """TACS2 has the step inside hosts and at most n - 1 others, and what TACS1 does in these stays in place."""
    first, second = steps(tacs1(network)), steps(tacs2(network))
    assert max(second, default=0) <= max(network.num_hosts - 1, 0)
    for step, pairs in first.items():
        if step < network.num_hosts:
            assert set(pairs) <= set(second[step])
    for pairs in second.values():
        senders = [source for source, _ in pairs]
        assert len(set(senders)) == len(senders)


@few
@given(jobs())
def test_tacs2_issues_extra_exchanges_in_their_order(network):
    """Each host takes its exchanges from behind the regular steps one after the other."""
    regular = network.num_hosts
    first, second = steps(tacs1(network)), steps(tacs2(network))
    for host in range(network.num_hosts):
        late = [to for step in sorted(first) if step >= regular for at, to in first[step] if at == host]
        moved = [
            to
            for step in sorted(second)
            for at, to in second[step]
            if at == host and (at, to) not in first.get(step, ())
        ]
        assert moved == late


def test_links_of_twice_the_rate_carry_two():
    """Where all links between switches are twice as fast, so many transfers as two share none of them."""
    network = job("XGFT(2; 4,2; 1,1)", range(8), [1] * 8)
    first, last = set(network.links[:, :, 0].ravel()), network.links[:, :, 1:]
    ends = {row[row >= 0][-1] for row in last.reshape(-1, last.shape[2]) if (row >= 0).any()}
    own = first | ends
    fast = np.array([1 if link in own else 2 for link in range(len(network.capacity))])
    doubled = replace(network, capacity=network.capacity * fast)
    assert tacs1(doubled).num_host_steps < tacs1(network).num_host_steps
    for pairs in steps(tacs1(doubled)).values():
        assert all(load <= fast[link] for link, load in link_loads(doubled, pairs).items())


def test_hosts_of_a_leaf_with_unlike_routes_are_told_apart():
    """Routes that differ for two hosts of a leaf keep the limit all the same."""
    network = job("XGFT(2; 4,3; 1,4)", range(12), [1] * 12)
    links = network.links.copy()
    for host in range(4, 12):  # host 0 takes the spines of the neighbours' routes, as over another rail
        links[0, host, 1:3] = network.links[0, host - host % 4 + (host + 1) % 4, 1:3]
    twisted = replace(network, paths=links)
    for pairs in steps(tacs1(twisted)).values():
        assert all(load == 1 for load in link_loads(twisted, pairs).values())


def test_what_cannot_be_scheduled_is_refused():
    """A limit of 0, hosts without a route, a rank that is not there, steps without rounds: told with the numbers."""
    network = job("slurm64", range(3), [1] * 3)
    with pytest.raises(ValueError, match="limit of at least 1, got 0"):
        tacs1(network, limit=0)
    hops = network.hops.copy()
    hops[2, 1] = -1
    with pytest.raises(ValueError, match="no route from host 2 to host 1"):
        tacs1(replace(network, hops=hops))
    with pytest.raises(ValueError, match=r"rank in range\(3\), got 3"):
        tacs1(network).rows_of(3)
    with pytest.raises(ValueError, match=r"steps in range\(1\)"):
        HostSchedule("x", np.zeros(1), np.array([1]), np.array([0]), np.array([0]), np.array([1]))


@few
@given(jobs(most_hosts=14))
def test_hosts_sharing_links_are_those_of_the_interface(network):
    """The same question asked of the topology interface has the same answer."""
    pairs = [(i, j) for i in range(network.num_hosts) for j in range(network.num_hosts) if network.hops[i, j] > 1]
    entering: dict[int, set[int]] = {}
    for i, j in pairs:
        entering.setdefault([link for link in network.links[i, j] if link >= 0][-2], set()).add(j)
    shared = set().union(*(hosts for hosts in entering.values() if len(hosts) > 1))
    assert set(hosts_sharing_links(network).tolist()) == shared


def test_sharing_agrees_with_the_topology_interface():
    """On a 5:4 leaf the interface and the network name equally many hosts."""
    names = routes("slurm64").fabric.hosts
    interface = TopologyInterface.place(names, routes("slurm64"))
    assert len(hosts_sharing_links(job("slurm64", range(64), [1] * 64))) == interface.get_num_hosts_sharing_links() > 0


def test_dcss_says_why():
    """A sparse allocation and one without shared links keep the default, another gets a schedule."""
    sparse = dcss(job("XGFT(2; 4,24; 1,2)", range(0, 96, 4), [1] * 24))
    assert (sparse.algorithm, sparse.schedule) == (DEFAULT, None)
    assert "no leaf switch holds more than 1 of 24 hosts" in sparse.reason
    alone = dcss(job("slurm64", range(10), [2] * 10))
    assert alone.algorithm == DEFAULT
    assert "none of the 10 hosts shares" in alone.reason
    dense = dcss(job("slurm64", range(40), [1] * 40))
    assert dense.algorithm == "tacs1"
    assert dense.schedule is not None
    assert "share links" in dense.reason
    assert dcss(job("slurm64", range(40), [1] * 40), sparsity=0.5).algorithm == DEFAULT
    with pytest.raises(ValueError, match="sparsity between 0 and 1, got 5"):
        dcss(job("slurm64", range(2), [1] * 2), sparsity=5)


def test_dcss_gives_a_crowded_link_a_schedule_though_the_allocation_is_sparse():
    """One host on each of 24 leaf switches; then the first link up of each route is the same one for all."""
    sparse = job("XGFT(2; 4,24; 1,2)", range(0, 96, 4), [1] * 24)
    assert dcss(sparse).algorithm == DEFAULT
    links = sparse.links.copy()
    links[..., 1] = np.where(links[..., 1] >= 0, links[0, 1, 1], -1)
    crowded = replace(sparse, paths=links)
    choice = dcss(crowded)
    assert choice.algorithm == "tacs1"
    assert f"the busiest link needs {24 * 23} steps where 24 hosts need 23; sparse" in choice.reason
    assert dcss(crowded, crowded=24.1).algorithm == DEFAULT
    with pytest.raises(ValueError, match="crowded of 1 or more, got 0"):
        dcss(sparse, crowded=0)


@pytest.mark.parametrize(("engine", "algorithm"), [("nue", "tacs1"), ("minhop", DEFAULT)])
def test_dcss_sees_the_crowded_link_of_janus_under_nue(engine, algorithm):
    """64 hosts of as many leaf switches: the tables of one routing engine crowd a link, those of another do not."""
    tables = shared_data(f"fabrics/derived-ibsim-opensm/janus.{engine}.opensm-lfts.dump.xz")
    found = load(shared_data("fabrics/janus-2014.ibnetdiscover.xz"), lfts=tables).routes
    fabric = found.fabric
    leaves = network_of(TopologyInterface.place(fabric.hosts, found)).leaf
    _, first = np.unique(leaves, return_index=True)
    names = [fabric.hosts[host] for host in first[:64]]
    choice = dcss(network_of(TopologyInterface.place(names, found)))
    assert choice.algorithm == algorithm, choice.reason
    assert ("busiest link" in choice.reason) == (algorithm != DEFAULT)
