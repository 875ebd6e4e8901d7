"""The model of run times ``links``: exact cases, its properties, and its error against a simulation of messages."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.interference.mixes import draw, modelled, simulated
from tests.support import examples
from tests.workloads import random_workload
from topompi.machine.interference import InterferenceError, LinkSpeed
from topompi.machine.interference.contention import speeds
from topompi.machine.interference.streams import PATTERNS, demands_of, network_of, steps_of, stream_of
from topompi.machine.jobs import Cluster, JobsError, Observer, Workload, find_speed, simulate
from topompi.machine.jobs.allocation import Placement
from topompi.machine.jobs.allocation.oblivious import First
from topompi.machine.jobs.nodestates import NodeStates
from topompi.topology import load
from topompi.views.cluster import cluster_of

RATE = 4e9  # bytes/s of 4xQDR
FABRICS = ("xgft:4,4;1,2", "xgft:3,3,3;1,2,1", "dragonfly:2,2,1", "torus:3x3@hosts_per_switch=3")


@cache
def cluster(name: str) -> Cluster:
    options = "," if "@" in name else "@"
    return cluster_of(load(f"{name}{options}rate=4xQDR").routes)


def ring(workload: Workload, **columns: object) -> Workload:
    """The same jobs, which send around rings at full rate in half of their time, unless columns say otherwise."""
    count = len(workload)
    given = {"pattern": ["ring"] * count, "communication": [0.5] * count, "injection": [RATE] * count}
    return workload.with_columns(**{**given, **columns})


class Watch(Observer):
    """The rates of all running jobs after each pass, and the seconds of the passes."""

    def __init__(self) -> None:
        self.told: list[tuple[int, dict[int, float]]] = []

    def passed(self, situation) -> None:
        self.told.append((situation.now, dict.fromkeys(situation.state.running, 1.0)))


class Recorded(LinkSpeed):
    """The model, which also writes down the rates that it gives."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.given: list[tuple[set[int], dict[int, float]]] = []

    def on(self, workload, cluster):
        made = super().on(workload, cluster)
        rates = made.rates

        def told(state):
            found = rates(state)
            self.given.append(({*state.running}, dict(found)))
            self.states.append({job: placement.nodes.copy() for job, (_, placement) in state.running.items()})
            return found

        self.states: list[dict[int, np.ndarray]] = []
        self.made, made.rates = made, told
        return made


def test_two_rings_over_one_cable_take_twice_as_long_to_communicate_while_both_do():
    # Two leaves of two nodes and one cable between them; each ring crosses it once in each direction, at its full rate.
    jobs = ring(Workload.of("two", submit=[0, 0], run=[1000, 1000], nodes=[2, 2]), communication=[1.0, 1.0])
    machine = cluster("xgft:2,2;1,1")
    across = simulate(jobs, machine, allocator=given_nodes([[0, 2], [1, 3]]), speed="links")
    assert across.end.tolist() == [2000, 2000]
    inside = simulate(jobs, machine, allocator=given_nodes([[0, 1], [2, 3]]), speed="links")
    assert inside.end.tolist() == [1000, 1000]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_partner_that_never_computes_takes_half_the_rate_and_meets_the_job_for_its_share_of_the_time(share: float):
    network = network_of(cluster("xgft:2,2;1,1"))
    jobs = ring(Workload.of("two", submit=[0, 0], run=[9, 9], nodes=[2, 2]), communication=[share, 1.0])
    found = speeds(streams_of(network, jobs, [[0, 2], [1, 3]]), network.capacity)
    assert found[0] == pytest.approx(1 / (1 + share))  # 1 / (1 - c + 2 c)
    met = 1 - (1 - share) / (1 + share)
    assert found[1] == pytest.approx(1 / (1 + met))


def test_a_link_that_holds_what_its_jobs_want_together_slows_nobody_and_small_wants_come_before_large_ones():
    network = network_of(cluster("xgft:3,2;1,1"))
    jobs = ring(Workload.of("three", submit=[0] * 3, run=[9] * 3, nodes=[2] * 3), communication=[1.0] * 3)
    places = [[0, 3], [1, 4], [2, 5]]
    for injection, slowdown in (
        ([1e9, 1e9, 2e9], [1, 1, 1]),
        ([1e9, 1e9, 3e9], [1, 1, 1.5]),  # 4 GB/s: 1, 1, and the rest
        ([1e9, 3e9, 4e9], [1, 2, 4 / 1.5]),
    ):
        streams = streams_of(network, jobs.with_columns(injection=injection), places)
        assert speeds(streams, network.capacity).tolist() == pytest.approx([1 / one for one in slowdown])


