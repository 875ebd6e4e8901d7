"""Links that have failed or slowed down: no route crosses them, nothing is undefined, and rings avoid them."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs
from tests.schedules.test_orders import busiest, hosts_of, tangled
from tests.support import examples
from topompi.mapping import Machine
from topompi.mapping.distances import MachineError
from topompi.schedules import ALGORITHMS, Model, analyse, cost, lower_bound, make, optimum
from topompi.schedules.network import DEPTH_FIRST
from topompi.schedules.orders import with_order
from topompi.schedules.ringsearch import search
from topompi.views.network import known_rates
from topompi.views.program import wiring_of

MODEL = Model.of_rate(4e9)
SOME = {"bcast": ("binomial", "chain"), "allgather": ("ring", "doubling"), "allreduce": ("ring", "halving", "aside")}


@st.composite
def failing(draw, **most):
    """A job, and the same job with some links failed: links of its routes, or any."""
    network = draw(jobs(**most).filter(lambda one: one.num_hosts > 1))
    capacity, used = network.capacity.copy(), np.unique(network.links[network.links >= 0])
    capacity[used[draw(st.lists(st.integers(0, len(used) - 1), min_size=1, max_size=4))]] = 0
    capacity[draw(st.integers(0, len(capacity) - 1))] = 0
    return network, capacity * draw(st.sampled_from([1, 1, 1, 0]))  # sometimes all links have failed


@given(failing())
@examples(60)
def test_pairs_whose_route_crosses_a_failed_link_have_no_route_and_others_keep_theirs(drawn):
    network, capacity = drawn
    failed = replace(network, capacity=capacity)
    assert (failed.capacity > 0).all()
    for source, target in itertools.product(range(network.num_hosts), repeat=2):
        route = [int(link) for link in network.links[source, target] if link >= 0]
        broken = any(capacity[link] == 0 for link in route)
        kept = [int(link) for link in failed.links[source, target] if link >= 0]
        assert kept == ([] if broken else route)
        assert failed.hops[source, target] == (-1 if broken else network.hops[source, target])
        assert all(failed.capacity[link] == capacity[link] for link in kept)


def made(collective, name, network):
    """The schedule, or None if its generator needs a route that is missing."""
    try:
        return make(collective, name, network)
    except ValueError:
        return None


def hosts_between(schedule, network):
    """Senders' and receivers' hosts of all messages."""
    rows = schedule.messages
    return network.rank_host[schedule.source[rows]], network.rank_host[schedule.destination[rows]]


@given(failing(most_hosts=6, most_ranks=2))
@examples(30)
def test_every_number_is_defined_or_the_missing_route_is_named(drawn):
    network, capacity = drawn
    failed = replace(network, capacity=capacity, latency=np.zeros(len(capacity)))
    with np.errstate(all="raise"):
        wiring_of(failed)
        for collective in ("bcast", "allgather", "allreduce", "alltoall"):
            assert lower_bound(failed, collective, root=0 if collective == "bcast" else None).seconds > 0
            least = optimum(collective, failed)
            assert 0 <= least.free.seconds <= least.given.seconds * (1 + 1e-6)
            for name in SOME.get(collective, ALGORITHMS[collective]):
                schedule = made(collective, name, failed)
                if schedule is None or (failed.hops[hosts_between(schedule, failed)] < 0).any():
                    with pytest.raises(ValueError, match="no route from host"):
                        cost(make(collective, name, failed), failed, MODEL, 1000)
                else:
                    assert 0 < cost(schedule, failed, MODEL, 1000).seconds < np.inf
                    assert analyse(schedule, failed).bound.seconds > 0


@given(tangled(), st.data())
@examples(60)
def test_a_ring_that_can_avoid_a_failed_pair_avoids_it(network, data):
    capacity = network.capacity.copy()
    capacity[data.draw(st.lists(st.integers(2 * network.num_hosts, len(capacity) - 1), min_size=1, max_size=3))] = 0
    failed = replace(network, capacity=capacity)
    rings = [(0, *rest) for rest in itertools.permutations(range(1, network.num_hosts))]
    whole = [ring for ring in rings if all(failed.hops[pair] > 0 for pair in zip(ring, np.roll(ring, -1), strict=True))]
    found = hosts_of(with_order(failed))
    assert not whole or (failed.hops[found, np.roll(found, -1)] > 0).all()


@given(tangled(most=9), st.data())
@examples(60)
def test_after_a_link_has_slowed_down_the_new_order_is_no_worse_than_the_former(network, data):
    """Also if the search spends no effort: it begins with the former order."""
    former = with_order(network).order
    capacity = network.capacity.copy()
    capacity[data.draw(st.integers(2 * network.num_hosts, len(capacity) - 1))] /= 2
    slower = replace(network, capacity=capacity)
    kept = hosts_of(replace(slower, order=former))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topompi.schedules.orders.search", partial(search, effort=0))
        found = hosts_of(with_order(slower, former))
    assert busiest(slower, found) <= busiest(slower, kept) * (1 + 1e-9)


def test_a_former_order_that_is_still_the_best_stays():
    network = job("torus:8x8", np.random.default_rng(1).permutation(64).tolist(), [1] * 64)
    order = with_order(network).order
    tables = network.paths
    between = (tables.source >= tables.first_switch) & (tables.target >= tables.first_switch)
    unused = np.setdiff1d(np.flatnonzero(between), network.links[order, np.roll(order, -1)])
    capacity = network.capacity.copy()
    capacity[unused[0]] /= 2
    assert with_order(replace(network, capacity=capacity), order).order.tolist() == order.tolist()
    assert with_order(replace(network, capacity=capacity), DEPTH_FIRST).order.tolist() != DEPTH_FIRST.tolist()


def test_the_rate_of_failed_links_is_no_known_rate_and_no_machine_takes_it():
    assert known_rates(np.array([0.0, 0.0, np.nan, 2.0])).tolist() == [0.0, 0.0, 2.0, 2.0]
    with pytest.raises(MachineError, match="expecting rates above 0 bytes/s, got 0"):
        Machine.from_matrix(None, [1, 1], [[0, 1], [1, 0]]).with_routes(np.full((2, 2, 1), -1), [0.0])
