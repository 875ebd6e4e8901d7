"""Probing: the pairs of ranks and their times; trees found in models."""

import json
import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.probe import leaves_of
from benchmarks.probe_model import MEETING, ModelNetwork
from osu_like_bench.emulate import LinkRates as LinkRates
from osu_like_bench.emulate import emulated_fabric
from tests.support import examples
from topompi.mpi.probe import Probed, ProbeError, find_levels, measure_rates, search
from topompi.mpi.probe.tournament import disjoint, tournament
from topompi.topology import load
from topompi.topology.synthetic import fat_tree

M = 1e6 / 8  # bytes/s of a Mbit/s


def leaves_found(found, fabric):
    names = np.array(fabric.hosts)
    leaf = found.levels[0].cluster
    return {frozenset(names[leaf == one].tolist()) for one in range(found.levels[0].num_clusters)}


# --- rounds ---


@given(st.integers(2, 40))
@examples(20)
def test_a_tournament_has_every_pair_once_in_the_fewest_rounds(players):
    rounds = tournament(players)
    assert sorted(pair for pairs in rounds for pair in pairs) == list(combinations(range(players), 2))
    assert len(rounds) == players - 1 + players % 2
    assert all(len({player for pair in pairs for player in pair}) == 2 * len(pairs) for pairs in rounds)


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(10, 19)), max_size=40))
@examples(20)
def test_pairs_in_rounds_are_disjoint_and_all_there(pairs):
    rounds = disjoint(sorted(pairs))
    assert sorted(pair for one in rounds for pair in one) == sorted(pairs)
    assert all(len({player for pair in one for player in pair}) == 2 * len(one) for one in rounds)
    busiest = max((sum(host in pair for pair in pairs) for host in range(20)), default=0)
    assert len(rounds) <= max(0, 2 * busiest - 1)


# --- levels ---


