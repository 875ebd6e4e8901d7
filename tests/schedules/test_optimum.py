"""The least time of long messages, against all cuts, other linear programs, closed forms, and simulated schedules."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.networks import job, jobs
from tests.support import examples, shared_data
from topompi.netsim.flows import run
from topompi.schedules import Network
from topompi.schedules.analysis.bounds import lower_bound
from topompi.schedules.analysis.concurrent import concurrent_flow
from topompi.schedules.analysis.cuts import Graph, Need, fabric_graph, tree_partition, worst_cut
from topompi.schedules.analysis.optimum import LONG, optimum
from topompi.schedules.registry import ALGORITHMS
from topompi.schedules.segments import make_cut
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of
from topompi.views.program import program_of, wiring_of

KINDS = ("all", "one", "each")
NEAR = 1e-5  # relative error of flows that are rounded to units


@st.composite
def graphs(draw: st.DrawFn, most_hosts: int = 5, most_switches: int = 4) -> Graph:
    """Hosts and switches with links of several rates both ways, or one way, all reachable from each other."""
    hosts, switches = draw(st.integers(2, most_hosts)), draw(st.integers(1, most_switches))
    vertices = hosts + switches
    rates = st.sampled_from((1.0, 1.0, 2.0, 3.5))
    edges = [(one, draw(st.integers(0, one - 1)) if one > hosts else hosts) for one in range(vertices) if one != hosts]
    edges += [(b, a) for a, b in edges]
    pair = st.tuples(st.integers(0, vertices - 1), st.integers(0, vertices - 1)).filter(lambda ends: ends[0] != ends[1])
    edges += draw(st.lists(pair, max_size=8))
    tail, head = np.array(edges).T
    rate = np.array([draw(rates) for _ in edges])
    return Graph(tail, head, rate, np.arange(len(edges)), hosts, vertices)


def of_every_set(graph: Graph, need: Need) -> float:
    """The worst ratio over all sets of vertices, one after the other."""
    every = np.arange(1, 2**graph.vertices - 1)[:, None] >> np.arange(graph.vertices) & 1
    return max(need.seconds(graph, side) for side in every.astype(bool))


def by_flows(graph: Graph, weight: np.ndarray | None) -> float:
    """The rate of an allgather by a linear program with a flow to each host; free shares if ``weight`` is None.

    Variables: bytes on each edge for each receiver, shares of hosts, or their common factor.
    """
    hosts, edges = graph.hosts, len(graph.rate)
    many = hosts if weight is None else 1
    balance = np.zeros((graph.vertices, edges))
    np.add.at(balance, (graph.head, np.arange(edges)), 1)
    np.add.at(balance, (graph.tail, np.arange(edges)), -1)
    shares = (
        np.eye(graph.vertices)[:, :hosts]
        if weight is None
        else np.append(weight, np.zeros(graph.vertices - hosts))[:, None]
    )
    rows = []
    for host in range(hosts):
        others = np.flatnonzero(np.arange(graph.vertices) != host)
        row = np.zeros((len(others), hosts * edges + many))
        row[:, host * edges : (host + 1) * edges] = balance[others]
        row[:, hosts * edges :] = shares[others]
        rows.append(row)
    bounds = [(0, rate) for _ in range(hosts) for rate in graph.rate] + [(0, None)] * many
    matrix = np.concatenate(rows)
    found = linprog(
        -np.append(np.zeros(hosts * edges), np.ones(many)), A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=bounds
    )
    return -found.fun


@given(graphs(), st.data())
@examples(60)
def test_the_worst_cut_is_that_of_all_sets(graph, data):
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=graph.hosts, max_size=graph.hosts)), dtype=float)
    for kind in KINDS:
        need = Need(kind, weight, data.draw(st.integers(0, graph.hosts - 1)))
        seconds, side = worst_cut(graph, need)
        assert seconds == need.seconds(graph, side)
        assert seconds == pytest.approx(of_every_set(graph, need), rel=NEAR)


@given(graphs(), st.data())
@examples(40)
def test_an_allgather_takes_what_flows_to_each_host_take(graph, data):
    """The flows are another formulation: a maximum flow to each host, all in one linear program."""
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=graph.hosts, max_size=graph.hosts)), dtype=float)
    assert worst_cut(graph, Need("all", weight))[0] == pytest.approx(1 / by_flows(graph, weight), rel=NEAR)
    assert worst_cut(graph.reverse, Need("all", weight))[0] == pytest.approx(
        1 / by_flows(graph.reverse, weight), rel=NEAR
    )


@given(graphs())
@examples(40)
def test_free_shares_are_limited_by_sets_of_hosts_alone(graph):
    """Frank's theorem holds between hosts; switches are joined to graphs of hosts here."""
    graph = replace(graph, hosts=graph.vertices)
    rate, parts = tree_partition(graph)
    assert rate == pytest.approx(by_flows(graph, None), rel=NEAR)
    into = graph.rate[(parts[graph.head] >= 0) & (parts[graph.tail] != parts[graph.head])].sum()
    assert rate == pytest.approx(into / (len(np.unique(parts[parts >= 0])) - 1))


