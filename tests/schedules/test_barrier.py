"""Barriers: nobody leaves before all have entered, and between hosts go as few messages as between leaders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs
from topompi.mapping.placement import place
from topompi.mpi.prediction.predictor import Predictor
from topompi.schedules import ALGORITHMS, Schedule, ScheduleError, check, make
from topompi.schedules.schedule import COPY, SCRATCH
from topompi.topology import TopologyInterface, load

NAMES = tuple(ALGORITHMS["barrier"])


def tokens(size, *messages):
    rows = [(step, source, target, SCRATCH, 0, SCRATCH, 0, 0, COPY) for step, source, target in messages]
    return Schedule.from_rows("barrier", size, "by hand", rows)


def crossing(schedule, network):
    """Messages between hosts, by step."""
    host = network.rank_host
    return schedule.step[host[schedule.source] != host[schedule.destination]]


@given(jobs(most_hosts=9, most_ranks=5))
def test_each_host_sends_one_message_a_round_to_others(network):
    """As many as Open MPI's HAN, whose leaders run a barrier of their own: hosts x rounds."""
    hosts, schedule = network.num_hosts, make("barrier", "dissemination_hosts", network)
    rounds = (hosts - 1).bit_length()
    messages = np.unique(crossing(schedule, network), return_counts=True)[1]
    assert messages.tolist() == [hosts] * rounds
    largest = int(np.bincount(network.rank_host).max())
    inside = (largest - 1).bit_length() if hosts > 1 else 0
    assert schedule.num_steps <= max(rounds + 2 * inside, (network.num_ranks - 1).bit_length())


def test_the_fewest_messages_cross_where_hosts_have_many_ranks():
    """64 hosts with 16 ranks each, dealt round: 10 rounds of all ranks, or 6 of one rank a host."""
    network = job("XGFT(2; 8,8; 1,4)", range(64), [16] * 64)
    assert len(crossing(make("barrier", "dissemination_hosts", network), network)) == 64 * 6
    assert len(crossing(make("barrier", "dissemination", network), network)) >= 64 * 16 * 6


@given(st.integers(2, 20), st.data())
def test_a_barrier_with_one_message_left_out_is_refused(size, data):
    good = make("barrier", data.draw(st.sampled_from(NAMES)), job("XGFT(2; 5,4; 1,4)", range(size), [1] * size))
    rows = np.delete(good.rows(), data.draw(st.integers(0, good.num_rows - 1)), axis=0)
    with pytest.raises(ScheduleError, match=r"end: rank \d+ may leave before rank \d+ has entered"):
        check(Schedule.from_rows("barrier", size, "", rows))


def test_a_message_tells_what_its_sender_knew_before_the_step():
    check(tokens(2, (0, 0, 1), (0, 1, 0)))
    check(tokens(3, (0, 0, 1), (1, 1, 2), (2, 2, 0), (2, 2, 1)))
    with pytest.raises(ScheduleError, match="rank 2 may leave before rank 0 has entered") as refused:
        check(tokens(3, (0, 0, 1), (0, 1, 2), (1, 2, 0), (1, 2, 1)))
    assert refused.value.ranks == (2,)


@pytest.mark.parametrize(("policy", "gain"), [("block", 0.84), ("random:1", 1.41)])
def test_what_the_model_says_of_barriers_on_32_hosts_of_8_ranks(policy, gain):
    """Ranks in blocks meet as fast without leaders; scattered ones do not."""
    routes = load("stampede").routes
    hosts = place(32 * 8, routes.fabric.hosts[:32], policy)
    predictor = Predictor(TopologyInterface.place(hosts, routes))
    costs = dict(predictor.rank("Barrier", 0, 0, lambda name: name != "levels"))
    assert min(costs, key=costs.get) == "dissemination_hosts"
    assert predictor.native("Barrier", 0, 0).seconds / costs["dissemination_hosts"] == pytest.approx(gain, abs=0.02)