@given(st.permutations(range(8)), st.integers(0, 2**31), st.floats(0, 0.9))
@examples(30)
def test_levels_are_the_gaps_however_long_most_pairs_take(order, seed, share):
    """One undisturbed chain of pairs through every cluster and between the clusters is enough."""
    generator = np.random.default_rng(seed)
    place = np.array(order)
    true = np.where(place[:, None] // 2 == place // 2, 10.0, np.where(place[:, None] // 4 == place // 4, 13.0, 17.0))
    host = {int(at): number for number, at in enumerate(place)}
    kept = {(host[at], host[at + 1]) for at in range(7)}
    times = true * np.where(generator.random((8, 8)) < share, 3.0, 1.0)
    for first, second in kept:
        times[first, second] = times[second, first] = true[first, second]
    times = np.minimum(times, times.T)
    levels = find_levels(times)
    assert [level.num_clusters for level in levels] == [4, 2, 1]
    for level, size in zip(levels, (2, 4, 8), strict=True):
        same = level.cluster[:, None] == level.cluster
        assert (same == (place[:, None] // size == place // size)).all()


def test_a_gap_that_noise_explains_is_none_and_a_disturbed_pair_costs_confidence():
    times = np.array([[0, 10, 13, 13], [10, 0, 13, 13], [13, 13, 0, 10], [13, 13, 10, 0]], dtype=float)
    assert [level.num_clusters for level in find_levels(times)] == [2, 1]
    assert find_levels(times, noise=0.6)[0].confidence == pytest.approx(0.8)
    assert [level.num_clusters for level in find_levels(times, noise=1.1)] == [1]
    times[0, 3] = times[3, 0] = 30
    assert [level.confidence for level in find_levels(times)] == [1.0, 0.75]


@given(st.integers(0, 2**31))
@examples(30)
def test_pairs_that_always_take_longer_than_others_of_their_level_hide_no_leaf_of_two(seed):
    """Times as emulated networks have them: a third of the pairs takes a tenth more, in each measurement."""
    generator = np.random.default_rng(seed)
    leaf, pod = np.repeat(range(5), (2, 5, 3, 2, 4)), np.repeat(range(2), (10, 6))
    base = np.where(leaf[:, None] == leaf, 11.4, np.where(pod[:, None] == pod, 14.3, 17.2))
    more = np.triu(generator.uniform(0, 0.3, base.shape) + 1.1 * (generator.random(base.shape) < 0.35), 1)
    levels = find_levels(base + more + more.T)
    assert [level.cluster.tolist() for level in levels] == [leaf.tolist(), pod.tolist(), [0] * 16]


# --- searches in a model ---


@given(
    st.tuples(st.integers(2, 5), st.integers(1, 4), st.integers(1, 3)),
    st.floats(0, 0.5),
    st.floats(0, 0.2),
    st.integers(0, 2**31),
)
@examples(25)
def test_the_leaves_of_fat_trees_are_found_with_round_trips_half_as_long_again(children, noise, disturbed, seed):
    fabric = fat_tree(children, (1, 2, 2))
    found = search(fabric.num_hosts, ModelNetwork(fabric, noise, disturbed, seed=seed))
    assert leaves_found(found, fabric) == leaves_of(fabric)
    assert found.settled


def test_a_tree_of_64_hosts_takes_fewer_rounds_than_three_tournaments_and_two_seconds_of_the_model():
    fabric = fat_tree((8, 8), (1, 4))
    network = ModelNetwork(fabric, noise=0.5)
    found = search(64, network)
    assert leaves_found(found, fabric) == leaves_of(fabric)
    assert found.rounds < 3 * 63
    assert found.probes < 2 * (64 * 63 / 2)
    assert network.elapsed < 2.0  # of the model's clock


def test_pairs_that_disturb_each_other_are_measured_alone():
    fabric = fat_tree((4, 3), (1, 1))
    assert search(12, ModelNetwork(fabric, 0.1)).width == 6
    found = search(12, ModelNetwork(fabric, 0.1, processors=1))
    assert found.width == 1
    assert leaves_found(found, fabric) == leaves_of(fabric)


class Still:
    """Measures what it was given, and has all the time."""

    def __init__(self, round_trips):
        self._round_trips = round_trips

    def round_trips(self, rounds, trips):
        return np.array([self._round_trips[pair] for one in rounds for pair in one])

    def left(self):
        return np.inf


@pytest.mark.parametrize(("growth", "sure"), [(0.01, True), (0.035, False)])
def test_a_level_is_sure_only_if_its_hosts_join_at_about_one_time(growth, sure):
    """Eight hosts that join one after the other, each later by so much, and two elsewhere: no gap shows a level."""
    first, second = np.indices((10, 10))
    later = np.maximum(first, second) - 1
    near = 10 * (1 + growth) ** np.where(later < 7, later, 0)
    times = np.where((first < 8) == (second < 8), near, 20.0)
    found = search(10, Still(times))
    assert [level.num_clusters for level in found.levels] == [2, 1]
    assert found.settled == sure


class Hasty(Still):
    """Measures as it was given, but in a first part of all rounds, some pairs in shorter time."""

    def __init__(self, round_trips, rounds, quick):
        super().__init__(round_trips)
        self._rounds, self._quick = rounds, quick

    def round_trips(self, rounds, trips):
        found = []
        for pairs in rounds:
            self._rounds -= 1
            found += [
                self._round_trips[pair] * (self._quick.get(pair, 1) if self._rounds >= 0 else 1) for pair in pairs
            ]
        return np.array(found)


@given(st.sets(st.integers(0, 5)), st.integers(1, 27))
@examples(30)
def test_pairs_measured_while_the_machine_was_faster_for_a_moment_are_no_level(leaves, rounds):
    """Six leaves of two hosts, some of whose pairs took a sixth less until the first sweep and never again."""
    leaf = np.arange(12) // 2
    times = np.where(leaf[:, None] == leaf, 22.5, np.where(leaf[:, None] // 3 == leaf // 3, 30.0, 37.0))
    found = search(12, Hasty(times, rounds, {(2 * one, 2 * one + 1): 0.84 for one in leaves}))
    assert [level.num_clusters for level in found.levels] == [6, 2, 1]
    assert found.settled


def test_a_search_ends_in_time():
    fabric = fat_tree((4, 4), (1, 2))
    network = ModelNetwork(fabric, seconds=0.6)
    assert not search(16, network).settled
    assert network.elapsed < 0.6 + MEETING + 0.05
    with pytest.raises(ProbeError, match="--seconds"):
        search(16, ModelNetwork(fabric, seconds=0.001))


# --- ranks that sleep while they wait ---


@given(st.sampled_from(["7,2,4", "2x3x2", "3,5,3"]), st.floats(80e-6, 300e-6), st.floats(0, 0.3), st.integers(0, 2**31))
@examples(20)
def test_a_tree_measured_by_ranks_that_sleep_is_never_sure_and_says_why(spec, naps, noise, seed):
    fabric = emulated_fabric(spec, LinkRates.parse())
    network = ModelNetwork(fabric, noise, seed=seed, naps=naps)
    probed = Probed(fabric.hosts, search(fabric.num_hosts, network), None, network.elapsed)
    assert not probed.summary()["settled"]
    assert re.match(
        r"no round trip took less than \d+ us, which hides switches: .* mpi_yield_when_idle 0", probed.doubt
    )


def test_ranks_that_were_seen_to_sleep_are_said_however_short_their_round_trips():
    fabric = fat_tree((4, 3), (1, 1))
    found = search(12, ModelNetwork(fabric, 0.1))
    sure, unsure = (Probed(fabric.hosts, found, None, 1.0, yielded).summary() for yielded in (False, True))
    assert (sure["settled"], sure["yielded"], sure["doubt"]) == (True, False, "")
    assert (unsure["settled"], unsure["yielded"]) == (False, True)
    assert unsure["doubt"].startswith(
        "ranks slept while they waited for messages, which hides switches: let ranks poll"
    )


# --- rates, and the fabric ---


def modelled(spec, rates):
    fabric = emulated_fabric(spec, rates)
    network = ModelNetwork(fabric, 0.1)
    found = search(fabric.num_hosts, network)
    return fabric, Probed(fabric.hosts, found, measure_rates(found.levels, found.width, network), network.elapsed)


def rates_of(fabric):
    names = [*fabric.hosts, *fabric.switch_names]
    ends = zip(fabric.link_source, fabric.link_target, fabric.link_rate, strict=True)
    return {(names[a], names[b]): round(float(rate) / M, 3) for a, b, rate in ends}


@pytest.mark.parametrize(("spec", "uplinks"), [("4x4", "100M"), ("2x2x4", "200M,150M"), ("4,3,4", "200M")])
def test_a_probed_fabric_has_the_links_and_rates_of_the_true_one(spec, uplinks):
    fabric, probed = modelled(spec, LinkRates.parse("100M", uplinks, "h1=40M"))
    assert rates_of(probed.fabric) == rates_of(fabric)


def test_an_uplink_that_its_hosts_do_not_fill_has_the_rate_of_what_went_through():
    _, probed = modelled("3x2", LinkRates.parse("100M", "900M"))
    assert probed.rates.shared == [[False] * 3]
    assert rates_of(probed.fabric)["L1/0", "L2/0"] == 200


def test_the_written_fabric_is_a_source_with_latencies_that_add_up(tmp_path):
    _, probed = modelled("2x2x2", LinkRates.parse())
    path = tmp_path / "fabric.json"
    path.write_text(probed.document())
    read = load(path).fabric
    assert rates_of(read) == rates_of(probed.fabric)
    across = sum({float(one) for one in read.link_latency})  # one of each level
    assert 4 * across == pytest.approx(probed.found.levels[-1].round_trip)
    assert [row["clusters"] for row in json.loads(path.read_text())["probe"]["levels"]] == [4, 2, 1]
