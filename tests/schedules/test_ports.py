"""Hosts that fill several links or adapters at once: exchanges over all ports of a torus, rings both ways, stripes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job
from tests.support import examples
from topompi.netsim import run
from topompi.schedules import check, make
from topompi.schedules.analysis.optimum import optimum
from topompi.schedules.orders import with_order
from topompi.schedules.phases import taken
from topompi.schedules.registry import suited
from topompi.schedules.symmetric.allreduce import allreduce_ring
from topompi.schedules.symmetric.bucket import allgather_bucket, allreduce_bucket, reduce_scatter_bucket
from topompi.schedules.symmetric.swing import allgather_swing, allreduce_swing, reduce_scatter_swing
from topompi.topology import TopologyInterface, load_routes
from topompi.views.network import network_of
from topompi.views.program import program_of, wiring_of

MAKERS = (allreduce_bucket, allreduce_swing)


@st.composite
def grids(draw):
    """Ranks in random order on a torus of up to three dimensions, several at each place; or along a line."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(lambda one: np.prod(one) <= 40))
    return np.array(draw(st.permutations(range(int(np.prod(shape)))))).reshape(shape)


@pytest.mark.parametrize("make_one", MAKERS)
@given(grid=grids(), ports=st.integers(1, 7), blocks=st.none() | st.integers(1, 50))
@examples(30)
def test_an_allreduce_over_several_ports_sends_the_fewest_bytes(make_one, grid, ports, blocks):
    schedule = make_one(grid, ports=ports, blocks=blocks)
    check(schedule)
    sent = np.bincount(schedule.source[schedule.messages], schedule.count[schedule.messages], schedule.size)
    assert sent.sum() == 2 * (schedule.size - 1) * schedule.blocks
    if blocks is None:
        assert len(set(sent.tolist())) == 1


OF_SHARES = (reduce_scatter_bucket, allgather_bucket, reduce_scatter_swing, allgather_swing)


@pytest.mark.parametrize("make_one", OF_SHARES)
@given(grid=grids(), ports=st.integers(1, 7), counts=st.none() | st.lists(st.integers(0, 9), min_size=40, max_size=40))
@examples(25)
def test_each_exchange_over_several_ports_carries_a_piece_of_every_share(make_one, grid, ports, counts):
    given = None if counts is None else counts[: grid.size]
    schedule = make_one(grid, ports=ports, counts=given)
    check(schedule)
    moved = schedule.count[schedule.messages].sum()
    assert moved == (schedule.size - 1) * schedule.share().sum()
    assert (taken(schedule.rows(), 0) == schedule.rows_of(0)).all()


def torus(spec):
    dims = [int(one) for one in spec.split("@")[0].removeprefix("torus:").split("x")]
    return job(spec, range(int(np.prod(dims))), [1] * int(np.prod(dims)))


def with_latency(network, factor=1):
    """The network with rates times a factor, and 0.1 us for each link."""
    latency = np.full(len(network.capacity), 1e-7) / network.adapters
    return replace(network, capacity=network.capacity * factor, latency=latency)


def links_used(schedule, network):
    """The bytes on each link between switches, over those of all, shape (links between switches,)."""
    rows = schedule.messages
    loads = network.loads_of(schedule.source[rows], schedule.destination[rows], schedule.count[rows])
    return loads[network.capacity < network.capacity.max()] / schedule.blocks


