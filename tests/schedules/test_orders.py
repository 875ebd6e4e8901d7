"""Orders of hosts along rings and chains: permutations, never worse than depth-first order, the best for few hosts."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs, link_loads, routes
from tests.support import examples
from topompi.network import Tables
from topompi.schedules import ALGORITHMS, Network, check, make
from topompi.schedules.network import DEPTH_FIRST
from topompi.schedules.orders import depth_first_hosts, with_order
from topompi.schedules.ringsearch import RingLoads, search
from topompi.schedules.schedule import ROOTED
from topompi.schedules.slowhosts import without_slow_hosts
from topompi.schedules.trees import depth_first, rank_clusters, ring_order

ROUTED = [
    (collective, name)
    for collective, known in ALGORITHMS.items()
    for name, algorithm in known.items()
    if algorithm.routed
]


def busiest(network, hosts):
    """Seconds per byte of the busiest link of a ring, its routes followed one by one."""
    loads = link_loads(network, zip(hosts.tolist(), np.roll(hosts, -1).tolist(), strict=True))
    return max((many / network.capacity[link] for link, many in loads.items()), default=0.0)


def hosts_of(network):
    """The hosts in the order of the network's rings."""
    return network.order if network.order is not None and len(network.order) else depth_first_hosts(network)


@st.composite
def uneven(draw):
    """A job on a random fabric with some links, between switches or of hosts, slower than the others."""
    network = draw(jobs())
    capacity = network.capacity.copy()
    for link in draw(st.lists(st.integers(0, len(capacity) - 1), max_size=6)):
        capacity[link] *= draw(st.sampled_from([0.5, 0.25]))
    return replace(network, capacity=capacity)


@st.composite
def tangled(draw, most=6):
    """Hosts with one link out and in each, and routes over arbitrary links, there and back by different ones."""
    hosts, links = draw(st.integers(3, most)), draw(st.integers(2, 8))
    random = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    paths = np.full((hosts, hosts, 4), -1, dtype=np.int32)
    for source, target in itertools.permutations(range(hosts), 2):
        some = 2 * hosts + random.choice(links, draw(st.integers(0, 2)), replace=False)
        paths[source, target, : len(some) + 2] = [source, *some, hosts + target]
    rates = random.choice(draw(st.sampled_from([[1.0], [1.0, 0.5, 0.25]])), links)
    capacity = np.concatenate((np.ones(2 * hosts), rates))
    hops = np.ones((hosts, hosts), dtype=np.int16) - np.eye(hosts, dtype=np.int16)
    unknown, leaf = np.full(len(capacity), np.nan), np.zeros((1, hosts), dtype=np.int64)
    return Network(np.arange(hosts), hops, paths, capacity, leaf, unknown)


@given(uneven())
@examples(90)
def test_the_order_of_a_network_is_a_permutation_and_never_worse_than_depth_first(network):
    found = with_order(network)
    hosts = hosts_of(found)
    assert sorted(hosts.tolist()) == list(range(network.num_hosts))
    before, after = busiest(network, depth_first_hosts(network)), busiest(network, hosts)
    assert after <= before * (1 + 1e-9)
    if len(found.order):
        even = without_slow_hosts(network)
        assert busiest(even, hosts) < busiest(even, depth_first_hosts(network))
    if network.num_hosts > 1:
        assert after >= RingLoads(network).bound * (1 - 1e-9)
    assert with_order(found) is found
    assert with_order(network) is found


