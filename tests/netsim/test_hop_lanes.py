"""Lanes by hop: dependency graphs without cycles, dragonflies in the packet model, and service lanes beside hops."""

import re
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.netsim.test_packets import EAGER, LATENCY, MTU, PACKET, RATE, flows, program, ring
from tests.networks import job
from topompi.netsim import NetsimError, Program
from topompi.netsim import run as flow
from topompi.netsim.packets import Settings, dependency_cycle, least_hop_lanes, run
from topompi.schedules import make
from topompi.topology import load
from topompi.topology.synthetic import group_of_switches
from topompi.views.program import program_of
from topompi.views.tables import tables_of

pytest.importorskip("topompi.netsim.packets._packets", reason="topompi was installed without a C compiler")

few = settings(max_examples=40, deadline=None)
DRAGONFLIES = ("dragonfly:4,2,2", "dragonfly:3,1,2,4", "dragonfly:2,1,3,5", "dragonfly:4,1,1,3")


def tables(spec, groups=False, seed=None):
    """The network of a synthetic fabric with one rate; with groups, lanes rise behind global links alone."""
    routes = load(spec).routes
    of = group_of_switches(routes.fabric) if groups else None
    found = tables_of(routes, rate=RATE, latency=LATENCY, groups=of, seed=seed)
    return replace(found, rate=np.full(found.num_links, RATE))


def every_pair(hosts):
    first, second = (axis.ravel() for axis in np.indices((hosts, hosts)))
    return first[first != second], second[first != second]


def route(network, source, destination):
    """A route's links, one by one."""
    return [link for link in network.paths(np.array([source]), np.array([destination]))[0].tolist() if link >= 0]


def lanes_of(network, links, hop_lanes, rises):
    """The lane on each link of a route, by the rule in words."""
    lanes, lane = [0], 0
    for before, link in pairwise(links):
        if rises[before] and network.target[link] >= network.first_switch:
            lane = min(lane + 1, hop_lanes - 1)
        lanes.append(lane)
    return lanes


def oracle(network, source, destination, hop_lanes, rises):
    """The channel dependency graph, made link by link."""
    graph = nx.DiGraph()
    for pair in zip(source.tolist(), destination.tolist(), strict=True):
        links = route(network, *pair)
        vertices = list(zip(links, lanes_of(network, links, hop_lanes, rises), strict=True))
        inside = [one for one in vertices if network.target[one[0]] >= network.first_switch]
        graph.add_edges_from(pairwise(inside))
    return graph


@st.composite
def fabrics(draw):
    """A dragonfly, a Dragonfly+, a torus or a tree, with its groups if it has any."""
    kind = draw(st.sampled_from(["dragonfly", "dragonfly+", "torus", "xgft"]))
    if kind == "torus":
        return f"torus:{draw(st.integers(3, 5))}x{draw(st.integers(1, 4))}", False
    if kind == "xgft":
        return f"xgft:{draw(st.integers(1, 3))},3,2;1,{draw(st.integers(1, 3))},2", False
    first, second = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    links = draw(st.integers(0, 2))
    most = (first if kind == "dragonfly" else second) * links + 1
    numbers = (first, 1, links) if kind == "dragonfly" else (first, second, 1, links)
    return f"{kind}:{','.join(map(str, numbers))},{draw(st.integers(1, min(most, 6)))}", draw(st.booleans())


@few
@given(fabrics(), st.one_of(st.none(), st.integers(0, 99)))
def test_routes_are_shortest_and_joined_link_to_link(fabric, seed):
    network = tables(*fabric, seed=seed)
    graph = nx.DiGraph(zip(network.source.tolist(), network.target.tolist(), strict=True))
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for source, destination in zip(*every_pair(network.num_hosts), strict=True):
        links = route(network, source, destination)
        assert len(links) == lengths[source][destination]
        assert network.source[links[0]] == source
        assert network.target[links[-1]] == destination
        assert all(network.target[first] == network.source[then] for first, then in pairwise(links))


@few
@given(fabrics(), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 99)))
def test_a_cycle_is_found_exactly_if_the_graph_of_links_and_lanes_has_one(fabric, hop_lanes, seed):
    network = tables(*fabric, seed=seed)
    pairs = every_pair(network.num_hosts)
    rises = network.rises_behind
    graph = oracle(network, *pairs, hop_lanes, rises)
    cycle = dependency_cycle(network, *pairs, hop_lanes)
    assert (cycle == []) == nx.is_directed_acyclic_graph(graph)
    links = {(first[0], then[0]) for first, then in graph.edges}
    assert all(step in links for step in pairwise([*cycle, *cycle[:1]]))