@given(graphs(4, 3), st.data())
@examples(15)
def test_an_alltoall_takes_what_a_flow_for_each_pair_of_hosts_takes(graph, data):
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=graph.hosts, max_size=graph.hosts)), float)
    pairs = [(a, b) for a in range(graph.hosts) for b in range(graph.hosts) if graph.home[a] != graph.home[b]]
    outer = graph.home[graph.tail] != graph.home[graph.head]  # links inside a switch's own group of hosts do not count
    tail, head, rate = graph.home[graph.tail][outer], graph.home[graph.head][outer], graph.rate[outer]
    edges = len(rate)
    if not pairs or not edges:
        return
    kept, bytes_ = (
        np.zeros((len(pairs), graph.vertices, len(pairs) * edges + 1)),
        np.zeros((len(pairs), graph.vertices)),
    )
    for number, (a, b) in enumerate(pairs):
        columns = number * edges + np.arange(edges)
        np.add.at(kept[number], (head, columns), 1)
        np.add.at(kept[number], (tail, columns), -1)
        amount = weight[a] * weight[b]
        bytes_[number, graph.home[a]], bytes_[number, graph.home[b]] = -amount, amount
    limit = np.concatenate((np.tile(np.eye(edges), len(pairs)), -rate[:, None]), axis=1)
    objective = np.append(np.zeros(len(pairs) * edges), 1.0)
    found = linprog(
        objective,
        A_ub=limit,
        b_ub=np.zeros(edges),
        A_eq=kept.reshape(-1, len(objective)),
        b_eq=bytes_.ravel(),
        method="highs",
    )
    flow = concurrent_flow(graph, weight)
    assert flow is not None
    assert flow[0] == pytest.approx(found.fun, rel=1e-6)


@given(jobs(6, 2))
@examples(25)
def test_links_of_routes_and_of_tables_agree_where_they_are_the_same(network):
    """Routes leave out links, so that their least time is no shorter; given routes cost at least as much as any."""
    alone = replace(network, paths=network.links)
    for collective in set(LONG) - {"allreduce"}:
        with_tables, with_paths = optimum(collective, network), optimum(collective, alone)
        assert with_tables.free.seconds <= with_paths.free.seconds * (1 + NEAR)
        assert with_tables.given.seconds >= with_tables.free.seconds * (1 - NEAR)
        assert with_paths.given.seconds == pytest.approx(with_tables.given.seconds, rel=NEAR)


@given(jobs(6, 2), st.data())
@examples(25)
def test_faster_links_never_make_it_longer(network, data):
    """Two parallel links are one of the sum of their rates, so a further link is a faster one."""
    network = replace(network, capacity=mixed(network, data))
    faster = network.capacity.copy()
    link = data.draw(st.integers(0, len(faster) - 1))
    faster[link] *= 2
    for collective in LONG:
        before, after = (optimum(collective, one) for one in (network, replace(network, capacity=faster)))
        assert after.free.seconds <= before.free.seconds * (1 + NEAR)
        if collective not in ("allreduce", "alltoall"):
            assert after.given.seconds <= before.given.seconds * (1 + 1e-3) or not before.given.is_reached


@given(jobs(8, 2), st.data())
@examples(25)
def test_it_is_at_least_the_bound_of_hosts_and_leaf_switches(network, data):
    network = replace(network, capacity=mixed(network, data))
    for collective in LONG:
        bound = lower_bound(network, collective, root=0)
        parts = bound.host_out, bound.host_in
        found = optimum(collective, network)
        assert found.free.seconds >= max(parts) * (1 - NEAR)
        assert found.free.seconds <= found.free.reached <= found.given.reached * (1 + NEAR)


def mixed(network: Network, data: st.DataObject) -> np.ndarray:
    """Rates of links, in units of 1 GB/s."""
    many = len(network.capacity)
    return 1e9 * np.array(data.draw(st.lists(st.sampled_from((1.0, 2.0, 4.0)), min_size=many, max_size=many)))