def given_nodes(places: list[list[int]]) -> First:
    """An allocator that gives job i the i-th list of nodes."""

    class Given(First):
        def place(self, job, state):
            nodes = np.array(places[job.number])
            return Placement(nodes) if not state.busy[nodes].any() else None

    return Given()


def streams_of(network, jobs: Workload, places, seed: int = 0):
    demands = demands_of(jobs, RATE, seed)
    found = [stream_of(network, np.array(nodes), demands, job) for job, nodes in enumerate(places)]
    return [one for one in found if one is not None]


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize(("allocator", "count"), [("disjoint", 60), pytest.param("exact", 12, marks=pytest.mark.long)])
@examples(6)
@given(seed=st.integers(0, 10**6))
def test_jobs_that_share_no_link_run_as_alone_bit_for_bit(name: str, allocator: str, count: int, seed: int):
    machine = cluster(name)
    jobs = random_workload(seed, count, machine.num_nodes)
    found, logged = (simulate(jobs, machine, allocator=allocator, speed=one) for one in (f"links:{seed}", "as-logged"))
    assert found.start.tolist() == logged.start.tolist()
    assert found.end.tolist() == logged.end.tolist()
    assert found.nodes.tolist() == logged.nodes.tolist()


@examples(60)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(FABRICS))
def test_a_further_job_speeds_up_no_other(seed: int, name: str):
    machine, rng = cluster(name), np.random.default_rng(seed)
    network, places = network_of(machine), np.array_split(rng.permutation(machine.num_nodes), rng.integers(2, 6))
    count = len(places)
    jobs = Workload.of("mix", submit=[0] * count, run=[9] * count, nodes=[len(nodes) for nodes in places])
    demands, found = demands_of(jobs, RATE, seed), np.ones(0)
    made = [stream_of(network, np.sort(nodes), demands, job) for job, nodes in enumerate(places)]
    streams = [one for one in made if one is not None]
    for some in range(1, len(streams) + 1):
        more = speeds(streams[:some], network.capacity)
        assert (more[: some - 1] <= found * (1 + 1e-12)).all()
        assert ((more > 0) & (more <= 1)).all()
        found = more