@few
@given(fabrics(), st.one_of(st.none(), st.integers(0, 99)))
def test_a_lane_per_link_between_switches_leaves_no_cycle(fabric, seed):
    network = tables(fabric[0], seed=seed)
    pairs = every_pair(network.num_hosts)
    longest = max((len(route(network, *pair)) for pair in zip(*pairs, strict=True)), default=2)
    assert nx.is_directed_acyclic_graph(oracle(network, *pairs, max(1, longest - 2), network.rises_behind))
    assert least_hop_lanes(network, *pairs) <= max(1, longest - 2)


@pytest.mark.parametrize(("spec", "by_hop", "by_group"), [("dragonfly:4,2,2", 3, 3), ("dragonfly:4,2,1", 3, 2)])
def test_dragonflies_need_more_than_one_lane_and_trees_and_dragonflies_plus_do_not(spec, by_hop, by_group):
    for groups, needed in ((False, by_hop), (True, by_group)):
        network = tables(spec, groups)
        pairs = every_pair(network.num_hosts)
        assert least_hop_lanes(network, *pairs) == needed
        assert all(dependency_cycle(network, *pairs, fewer) for fewer in range(1, needed))
    for other in ("dragonfly+:3,2,1,2", "dragonfly+:2,4,1,1,3", "xgft:3,3,2;1,2,2"):
        network = tables(other)
        assert least_hop_lanes(network, *every_pair(network.num_hosts)) == 1


def test_lanes_that_do_not_rise_on_a_circle_never_suffice():
    still = replace(ring(), rises=np.zeros(12, dtype=bool))
    with pytest.raises(NetsimError, match="expecting lanes that rise on each circle, got switch"):
        least_hop_lanes(still, *every_pair(4))


def alltoall(spec, nbytes):
    network = job(spec, range(load(spec).fabric.num_hosts), [1] * load(spec).fabric.num_hosts)
    return program_of(make("alltoall", "shift", network), network, nbytes)


@pytest.mark.parametrize("queueing", ["output", "input"])
@pytest.mark.parametrize("spec", DRAGONFLIES)
def test_an_alltoall_on_a_dragonfly_ends_within_ten_percent_of_flows(spec, queueing):
    network, one = tables(spec), alltoall(spec, 2**18)
    lanes = least_hop_lanes(network, *every_pair(network.num_hosts))
    kept = Settings(lanes=lanes, hop_lanes=lanes, buffer=2**17 * lanes, queueing=queueing)
    done = run(network, [one], settings=kept)
    assert done.counts["lost_room"] == done.counts["in_buffers"] == 0
    assert 0.98 < done.job_seconds[0] / flow(network.wiring(), [one]).job_seconds[0] < 1.1


def test_a_dragonfly_with_one_lane_is_refused_with_the_circle():
    with pytest.raises(
        NetsimError, match=r"lane 0: expecting routes without a circle .* \(more hop_lanes may break it\)"
    ):
        run(tables(DRAGONFLIES[0]), [alltoall(DRAGONFLIES[0], 4096)])


def test_a_ring_deadlocks_with_one_lane_and_not_with_lanes_by_hop():
    round_trip = flows(4, *((host, (host + 2) % 4) for host in range(4)))
    with pytest.raises(NetsimError, match="expecting no deadlock"):
        run(ring(), [round_trip], hosts=EAGER, settings=Settings(buffer=MTU), circles=True)
    done = run(ring(), [round_trip], hosts=EAGER, settings=Settings(buffer=2 * MTU, lanes=2, hop_lanes=2))
    assert done.job_seconds[0] >= 200 * PACKET  # each link between switches carries two flows


def test_a_deadlock_between_lanes_is_named_where_too_few_rise():
    """Three hops and two lanes: packets on the last lane wait for each other as they would on one."""
    way = flows(8, *((host, (host + 4) % 8) for host in range(8)), nbytes=1000 * MTU)
    with pytest.raises(NetsimError, match="expecting no deadlock, got one of switch"):
        run(ring(8), [way], hosts=EAGER, settings=Settings(buffer=2 * MTU, lanes=2, hop_lanes=2), circles=True)