@pytest.mark.parametrize(
    ("collective", "vectors"), [("allreduce", 2), ("allgather", 1), ("reduce_scatter", 1)]
)  # that each of many hosts sends
@pytest.mark.parametrize("spec", ["torus:4x4x4@ports=6", "torus:3x3x3@ports=6", "torus:5x5@ports=4"])
def test_with_a_port_for_each_direction_buckets_load_all_links_alike(spec, collective, vectors):
    """Each of p hosts sends 1 - 1/p of the vectors, each to a neighbour; D dimensions have 2 D p links."""
    network = torus(spec)
    schedule = make(collective, "bucket", network)
    hosts = network.num_hosts
    used = links_used(schedule, network) / (1 if collective == "allreduce" else hosts)
    assert used == pytest.approx(vectors * (1 - 1 / hosts) / network.ports)
    used = links_used(schedule, network)
    assert optimum(collective, network).free.seconds * schedule.blocks == pytest.approx(
        used.max() * schedule.blocks / network.capacity.min()
    )


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reduce_scatter"])
@pytest.mark.parametrize(
    ("name", "ports", "most"),
    [("bucket", {}, 1.1), ("swing_ports", {}, 1.1), ("bucket", {"ports": 1}, 6.1), ("swing", {}, 6.1)],
)
def test_long_vectors_take_about_the_least_time_if_all_ports_are_used(name, ports, most, collective):
    network = with_latency(torus("torus:4x4x4@ports=6"))
    schedule, nbytes = make(collective, name, network, **ports), (64 << 20) // (1 if collective == "allreduce" else 64)
    seconds = run(wiring_of(network), [program_of(schedule, network, nbytes / schedule.blocks)]).job_seconds[0]
    least = optimum(collective, network).free.seconds * nbytes
    assert most - 0.2 < seconds / least < most


def test_ports_are_those_of_hosts_on_tori_alone():
    assert [torus(f"torus:4x4{ports}").ports for ports in ("", "@ports=2", "@ports=4")] == [1, 2, 4]
    assert job("XGFT(2; 4,4; 1,1)", range(16), [1] * 16).ports == 1
    assert "bucket" in suited("allreduce", torus("torus:4x4"))
    assert not {"bucket", "swing_ports"} & set(suited("allreduce", job("torus:4x4", range(13), [1] * 13)))
    for collective in ("allreduce", "allgather", "reduce_scatter"):
        assert {"bucket", "swing_ports"} <= set(suited(collective, job("torus:4x4@ports=2", range(13), [1] * 13)))


def test_a_job_that_fills_no_torus_runs_rings_in_both_directions_which_share_no_link():
    network = with_order(job("torus:6x4@ports=2", range(22), [1] * 22))
    for collective in ("allreduce", "allgather", "reduce_scatter"):
        used = links_used(make(collective, "bucket", network), network)
        assert used.max() == pytest.approx(links_used(make(collective, "ring", network), network).max() / 2)
    with pytest.raises(ValueError, match="expecting 1 or 2 rings, got 3"):
        allreduce_ring(4, rings=3)


def striped(spec, striped=True):
    routes = load_routes(spec)
    return network_of(TopologyInterface.place(routes.fabric.hosts, routes), striped=striped)


@pytest.mark.parametrize("rails", [2, 3])
@pytest.mark.parametrize(("collective", "name"), [("allreduce", "ring"), ("bcast", "binomial"), ("alltoall", "shift")])
def test_messages_striped_over_equal_planes_take_the_time_of_one_plane_of_that_rate(rails, collective, name):
    both, one = striped(f"XGFT(2; 4,3; 1,2)@rails={rails}"), striped("XGFT(2; 4,3; 1,2)")
    assert (both.adapters, one.adapters) == (rails, 1)
    times = []
    for network, factor in ((both, 1), (one, rails)):
        network = with_latency(network, factor)
        schedule = make(collective, name, network)
        times.append(run(wiring_of(network), [program_of(schedule, network, 1 << 20)]).job_seconds[0])
    assert times[0] == pytest.approx(times[1])
    least = [optimum(collective, network) for network in (both, one)]
    for kind in ("free", "given"):
        assert getattr(least[0], kind).seconds == pytest.approx(getattr(least[1], kind).seconds / rails)


def test_only_rails_that_reach_all_hosts_carry_stripes():
    routes = load_routes("XGFT(1; 4; 1)@rails=2")
    assert striped("XGFT(1; 4; 1)@rails=2", striped=False).adapters == 1
    lacks = routes.fabric.adapter_host.copy()
    lacks[-1] = 0  # host 3 has one adapter, and host 0 three
    fabric = replace(routes.fabric, adapter_host=lacks)
    network = network_of(TopologyInterface.place(fabric.hosts, replace(routes, fabric=fabric)), striped=True)
    assert network.adapters == 1
