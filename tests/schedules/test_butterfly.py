"""Butterflies: the checker's proof for any ranks, orders and counts, and the steps and bytes of their docstrings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.test_allgather import SIZES, crossing, jobs
from tests.schedules.test_broadcast import leonardo_jobs, leonardo_network
from tests.support import examples
from topompi.schedules.groups import grouped
from topompi.schedules.proof import check
from topompi.schedules.symmetric.allreduce import allreduce_halving
from topompi.schedules.symmetric.grouped import allgather_grouped, allreduce_grouped, reduce_scatter_grouped
from topompi.schedules.symmetric.swing import allgather_swing, allreduce_swing
from topompi.schedules.trees import rank_clusters


def rounds(schedule):
    """Number of steps with messages."""
    return len(np.unique(schedule.step[schedule.messages]))


def traffic(schedule):
    """Blocks that each rank sends, and those that it receives, each of shape (p,)."""
    rows = schedule.messages
    ends = (schedule.source[rows], schedule.destination[rows])
    return [np.bincount(end, weights=schedule.count[rows], minlength=schedule.size) for end in ends]


def pairs(schedule):
    """The step, source and destination of each message; messages of one step and pair of ranks count once."""
    rows = schedule.messages
    return np.unique(np.stack((schedule.step[rows], schedule.source[rows], schedule.destination[rows])), axis=1)


@examples(100)
@given(jobs(largest=70), st.data())
def test_grouped_is_proved_for_any_clusters_counts_and_blocks(job, data):
    size, _, counts, clusters = job
    check(allreduce_grouped(size, clusters, blocks=data.draw(st.integers(1, 2 * size))))
    check(reduce_scatter_grouped(size, clusters, counts=counts))
    check(allgather_grouped(size, clusters, counts=counts))
    messages = grouped(size, clusters).messages
    assert (messages[:, 4] > messages[:, 3]).all()


@examples(100)
@given(jobs(largest=70))
def test_grouped_crosses_the_outermost_borders_as_seldom_as_possible_in_few_steps(job):
    size, _, _, clusters = job
    outer = next((labels for labels in clusters if len(np.unique(labels)) > 1), np.zeros(size))
    for make, both in ((allreduce_grouped, 2), (reduce_scatter_grouped, 1), (allgather_grouped, 1)):
        schedule = make(size, clusters)
        assert rounds(schedule) <= both * ((size - 1).bit_length() + (len(np.unique(outer)) > 1))
        sent, received = traffic(schedule)
        assert sent.sum() == received.sum() == both * size * (size - 1)
        if both == 1:
            least = sent if make is reduce_scatter_grouped else received
            np.testing.assert_array_equal(least, np.full(size, size - 1))
        across = schedule.count[crossing(schedule, outer)].sum()
        assert across == both * size * (len(np.unique(outer)) - 1)


@pytest.mark.parametrize("size", SIZES)
def test_grouped_without_clusters_is_swing_on_a_ring(size):
    for make, other in ((allreduce_grouped, allreduce_swing), (allgather_grouped, allgather_swing)):
        np.testing.assert_array_equal(make(size).rows(), other(np.arange(size)).rows())


@pytest.mark.parametrize(("groups", "each"), [(2, 4), (3, 5), (7, 2), (6, 8)])
def test_clusters_of_equal_size_are_joined_with_one_message_per_rank_and_step(groups, each):
    schedule = reduce_scatter_grouped(groups * each, (np.arange(groups * each) % groups,))
    step, source, destination = pairs(schedule)
    assert rounds(schedule) == (groups - 1).bit_length() + (each - 1).bit_length()
    for end in (source, destination):
        assert len(np.unique(np.stack((step, end)), axis=1).T) == len(step)


@pytest.mark.parametrize("sizes", [(1, 2), (3, 2), (5, 1), (7, 4), (16, 9), (32, 1)])
def test_a_rank_of_the_larger_of_two_clusters_sends_at_most_two_messages_to_the_smaller(sizes):
    label = np.repeat([0, 1], sizes)
    messages = grouped(len(label), (label,)).messages
    across = messages[label[messages[:, 1]] != label[messages[:, 2]]]
    sent = np.bincount(across[:, 1], minlength=len(label))
    larger, ratio = int(sizes[1] > sizes[0]), max(sizes) / min(sizes)
    assert sent[label == larger].max() <= 2
    assert sent[label != larger].max() <= np.ceil(ratio) + 1


def saved_between_cells(job):
    """The share of the bytes between cells of halving in rank order that grouped saves; checks steps and bytes."""
    network = leonardo_network(job)
    size, cell = network.num_ranks, network.clusters[0]
    schedule, plain = allreduce_grouped(size, rank_clusters(network)), allreduce_halving(size)
    assert rounds(schedule) <= 2 * (size - 1).bit_length() + 2
    sent = [one.count[crossing(one, cell)].sum() / one.blocks for one in (schedule, plain)]
    assert sent[0] == 2 * (len(np.unique(cell)) - 1)
    return 1 - sent[0] / sent[1]


def large_jobs():
    return [job for job in leonardo_jobs() if job is not None and len(job) >= 64]


@pytest.mark.long
def test_grouped_saves_60_per_cent_of_the_bytes_between_cells_on_all_jobs_of_64_hosts_and_more():
    saved = [saved_between_cells(job) for job in large_jobs()]
    assert len(saved) == 178
    assert round(100 * float(np.mean(saved)), 1) == 60.5
