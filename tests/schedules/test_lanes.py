"""Collectives in lanes: proofs on any hosts, the data between hosts, and the number of steps by segments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs, slowed
from topompi.schedules import check
from topompi.schedules.lanes.carriers import LaneCarriers
from topompi.schedules.lanes.scans import scan_lanes
from topompi.schedules.registry import ALGORITHMS, make
from topompi.schedules.schedule import ROOTED
from topompi.schedules.symmetric.scan import scan_chain, scan_doubling

ENTRIES = [
    (collective, name)
    for collective, known in ALGORITHMS.items()
    for name, one in known.items()
    if one.cut == "segments" and one.alone
]
EVEN = job("XGFT(2; 5,4; 1,4)", range(0, 12, 2), [3] * 6)
UNEVEN = job("XGFT(2; 5,4; 1,4)", range(0, 12, 2), [1, 4, 2, 2, 4, 1])
SLOW = slowed(EVEN, {2: 0.5})


def between_hosts(schedule, network):
    """Blocks that each host sends to others."""
    host = network.rank_host
    away = host[schedule.source] != host[schedule.destination]
    return np.bincount(host[schedule.source[away]], schedule.count[away], network.num_hosts)


@pytest.mark.parametrize("network", [EVEN, UNEVEN, SLOW], ids=["even", "uneven", "a slow host"])
@pytest.mark.parametrize(("collective", "name"), ENTRIES)
def test_a_host_sends_to_others_what_it_would_with_one_rank(collective, name, network):
    hosts, entry = LaneCarriers(network).across, ALGORITHMS[collective][name]
    root = 4
    alone = make(collective, entry.alone, hosts, int(network.rank_host[root]) if collective in ROOTED else 0)
    together = make(collective, name, network, root)
    share = together.blocks / alone.blocks
    assert (between_hosts(together, network) == share * between_hosts(alone, hosts)).all()


def test_there_are_as_many_lanes_as_the_median_host_has_ranks():
    lanes = LaneCarriers(UNEVEN)
    assert lanes.number == 2
    assert (UNEVEN.rank_host[lanes.carrier] == np.arange(6)).all(), "one rank of each host"
    assert len(np.unique(lanes.carrier[:, 1])) == 2, "a host with many ranks has lanes on different ones"
    assert len(np.unique(lanes.carrier[:, 0])) == 1, "a host with one rank has all lanes on it"


@pytest.mark.parametrize("segments", [1, 2, 8])
def test_each_segment_adds_one_step_to_those_of_the_exchange_between_hosts(segments):
    between = make("allreduce", "halving", LaneCarriers(EVEN).across).num_steps
    made = make("allreduce", "lanes_halving", EVEN, blocks=segments)
    before = 1  # each rank moves its own parts
    assert made.num_steps - segments == make("allreduce", "lanes_halving", EVEN).num_steps - 1 <= before + between + 1


def test_a_pipeline_gets_as_many_blocks_as_are_asked_for():
    assert make("bcast", "lanes_circulant", EVEN, blocks=5).blocks == 3 * 5
    assert make("allreduce", "lanes_halving", EVEN, blocks=5).blocks == 3 * 5 * 4


@pytest.mark.parametrize("collective", ["scan", "exscan"])
@given(network=jobs(most_hosts=6, most_ranks=5), blocks=st.none() | st.integers(1, 30), data=st.data())
def test_scans_in_lanes_keep_rank_order_on_any_hosts_in_any_order(collective, network, blocks, data):
    schedule = make(collective, "lanes_transposed", network, blocks=blocks)
    check(schedule, commutative=False)
    rank, rows = data.draw(st.integers(0, network.num_ranks - 1)), schedule.rows()
    own = make(collective, "lanes_transposed", network, blocks=blocks).rows_of(
        rank
    )  # of a schedule whose rows were never made
    assert (own == rows[(rows[:, 1] == rank) | (rows[:, 2] == rank)]).all()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=9), st.integers(1, 3), st.booleans())
def test_of_a_scan_in_lanes_two_vectors_leave_a_host_whose_ranks_follow_each_other(ranks, unit, inclusive):
    """Whichever exscan runs between hosts, each host sends what one rank a host would; of transposition 2 (1 - 1/n)."""
    host, hosts = np.repeat(np.arange(len(ranks)), ranks), len(ranks)
    blocks = unit * hosts * sorted(ranks)[(hosts - 1) // 2]
    schedule = scan_lanes(host, inclusive=inclusive, blocks=blocks)
    away = host[schedule.source] != host[schedule.destination]
    sent = np.bincount(host[schedule.source[away]], schedule.count[away], hosts)
    assert (sent <= 2 * blocks * (1 - 1 / hosts) + 1e-9).all()


def test_scans_in_lanes_run_any_exscan_between_hosts():
    host = np.repeat([3, 1, 2, 1], [2, 3, 1, 4])
    for across in (
        lambda size, blocks: scan_doubling(size, inclusive=False, blocks=blocks or 1),
        lambda size, blocks: scan_chain(size, inclusive=False, blocks=blocks or 4),
    ):
        for inclusive in (True, False):
            check(scan_lanes(host, across, inclusive=inclusive), commutative=False)
            check(scan_lanes(host, across, inclusive=inclusive, blocks=7), commutative=False)


def test_one_rank_of_a_host_of_many_makes_its_rows_of_a_scan_without_the_others():
    schedule = make("scan", "lanes_transposed", job("XGFT(2; 8,8; 1,4)", range(64), [16] * 64))
    assert len(schedule.rows_of(500))
    assert "step" not in vars(schedule)