@pytest.mark.parametrize("name", FABRICS)
def test_every_job_does_the_seconds_of_its_log_as_work(name: str):
    machine = cluster(name)
    jobs = random_workload(3, 200, machine.num_nodes // 2)
    jobs = ring(Workload.of("work", submit=jobs.submit, run=50 + jobs.run, nodes=jobs.nodes))  # nobody is cut
    watch, model = Watch(), Recorded()
    outcome = simulate(jobs, machine, allocator="first", speed=model, observers=[watch])
    assert len(watch.told) == len(model.given)
    work = np.zeros(len(jobs))
    for (now, running), (after, _), (_, rates) in zip(watch.told, watch.told[1:], model.given, strict=False):
        for job in running:
            work[job] += rates.get(job, 1.0) * (after - now)
    assert (work >= jobs.run - 1e-6).all()
    assert (work < jobs.run + 1).all()  # an end is the next whole second
    slowed = (outcome.end - outcome.start > jobs.run).mean()
    assert slowed > 0.2


def test_rates_follow_from_the_running_jobs_alone_whatever_went_before():
    machine = cluster("xgft:3,3,3;1,2,1")
    jobs, model = random_workload(5, 400, 9), Recorded(7)
    states = NodeStates.of(machine, [(300, "down", [3, 12]), (700, "up", [3, 12])])
    simulate(jobs, machine, allocator="first", speed=model, node_states=states)
    network, demands, slowed = network_of(machine), demands_of(jobs, RATE, 7), 0
    for (running, rates), places in zip(model.given, model.states, strict=True):
        made = {job: stream_of(network, np.sort(places[job]), demands, job) for job in sorted(running)}
        made = {job: one for job, one in made.items() if one is not None}
        found = dict(zip(made, speeds(list(made.values()), network.capacity).tolist(), strict=True))
        assert rates == {job: rate for job, rate in found.items() if rate < 1}
        slowed += len(rates)
    assert slowed > 100


def test_jobs_that_share_nodes_share_their_links():
    machine = cluster("xgft:4,4;1,4")
    jobs = ring(Workload.of("nodes", submit=[0, 0], run=[100, 100], nodes=[2, 2]), communication=[1.0, 1.0])
    for made, slowed in ((machine, 0), (machine.with_slots(2), 2)):
        network = network_of(made)
        streams = streams_of(network, jobs, [[0, 1], [0, 1]])
        assert (speeds(streams, network.capacity) == 0.5).sum() == slowed if streams else slowed == 0


def test_a_job_without_a_request_is_never_cut_and_one_with_it_is_ended_at_it():
    machine = cluster("xgft:2,2;1,1")
    jobs = ring(
        Workload.of("two", submit=[0, 0], run=[1000, 1000], request=[0, 1500], nodes=[2, 2]), communication=[1.0, 1.0]
    )
    outcome = simulate(jobs, machine, allocator=given_nodes([[0, 2], [1, 3]]), speed="links")
    assert outcome.end.tolist() == [1750, 1500]  # 1,500 s at rate 1/2, then alone


def test_draws_depend_on_the_job_and_the_seed_alone():
    jobs = Workload.of("many", submit=range(4000), run=[9] * 4000, nodes=[2] * 4000)
    some, all_, other = (
        demands_of(jobs.select(slice(1000, 2000)), RATE),
        demands_of(jobs, RATE),
        demands_of(jobs, RATE, 1),
    )
    for name in ("pattern", "communication", "injection"):
        assert (getattr(some, name) == getattr(all_, name)[1000:2000]).all()
        assert (getattr(all_, name) != getattr(other, name)).mean() > 0.6
    assert np.bincount(all_.pattern) == pytest.approx([1000] * 4, rel=0.12)
    assert all_.communication.mean() == pytest.approx(0.3, abs=0.01)
    assert abs(np.corrcoef(all_.communication, all_.injection)[0, 1]) < 0.05


def test_columns_of_the_log_replace_draws_where_they_have_values():
    jobs = Workload.of("given", submit=[0, 0, 0], run=[9] * 3, nodes=[2] * 3)
    jobs = jobs.with_columns(pattern=["ring", "", "alltoall"], communication=[0.9, np.nan, 0.0], injection=[-1, 5, 7])
    found, drawn = demands_of(jobs, RATE), demands_of(jobs.select([0, 1, 2]).with_columns(), RATE)
    assert [PATTERNS[at] for at in found.pattern[[0, 2]]] == ["ring", "alltoall"]
    assert found.communication[[0, 2]].tolist() == [0.9, 0.0]
    assert found.injection[1:].tolist() == [5, 7]
    plain = demands_of(Workload.of("plain", submit=[0, 0, 0], run=[9] * 3, nodes=[2] * 3), RATE)
    assert (found.pattern[1], found.communication[1]) == (plain.pattern[1], plain.communication[1])
    assert found.injection[0] == plain.injection[0] == drawn.injection[0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pattern": ["star"]}, "pattern: expecting one of alltoall, ring, stencil, random, got 'star'"),
        ({"communication": [1.5]}, "communication: expecting 0 to 1, got 1.5"),
        ({"communication": ["x"]}, "communication: expecting numbers, got object"),
        ({"injection": [0.0]}, "injection: expecting more than 0 bytes/s, got 0"),
    ],
)
def test_wrong_columns_are_refused(columns, message: str):
    jobs = Workload.of("wrong", submit=[0], run=[9], nodes=[2]).with_columns(**columns)
    with pytest.raises(InterferenceError, match=message):
        simulate(jobs, cluster(FABRICS[0]), allocator="first", speed="links")