@given(jobs(), st.data())
@examples(90)
def test_ranks_along_a_ring_begin_at_the_root_and_those_of_a_host_are_adjacent(network, data):
    root = data.draw(st.integers(0, network.num_ranks - 1))
    hosts = np.array(data.draw(st.permutations(range(network.num_hosts))))
    given_order = replace(network, order=hosts)
    onwards = ring_order(given_order, root=root)
    inwards = ring_order(given_order, root=root, inwards=True)
    turned = np.roll(hosts, -int(np.flatnonzero(hosts == network.rank_host[root])[0]))
    for order, wanted in ((onwards, turned), (inwards, np.roll(turned[::-1], 1))):
        assert order[0] == root
        assert sorted(order.tolist()) == list(range(network.num_ranks))
        visited = network.rank_host[order]
        assert visited[np.append(True, np.diff(visited) != 0)].tolist() == wanted.tolist()
    for same in (network, replace(network, order=DEPTH_FIRST)):
        plain = depth_first(rank_clusters(network), network.num_ranks, root=root)
        assert ring_order(same, root=root).tolist() == plain.tolist()


@pytest.mark.parametrize(("collective", "name"), ROUTED)
@given(jobs(most_hosts=6), st.data())
@examples(20)
def test_schedules_are_right_in_any_order_of_hosts_and_follow_the_ring(collective, name, network, data):
    root = data.draw(st.integers(0, network.num_ranks - 1)) if collective in ROOTED else 0
    hosts = np.array(data.draw(st.permutations(range(network.num_hosts))))
    schedule = make(collective, name, replace(network, order=hosts), root)
    check(schedule)
    check(make(collective, name, network, root))
    pairs = zip(network.rank_host[schedule.source], network.rank_host[schedule.destination], strict=True)
    between = {(int(source), int(target)) for source, target in pairs if source != target}
    if name == "packed_trees":  # its trees only begin with this order
        return
    ring = set(zip(hosts.tolist(), np.roll(hosts, -1).tolist(), strict=True))
    # The scatter before the ring follows a tree.
    assert between <= ring or "scatter" in name
    assert len(ring - between) <= 1 or network.num_hosts < 2  # a chain does not close the ring


@given(tangled())
@examples(150)
def test_the_search_finds_the_best_ring_of_few_hosts(network):
    loads, hosts = RingLoads(network), network.num_hosts
    rings = np.array([(0, *rest) for rest in itertools.permutations(range(1, hosts))])
    times = np.array([busiest(network, ring) for ring in rings])
    best = pytest.approx(times.min())
    assert loads.bound <= times.min() * (1 + 1e-9)
    assert busiest(network, search(loads, np.arange(hosts))) == best
    assert busiest(network, search(loads, rings[times.argmin()], 0)) == best
    assert busiest(network, hosts_of(with_order(network))) == best


@given(tangled(most=12))
@examples(60)
def test_loads_of_rings_are_those_of_their_routes(network):
    loads, ring = RingLoads(network), np.arange(network.num_hosts)
    (top,), _ = loads.judge(ring[None])
    assert top * loads.bound == pytest.approx(busiest(network, ring))
    assert busiest(network, search(loads, ring, 10)) <= busiest(network, ring) * (1 + 1e-9)


FABRICS = {
    "torus, block": ("torus:4x4x4", None, 3.0),
    "torus, random": ("torus:4x4x4", 64, 2.0),
    "square torus, random": ("torus:8x8", 64, 2.0),
    "part of a torus": ("torus:8x8x8", 128, 2.0),
    "dragonfly": ("dragonfly:4,2,2", None, 2.0),
    "tree": ("XGFT(2; 8,8; 1,4)", 48, 1.0),
}


@pytest.mark.parametrize("name", FABRICS)
def test_one_message_a_link_suffices_on_tori_and_dragonflies(name):
    spec, count, before = FABRICS[name]
    number = routes(spec).fabric.num_hosts
    hosts = np.arange(number) if count is None else np.random.default_rng(1).permutation(number)[:count]
    network = job(spec, hosts.tolist(), [1] * len(hosts))
    host_rate = network.capacity[network.links[0, 1, 0]]
    assert busiest(network, depth_first_hosts(network)) * host_rate == pytest.approx(before)
    found = with_order(network)
    assert busiest(network, hosts_of(found)) * host_rate == pytest.approx(1.0)
    assert (len(found.order) == 0) == (before == 1.0)
    # Lanes of several ranks a host take the order over to their own numbers of hosts.
    lanes = found.part(np.random.default_rng(2).permutation(network.num_ranks))
    assert busiest(lanes, hosts_of(lanes)) * host_rate == pytest.approx(1.0)