def on_routes(network: Network, need: Need) -> float:
    """The least time on given routes by one linear program with all pairs of hosts and all sets of hosts."""
    hosts = network.num_hosts
    pairs = [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
    rows, bound = [], []
    unit = network.capacity.max()
    for link, rate in enumerate(network.capacity):
        rows.append([float(link in network.links[pair]) for pair in pairs] + [-rate / unit])
        bound.append(0.0)
    for number in range(1, 2**hosts - 1):
        side = np.array([bool(number >> host & 1) for host in range(hosts)])
        rows.append([-float(side[a] and not side[b]) for a, b in pairs] + [0.0])
        bound.append(-need.of(side))
    return linprog([0.0] * len(pairs) + [1.0], A_ub=np.array(rows), b_ub=bound).fun / unit


@given(jobs(6, 2), st.data())
@examples(30)
def test_given_routes_take_what_all_sets_of_hosts_take(network, data):
    if network.num_hosts < 2:
        return
    network = replace(network, capacity=mixed(network, data))
    root = data.draw(st.integers(0, network.num_ranks - 1))
    ranks = np.bincount(network.rank_host).astype(float)
    for collective, kind in (("allgather", "all"), ("bcast", "one")):
        found = optimum(collective, network, root=root).given
        least = on_routes(network, Need(kind, ranks, int(network.rank_host[root])))
        assert found.seconds <= least * (1 + NEAR)
        assert found.reached >= least * (1 - NEAR)
        assert found.is_reached


FABRICS = ("XGFT(2; 4,3; 1,2)", "XGFT(2; 4,2; 1,1)", "torus:3x3", "dragonfly:2,2,1")


@pytest.mark.parametrize("spec", FABRICS)
@pytest.mark.parametrize("collective", LONG)
def test_no_schedule_of_ours_is_faster(spec, collective):
    """All families, simulated with flows without start-ups at 64 MiB, on hosts in random order, one at half rate."""
    routes = load(spec).routes
    hosts = np.random.default_rng(3).permutation(routes.fabric.num_hosts)[:8]
    network = job(spec, hosts.tolist(), [1 + (one == 2) for one in range(len(hosts))])
    slow = network.capacity.copy()
    slow[network.links[3, 4, 0]] /= 2
    network = replace(network, capacity=slow, latency=np.zeros_like(slow))
    nbytes = (64 << 20) // (network.num_ranks if collective not in ("bcast", "reduce", "allreduce") else 1)
    least, wiring = optimum(collective, network), wiring_of(network)
    fastest = np.inf
    for name in ALGORITHMS[collective]:
        made = make_cut(collective, name, network, 0, nbytes)
        seconds = float(run(wiring, [program_of(made.schedule, network, made.block_bytes)]).job_seconds[0])
        fastest = min(fastest, seconds)
        assert seconds >= least.free.seconds * nbytes * (1 - 1e-6), name
        assert collective == "alltoall" or seconds >= least.given.seconds * nbytes * (1 - 1e-6), name
    assert fastest < np.inf


def whole(spec: str, order: int | None = None) -> Network:
    """One rank on every host of a fabric, in the fabric's order or a random one."""
    routes = load(spec).routes
    hosts = list(routes.fabric.hosts)
    if order is not None:
        hosts = [hosts[one] for one in np.random.default_rng(order).permutation(len(hosts))]
    return network_of(TopologyInterface.place(hosts, routes))


@pytest.mark.parametrize(
    ("spec", "collective", "times"),
    [
        ("XGFT(2; 4,4; 1,2)", "allgather", 15),  # into the last host
        ("XGFT(2; 4,4; 1,2)", "allreduce", 2 * 15 / 16),
        ("XGFT(2; 4,4; 1,2)", "alltoall", 4 * 12 / 2),  # out of a leaf switch by two links
        ("XGFT(2; 8,2; 1,1)", "alltoall", 8 * 8),
        ("torus:4x4x4", "reduce_scatter", 63),
        ("torus:4x4x4", "bcast", 1),
        ("torus:4x4x4", "allreduce", 2 * 63 / 64),
        ("torus:8x8", "alltoall", 64 * 64 * 4 / (64 * 4)),  # 4 links between switches on average, 4 links a switch
        ("torus:16", "alltoall", 16 * 16 / 8),  # half of all pairs cross two cuts of a ring
    ],
)
def test_closed_forms(spec, collective, times):
    network = whole(spec)
    found = optimum(collective, network).free
    assert found.seconds * network.capacity.max() == pytest.approx(times)
    assert found.is_reached


@pytest.mark.parametrize("order", [None, 1])
@pytest.mark.parametrize("spec", ["torus:4x4x4", "XGFT(2; 8,4; 1,2)", "dragonfly:4,2,2"])
def test_given_routes_reach_the_optimum_on_regular_fabrics(spec, order):
    """Orders of hosts do not matter to the least time, only to schedules."""
    network = whole(spec, order)
    for collective in ("allgather", "reduce_scatter", "bcast", "reduce", "allreduce"):
        found = optimum(collective, network)
        assert found.given.is_reached
        assert found.given.seconds == pytest.approx(found.free.seconds, rel=1e-5)


def test_a_host_at_half_rate_limits_bcast_and_allreduce():
    """All must enter the slow host, and in an allreduce a part of each element must leave it, too."""
    network = whole("XGFT(1; 16; 1)")
    slow = network.capacity.copy()
    slow[[network.links[0, 1, 0], network.links[1, 0, -1]]] /= 2
    network = replace(network, capacity=slow)
    seconds = {one: optimum(one, network).free.seconds * slow.max() for one in ("bcast", "allgather", "allreduce")}
    assert seconds == pytest.approx({"bcast": 2, "allgather": 30, "allreduce": 2})
    found = optimum("allreduce", network).free
    assert found.is_reached
    assert optimum("bcast", network).free.sets[0].tolist() == [0]


@pytest.mark.parametrize(("collective", "inside"), [("bcast", False), ("reduce", True)])
def test_the_first_set_of_a_cut_sends_and_the_second_receives(collective, inside):
    network = whole("XGFT(2; 4,4; 1,4)")
    slow = network.links[5][6][0] if inside else network.links[6][5][network.links[6][5] >= 0][-1]
    found = optimum(collective, replace(network, capacity=np.where(np.arange(len(network.capacity)) == slow, 1e9, 4e9)))
    sender, receiver = found.given.sets
    assert found.given.links.tolist() == [slow]
    assert (sender if inside else receiver).tolist() == [5]


def test_a_slow_leaf_switch_is_the_cut():
    """Four hosts behind one link at a quarter of the rate must get what the twelve others have."""
    network = whole("XGFT(2; 4,4; 1,1)")
    slow = network.capacity.copy()
    up, down = network.links[0, 15, 1], network.links[15, 0, -2]
    slow[[up, down]] /= 4
    found = optimum("allgather", replace(network, capacity=slow))
    for proof in (found.free, found.given):
        assert proof.seconds * slow.max() == pytest.approx(12 * 4)
        assert [one.tolist() for one in proof.sets] == [list(range(4, 16)), [0, 1, 2, 3]]
        assert proof.links.tolist() == [down]
    assert "cut between 12 and 4 hosts" in found.free.words
    assert repr(found) == "Optimum(allgather, 1.2e-08 s/B on given routes, 1.2e-08 on any)"
    assert len(repr(found.free)) < 200


@pytest.mark.parametrize("engine", ["minhop", "dfsssp", "nue"])
def test_routes_of_janus_allow_what_any_routes_do(engine):
    """On 64 hosts of a real fabric with the tables of three routing engines."""
    tables = shared_data(f"fabrics/derived-ibsim-opensm/janus.{engine}.opensm-lfts.dump.xz")
    routes = load(shared_data("fabrics/janus-2014.ibnetdiscover.xz"), lfts=tables).routes
    network = network_of(TopologyInterface.place(list(routes.fabric.hosts[:64]), routes))
    for collective in ("allgather", "bcast"):
        found = optimum(collective, network)
        assert found.given.is_reached
        assert found.given.seconds == pytest.approx(found.free.seconds, rel=1e-5)


def test_wrong_requests_are_refused():
    network = whole("XGFT(1; 4; 1)")
    with pytest.raises(ValueError, match=r"expecting one of bcast, .*, got 'scan'"):
        optimum("scan", network)
    with pytest.raises(ValueError, match=r"expecting root in range\(4\), got 4"):
        optimum("bcast", network, root=4)


def test_one_host_needs_no_time():
    assert optimum("allreduce", job("torus:3x3@hosts_per_switch=2", [0], [3])).given.seconds == 0


def test_both_ends_of_links_are_read_from_tables_and_routes():
    """Every link of a fabric that carries routes has the same ends, up to the numbers of switches."""
    network = whole("XGFT(2; 3,3; 1,2)")
    tables, paths = fabric_graph(network), fabric_graph(replace(network, paths=network.links))
    used = np.isin(tables.link, paths.link)
    for one, other in ((tables.tail[used], paths.tail), (tables.head[used], paths.head)):
        assert len(np.unique(one)) == len(np.unique(other)) == len(np.unique(np.stack((one, other)), axis=1).T)