@pytest.mark.parametrize("queueing", ["output", "input"])
@pytest.mark.parametrize("lane", [0, 1])
def test_packets_rise_within_the_lanes_of_their_service(queueing, lane):
    """Host 0 to host 3 of a ring: three links between switches on the lanes 0, 1 and 2 of the service lane."""
    kept = Settings(buffer=6 * MTU, lanes=6, hop_lanes=3, queueing=queueing)
    found = run(ring(), [flows(4, (0, 3), lane=lane)], hosts=EAGER, settings=kept)
    expected = np.zeros((12, 6), dtype=int)
    for link, hop in ((0, 0), (8, 0), (9, 1), (10, 2), (4 + 3, 2)):
        expected[link, 3 * lane + hop] = 100 * MTU
    assert (found.lane_bytes == expected).all()


def test_jobs_of_different_services_do_not_wait_for_each_other():
    """The victim of a blocked head is free on a service lane of its own, whose packets rise as the others do."""
    crowd = flows(4, *((host, (host + 2) % 4) for host in range(4)), nbytes=100 * MTU)
    alone = run(ring(), [flows(4, (0, 1))], hosts=EAGER, settings=Settings(lanes=2, hop_lanes=2)).job_seconds[0]
    kept = Settings(lanes=4, hop_lanes=2, buffer=2**18)
    beside = run(ring(), [flows(4, (0, 1), lane=1), crowd], hosts=EAGER, settings=kept).job_seconds[0]
    assert alone <= beside < 3.1 * alone  # it shares links with two flows


@few
@given(st.integers(0, 2**32 - 1))
def test_bytes_cross_the_links_and_lanes_of_the_routes_and_no_room_is_lost(seed):
    draw = np.random.default_rng(seed)
    spec = ("dragonfly:3,1,2", "torus:4x3", "dragonfly+:2,2,2,1", "xgft:4,3;1,2")[seed % 4]
    network = tables(spec, seed=None if seed % 3 else seed % 1000)
    size, services = network.num_hosts, int(draw.integers(1, 4))
    hop_lanes = least_hop_lanes(network, *every_pair(size))
    kept = Settings(
        mtu=int(draw.choice([1024, 4096])),
        lanes=services * hop_lanes,
        hop_lanes=hop_lanes,
        buffer=services * hop_lanes * int(draw.choice([4096, 16384])),
        queueing=str(draw.choice(["output", "input"])),
        control=int(draw.choice([0, 64])),
    )
    expected, jobs = np.zeros((network.num_links, kept.lanes), dtype=int), list[Program]()
    for service in range(services):
        count = int(draw.integers(1, 40))
        source = draw.integers(0, size, count)
        to = (source + draw.integers(1, size, count)) % size
        nbytes = draw.choice([1, 5000, 60_000], count)
        jobs.append(program(size, *((step, *row) for step, row in enumerate(zip(source, to, nbytes, strict=True)))))
        jobs[-1] = replace(jobs[-1], lane=service, window=0)
        for pair, sent in zip(zip(source, to, strict=True), nbytes.tolist(), strict=True):
            links = route(network, *pair)
            lanes = lanes_of(network, links, hop_lanes, network.rises_behind)
            for link, lane in zip(links, lanes, strict=True):
                expected[link, service * hop_lanes + lane] += sent
    found = run(network, jobs, settings=kept)
    assert found.counts["lost_room"] == found.counts["in_buffers"] == 0
    assert (found.lane_bytes == expected).all()


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"hop_lanes": 0}, "packets: hop_lanes: expecting at least 1, got 0"),
        ({"lanes": 3, "hop_lanes": 2}, "packets: lanes: expecting a multiple of 2 hop_lanes, got 3"),
    ],
)
def test_wrong_numbers_of_lanes_are_refused(about, message):
    with pytest.raises(NetsimError, match=re.escape(message)):
        Settings(**about)


def test_a_service_lane_beyond_the_last_is_refused():
    with pytest.raises(NetsimError, match=r"expecting a lane in range\(2\), got 2"):
        run(ring(), [flows(4, (0, 1), lane=2)], settings=Settings(lanes=6, hop_lanes=3))


def test_a_wrong_shape_of_rises_is_refused():
    with pytest.raises(NetsimError, match="rises: expecting a truth value of each link"):
        replace(ring(), rises=np.zeros(3, dtype=bool))
