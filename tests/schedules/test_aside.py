"""Hosts that stand aside: which, what they send and receive, and how long an allreduce takes with one at half rate."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.networks import job, jobs, slowed
from tests.support import examples
from topompi.netsim.flows import run
from topompi.schedules import ALGORITHMS, check, make
from topompi.schedules.phases import taken
from topompi.schedules.registry import suited
from topompi.schedules.slowhosts import host_rates, standing_aside, without_slow_hosts
from topompi.schedules.symmetric.aside import parts_of
from topompi.views.program import program_of, wiring_of


@st.composite
def uneven(draw, **most):
    """A job of at least three hosts, some with slow links."""
    network = draw(jobs(**most).filter(lambda one: one.num_hosts > 2))
    hosts = draw(st.lists(st.integers(0, network.num_hosts - 1), max_size=3, unique=True))
    return slowed(network, {host: draw(st.sampled_from([0.125, 0.4, 0.5, 0.9])) for host in hosts})


def seconds(rates, ranks, aside):
    """Time of the busiest host's link per byte, host by host, from what each rank sends."""
    within = sum(many for host, many in enumerate(ranks) if host not in aside)
    beside = sum(ranks) - within
    times = []
    for host, many in enumerate(ranks):
        sent = many if host in aside else 2 * (within - 1) / within + many * beside / within
        times.append(sent / rates[host])
    return max(times)


@given(uneven(most_hosts=6))
@examples(60)
def test_no_other_hosts_that_stand_aside_would_be_faster(network):
    rates, ranks = host_rates(network), np.bincount(network.rank_host).tolist()
    hosts = range(network.num_hosts)
    for host in hosts:
        after, before = network.links[host, (host + 1) % len(hosts)], network.links[host - 1, host]
        own = [network.capacity[after[0]], network.capacity[before[before >= 0][-1]]]
        assert rates[host] == min(own)
    every = [set(some) for size in range(len(hosts)) for some in itertools.combinations(hosts, size)]
    # Hosts of equal rates stand aside together; whole hosts of one rank make the best set one of the slowest hosts.
    some = [one for one in every if max(ranks) == 1 or not one]
    best = min(seconds(rates, ranks, one) for one in some)
    aside = set(np.flatnonzero(standing_aside(network)).tolist())
    found = seconds(rates, ranks, aside)
    assert found <= seconds(rates, ranks, set())
    assert max(ranks) > 1 or found == pytest.approx(best)
    assert not aside or found < seconds(rates, ranks, set())


ALL_BUT_ONE_SLOW = slowed(job("XGFT(1; 3; 1)", range(3), [1] * 3), {0: 0.125, 1: 0.125})  # one rank is left to exchange
SEVERAL_SLOW = slowed(job("XGFT(2; 16,4; 1,16)", range(56), [1] * 56), {5: 0.5, 40: 0.5})


@given(network=uneven(most_hosts=8, most_ranks=2), segments=st.none() | st.integers(1, 5))
@example(network=ALL_BUT_ONE_SLOW, segments=None)
@example(network=SEVERAL_SLOW, segments=3)
@examples(60)
def test_who_stands_aside_sends_a_vector_and_receives_one(network, segments):
    schedule = make("allreduce", "aside", network, blocks=segments)
    check(schedule)
    sent, received = (
        np.bincount(getattr(schedule, end)[schedule.messages], schedule.count[schedule.messages], schedule.size)
        for end in ("source", "destination")
    )
    aside = standing_aside(network)[network.rank_host]
    beside, within, blocks = int(aside.sum()), int((~aside).sum()), schedule.blocks
    assert schedule.blocks % (within * (segments or (8 if beside else 1))) == 0
    assert (sent[aside] == blocks).all()
    assert (received[aside] == blocks).all()
    others = blocks * (2 * (within - 1) + beside) / within
    assert sent[~aside].sum() == pytest.approx(within * others)
    # Of any steps, a phase makes the rows that all of it has there; the cost model asks for a few.
    for _, phase in schedule.phases:
        some = np.unique(np.random.default_rng(1).integers(0, phase.steps, 5))
        rows = phase.rows()
        wanted = rows[np.isin(rows[:, 0], some)]
        assert sorted(map(tuple, phase.at(some).tolist())) == sorted(map(tuple, wanted.tolist()))
        assert (taken(rows, 0) == phase.of_rank(0)).all()


@pytest.mark.parametrize(("spec", "hosts"), [("XGFT(2; 6,4; 1,6)", 12), ("torus:4x4", 16), ("dragonfly:3,2,2", 18)])
def test_a_host_at_half_rate_costs_little_where_it_doubles_the_time_of_a_ring(spec, hosts):
    whole = job(spec, range(hosts), [1] * hosts)
    whole = replace(whole, latency=np.zeros(len(whole.capacity)))
    slow = slowed(whole, {5: 0.5})

    def simulated(network, algorithm, blocks=None):
        schedule = make("allreduce", algorithm, network, blocks=blocks)
        return float(run(wiring_of(network), [program_of(schedule, network, 1e6 / schedule.blocks)]).job_seconds[0])

    # The slow host's own link takes 1 / (1 - 1/p) of the time without a fault, whatever the schedule.
    least = simulated(whole, "ring") / (1 - 1 / hosts)
    assert simulated(slow, "ring") > 1.8 * least * (1 - 1 / hosts)
    assert least * (1 - 1e-9) <= simulated(slow, "aside", 32) < 1.1 * least


@given(uneven(most_hosts=8, most_ranks=1))
@examples(24)
def test_only_the_links_of_hosts_that_stand_aside_are_raised(network):
    raised, aside = without_slow_hosts(network), standing_aside(network)
    changed = np.flatnonzero(raised.capacity != network.capacity)
    own = {int(link) for host in np.flatnonzero(aside) for link in _ends(network, int(host))}
    assert set(changed.tolist()) <= own
    assert (host_rates(raised)[aside] == host_rates(network)[~aside].min()).all()


def _ends(network, host):
    after, before = network.links[host, (host + 1) % network.num_hosts], network.links[host - 1, host]
    return after[0], before[before >= 0][-1]


def test_longer_vectors_and_fewer_owners_make_more_segments():
    few, many = (slowed(job("XGFT(2; 5,4; 1,4)", range(hosts), [1] * hosts), {2: 0.5}) for hosts in (6, 12))
    numbers = [[parts_of(network, 1 << power) for power in range(10, 31)] for network in (few, many)]
    assert all(sorted(some) == some for some in numbers)
    assert all(one >= other for one, other in zip(*numbers, strict=True))
    assert (numbers[0][0], numbers[0][-1]) == (1, 64)
    assert parts_of(job("XGFT(2; 5,4; 1,4)", range(6), [1] * 6), 1 << 30) == 1
    # Start-ups matter little on slow networks; there a share has at least 4 KiB.
    slow = replace(few, capacity=few.capacity / 400)
    assert [parts_of(slow, 5 * 4096 * number) for number in (1, 5, 20)] == [1, 5, 20]


def test_algorithms_for_slow_hosts_are_listed_where_some_are_slow():
    whole = job("XGFT(2; 5,4; 1,4)", range(8), [1] * 8)
    assert "aside" not in suited("allreduce", whole)
    assert suited("allreduce", slowed(whole, {2: 0.5})) == [
        name for name, one in ALGORITHMS["allreduce"].items() if one.needs in ("", "slow hosts")
    ]
    assert suited("bcast", whole) == list(ALGORITHMS["bcast"])
