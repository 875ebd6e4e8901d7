"""Butterflies in few steps: right for any groups, with equal loads of ranks, and chosen by the loads of links."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs
from tests.support import examples
from topompi.schedules import Schedule, check
from topompi.schedules.joins import LAG, MOST_JOINED, PIECES, START, _nestings, _over, _price, in_few_steps, joined
from topompi.schedules.phases import sequence
from topompi.schedules.schedule import INPUT, OUTPUT
from topompi.schedules.transfers import local_moves


@st.composite
def nestings(draw):
    """A number of ranks and up to two levels of nested groups of any sizes."""
    size = draw(st.integers(1, 40))
    labels = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    outer = np.array(draw(labels))
    return size, [outer, 6 * outer + np.array(draw(labels))][: draw(st.integers(0, 2))]


def allreduce(butterfly):
    """The reduce-scatter of a butterfly, then its allgather."""
    size = len(butterfly.layout)
    bounds, buffer = np.arange(PIECES * size + 1), np.full(size, OUTPUT)
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), PIECES * size),
        butterfly.reducing(bounds, buffer),
        butterfly.gathering(bounds, buffer),
    )
    return Schedule.from_phases("allreduce", size, "joined", phases, blocks=PIECES * size)


@given(nestings(), st.sampled_from([2, 3, 4, 8, 16]))
@examples(80)
def test_groups_of_any_sizes_are_joined_with_the_fewest_bytes(nesting, most):
    size, groups = nesting
    butterfly = joined(size, groups, most)
    check(allreduce(butterfly))
    assert np.diff(butterfly.messages[:, 3:]).sum() == PIECES * size * (size - 1)


@pytest.mark.parametrize(("size", "most", "steps"), [(64, 8, 2), (64, 4, 3), (16, 16, 1), (63, 8, 2), (1, 4, 0)])
def test_steps_and_equal_loads(size, most, steps):
    butterfly = joined(size, [], most)
    assert butterfly.steps == steps
    _, source, _, first, last = butterfly.messages.T
    sent = np.bincount(source, last - first, minlength=size)
    assert sent.max(initial=0) <= 1.03 * PIECES * (size - 1)


def test_groups_of_unlike_sizes_have_nearly_equal_loads_in_every_step():
    butterfly = joined(31, [np.repeat([0, 1], [15, 16])], 16)
    step, _, destination, first, last = butterfly.messages.T
    received = np.zeros((2, 31))
    np.add.at(received, (step, destination), last - first)
    assert (received.max(axis=1) <= 1.1 * received.mean(axis=1) + PIECES / 2).all()


@given(jobs(most_hosts=9, most_ranks=2))
@examples(30)
def test_the_price_of_the_choice_is_least_link_by_link(network):
    ranks = np.arange(network.num_ranks)
    chosen = in_few_steps(network, ranks)
    assert sorted(chosen.layout.tolist()) == ranks.tolist()
    check(allreduce(chosen))
    assert in_few_steps(network, ranks) is chosen  # kept

    def price(butterfly):
        times = []
        for step in range(butterfly.steps):
            loads = Counter()
            for number, source, destination, first, last in butterfly.messages.tolist():
                for now, one, other in (
                    (number, source, destination),
                    (butterfly.steps - 1 - number, destination, source),
                ):
                    if now == step:
                        hosts = network.rank_host[one], network.rank_host[other]
                        for link in network.links[hosts]:
                            loads[int(link)] += (last - first) * (link >= 0)
            times.append(max((load / network.capacity[link] for link, load in loads.items()), default=0))
        whole = 2 * PIECES * len(ranks) / network.capacity.max(initial=1)
        return (sum(times) + LAG * max(times, default=0)) / whole + START * len(butterfly.messages) / len(ranks)

    if network.num_ranks > 1 and network.grid is None:
        every = [_over(ranks, joined(len(ranks), groups, 4)) for groups in _nestings(network, ranks)]
        assert [_price(network, one) for one in every] == pytest.approx([price(one) for one in every])
        assert price(chosen) <= min(map(price, every)) * (1 + 1e-9)


def test_on_a_torus_the_order_of_ranks_does_not_matter():
    hosts = np.random.default_rng(3).permutation(16)
    prices = []
    for order in (range(16), hosts.tolist()):
        network = job("torus:4x4", order, [1] * 16)
        prices.append(_price(network, in_few_steps(network, np.arange(16))))
    assert prices[0] == pytest.approx(prices[1])


def test_a_missing_route_is_avoided_if_another_butterfly_does_without():
    network, ranks = job("dragonfly:3,2,2", range(18), [1] * 18), np.arange(18)

    def pairs(butterfly):
        return {tuple(sorted(pair)) for pair in butterfly.messages[:, 1:3].tolist()}

    others = [pairs(joined(18, groups, most)) for groups in _nestings(network, ranks) for most in MOST_JOINED]
    used = pairs(in_few_steps(network, ranks))
    one, other = next(pair for pair in sorted(used) if not all(pair in some for some in others))
    hops = network.hops.copy()
    hops[one, other] = -1
    assert (one, other) not in pairs(in_few_steps(replace(network, hops=hops), ranks))
