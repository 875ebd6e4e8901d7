"""Pollard's network study, in small: its patterns, its mixes and placements, and drawn routes."""

from __future__ import annotations

import numpy as np
import pytest

from studies.pollard.network import NAMES, Setting, fragments, machine, mix_of, placed, slowdowns
from studies.pollard.patterns import trace
from studies.pollard.speedups import SETTINGS
from studies.routing import fat_tree
from topompi.machine.interference.network import SharedNetwork, components
from topompi.machine.interference.replay import replay
from topompi.netsim import SEND


def test_drawn_routes_are_shortest_reach_every_host_and_differ_from_d_mod_k():
    _, tables, drawn = fat_tree("xgft:3,3,2;1,3,2", 0.0, 3)
    source, target = np.divmod(np.arange(tables.num_hosts**2), tables.num_hosts)
    apart = source != target
    there, other = (one.paths(source[apart], target[apart]) for one in (tables, drawn))
    assert ((there >= 0).sum(axis=1) == (other >= 0).sum(axis=1)).all()
    assert (there != other).any()
    assert (fat_tree("xgft:3,3,2;1,3,2", 0.0, 3)[2].next_link == drawn.next_link).all()
    last = other[np.arange(len(other)), (other >= 0).sum(axis=1) - 1]
    assert (drawn.target[last] == target[apart]).all()


@pytest.mark.parametrize("pattern", NAMES)
@pytest.mark.parametrize("share", ["mean", "each"])
def test_a_rank_of_every_pattern_sends_the_same_bytes_in_the_mean(pattern, share):
    made = trace(pattern, 96, 5, 1 << 20, share=share).ranks
    assert made.amount[made.kind == SEND].sum() / 96 == pytest.approx(1 << 20)
    if share == "each":
        sent = np.bincount(made.rank[made.kind == SEND], made.amount[made.kind == SEND], 96)
        assert sent == pytest.approx(np.full(96, 1 << 20))
    assert (made.messages.nbytes > 0).all()  # every send has its receive, of the same bytes


def test_pairs_are_a_matching_and_meshes_exchange_both_ways_with_near_ranks_alone():
    pairs = trace("Pairs", 64, 5, 1024, share="message").ranks.messages
    assert sorted(pairs.source) == sorted(pairs.destination) == list(range(64))
    assert (pairs.destination[np.argsort(pairs.source)][pairs.destination] == pairs.source).all()
    mesh = trace("Unstr-mesh", 64, 5, 1024, share="message").ranks.messages
    ends = set(zip(mesh.source.tolist(), mesh.destination.tolist(), strict=True))
    assert ends == {(other, one) for one, other in ends}
    place = np.stack(np.unravel_index(np.arange(64), (4, 4, 4)), axis=1)
    assert (np.abs(place[mesh.source] - place[mesh.destination]).max(axis=1) == 1).all()


def test_jobs_on_a_fragmented_machine_have_nodes_of_their_own_in_pieces():
    found = fragments(1000, [200, 300, 100], 16, seed=1)
    together = np.concatenate(found)
    assert [len(one) for one in found] == [200, 300, 100]
    assert len(np.unique(together)) == 600
    assert ((np.diff(found[0]) > 1).sum()) > 10


@pytest.fixture(scope="module")
def small():
    return machine(4, (16, 20, 24))


def test_isolated_mixes_share_no_link_and_take_the_time_that_they_take_alone(small):
    for seed in (1, 2, 3):
        jobs = mix_of(small, seed)
        programs = placed(small, jobs, "isolated", Setting(), seed)
        network = SharedNetwork(small.routed)
        assert len(components(network, programs)) == len(jobs)
        found = replay(network, programs)
        assert (found.sharing == found.alone).all()


def test_no_job_is_faster_than_on_a_crossbar_and_random_nodes_cost_more_in_the_mean(small):
    found = [slow for seed in range(1, 5) for _, slow in slowdowns(small, seed, SETTINGS["each rank sends as much"])]
    assert min(min(slow.values()) for slow in found) > 1 - 1e-9
    assert np.mean([slow["random"] for slow in found]) > np.mean([slow["isolated"] for slow in found])