def test_links_at_half_rate_are_avoided_where_routes_allow_and_a_slow_host_sets_the_bound():
    network = job("torus:4x4x4", range(64), [1] * 64)
    tables = network.paths
    between = np.flatnonzero((tables.source >= tables.first_switch) & (tables.target >= tables.first_switch))
    slow = np.random.default_rng(3).choice(between, 20, replace=False)
    rate, capacity = network.capacity[network.links[0, 1, 0]], network.capacity.copy()
    capacity[slow] /= 2
    assert busiest(network, hosts_of(with_order(replace(network, capacity=capacity)))) * rate == pytest.approx(1.0)
    capacity = network.capacity.copy()
    capacity[network.links[5, 6, 0]] /= 2
    halved = replace(network, capacity=capacity)
    assert RingLoads(halved).bound * rate == pytest.approx(2.0)
    assert busiest(halved, hosts_of(with_order(halved))) * rate == pytest.approx(2.0)
    # A slow host does not hide how the other links differ, which counts if the host stands aside.
    mixed = job("torus:8x8", np.random.default_rng(1).permutation(64).tolist(), [1] * 64)
    capacity = mixed.capacity.copy()
    capacity[mixed.links[5, 6, 0]] /= 2
    halved = replace(mixed, capacity=capacity)
    assert busiest(halved, depth_first_hosts(halved)) * rate == pytest.approx(2.0)
    assert busiest(without_slow_hosts(halved), hosts_of(with_order(halved))) * rate == pytest.approx(1.0)


def test_pairs_without_a_route_are_avoided():
    network = job("torus:8x8", range(8), [1] * 8)
    ring = np.array([0, 3, 6, 1, 4, 7, 2, 5])
    hops, links = np.full((8, 8), -1, dtype=np.int16), np.full_like(network.links, -1)
    there = ring, np.roll(ring, -1)
    hops[there], links[there] = network.hops[there], network.links[there]
    np.fill_diagonal(hops, 0)
    found = with_order(replace(network, hops=hops, paths=links))
    place = int(np.flatnonzero(found.order == 0)[0])
    assert np.roll(found.order, -place).tolist() == ring.tolist()


def test_too_many_hosts_and_too_few_keep_depth_first_order(monkeypatch):
    network = job("torus:4x4x4", range(64), [1] * 64)
    monkeypatch.setattr("topompi.schedules.orders.MOST_LINKS", 64 * 64 * 8 - 1)
    assert with_order(network).order is DEPTH_FIRST
    assert with_order(job("torus:8x8", [0, 9], [2, 1])).order is DEPTH_FIRST


def test_where_depth_first_order_is_best_only_its_own_routes_are_followed(monkeypatch):
    def refuse(self):
        raise AssertionError("expecting no routes of all pairs")

    network = job("XGFT(2; 6,4; 1,3)", range(20), [2] * 20)
    hosts = network.part(np.arange(20))  # as algorithms in lanes make it, with all routes
    monkeypatch.setattr(Tables, "every_path", property(refuse))
    monkeypatch.setattr("topompi.schedules.orders.RingLoads", refuse)
    assert with_order(network).order is DEPTH_FIRST
    assert with_order(hosts).order is DEPTH_FIRST


def test_a_reduction_in_rank_order_keeps_depth_first_order():
    network = job("torus:4x4x4", range(64), [1] * 64)
    chain = ALGORITHMS["reduce"]["chain"]
    ordered, free = (chain.generate(network, 0, ordered=kept) for kept in (True, False))
    check(ordered, commutative=False)
    assert ordered.columns()["destination"].tolist() != free.columns()["destination"].tolist()