def test_a_cluster_without_routes_or_rates_and_an_allocator_that_counts_are_refused():
    jobs, known = Workload.of("one", submit=[0], run=[9], nodes=[2]), cluster("xgft:2,2;1,1")
    rate = np.where(np.arange(known.links.num_links) < 3, np.nan, RATE)
    unknown = replace(known, routes=replace(known.routes, network=replace(known.network, rate=rate)))
    with pytest.raises(InterferenceError, match="expecting a topology source with routes, got leaves and pods"):
        simulate(jobs, Cluster.regular(4, 2), allocator="first", speed="links")
    with pytest.raises(InterferenceError, match="expecting the rates of all links, got 3 unknown"):
        simulate(jobs, unknown, allocator="first", speed="links")
    with pytest.raises(JobsError, match="expecting an allocator that names nodes"):
        simulate(jobs, cluster("xgft:2,2;1,1"), allocator="counts", speed="links")
    for wrong in ("links:x", "links:-1"):
        with pytest.raises(JobsError, match="expecting links or links:SEED"):
            find_speed(wrong)


@pytest.mark.parametrize("pattern", range(len(PATTERNS)))
@pytest.mark.parametrize("size", [2, 3, 7, 12])
def test_a_node_sends_and_receives_at_most_one_message_in_a_step(pattern: int, size: int):
    steps = steps_of(pattern, size, 3)
    for source, target in steps:
        assert len(np.unique(source)) == len(source) == len(np.unique(target))
        assert (source != target).all()
        assert target.min() >= 0
        assert target.max() < size
    met = {pair for source, target in steps for pair in zip(source.tolist(), target.tolist(), strict=True)}
    count = {"alltoall": size * (size - 1), "ring": size, "random": size}
    assert len(met) == count.get(PATTERNS[pattern], len(met))
    assert PATTERNS[pattern] != "stencil" or met == {(other, one) for one, other in met}


def test_weights_are_the_loads_of_the_patterns_messages_on_the_true_routes():
    machine = cluster("xgft:3,3,3;1,2,1")
    network, rng = network_of(machine), np.random.default_rng(0)
    for pattern in range(len(PATTERNS)):
        nodes = np.sort(rng.permutation(machine.num_nodes)[:11])
        jobs = ring(Workload.of("one", submit=[0], run=[9], nodes=[11]), pattern=[PATTERNS[pattern]])
        demands = demands_of(jobs, RATE)
        stream = stream_of(network, nodes, demands, 0)
        steps = steps_of(pattern, 11, int(demands.seed[0]))
        pairs = [np.concatenate(ends) for ends in zip(*steps, strict=True)]
        loads = machine.network.loads(nodes[pairs[0]], nodes[pairs[1]], np.full(len(pairs[0]), 1 / len(steps)))
        assert loads[stream.links] == pytest.approx(stream.weight)
        assert stream.demand == pytest.approx(min(RATE, RATE / loads.max()))


def test_alternative_routes_carry_equal_parts():
    machine = cluster("xgft:3,3,3;1,2,1")
    once, table = machine.routes, machine.network.table
    twice = replace(
        once.network, next_link=np.concatenate((table, table)) if table.ndim == 3 else np.stack((table, table))
    )
    doubled = replace(
        machine, routes=replace(once, network=twice, steps=np.concatenate((once.steps, once.steps), axis=2))
    )
    assert twice.num_paths == 2
    jobs = ring(Workload.of("one", submit=[0], run=[9], nodes=[9]), pattern=["alltoall"])
    (one,), (other,) = (streams_of(network_of(made), jobs, [[*range(0, 27, 3)]]) for made in (machine, doubled))
    assert one.links.tolist() == other.links.tolist()
    assert one.weight == pytest.approx(other.weight)


@pytest.mark.parametrize("spec", ["xgft:8,8;1,4", "xgft:4,4,8;1,2,2"])
def test_speeds_are_near_those_of_simulated_messages(spec: str):
    mixes = [draw(cluster(spec), seed, 0.9, swapped) for seed in range(6) for swapped in (0.25, 2.0)]
    model, messages = (np.concatenate([speed(mix) for mix in mixes]) for speed in (modelled, simulated))
    error = model / messages - 1
    assert (messages < 0.95).mean() > 0.15
    assert abs(error.mean()) < 0.03
    assert np.abs(error).mean() < 0.04
    assert np.quantile(np.abs(error), 0.95) < 0.15
