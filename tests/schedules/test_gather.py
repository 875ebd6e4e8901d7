"""Gathers and scatters, with and without counts: the checker's proof, and the paths and places of blocks."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.test_trees import network_from, networks, random_trees
from tests.support import examples
from topompi.schedules.proof import check
from topompi.schedules.rooted import gather
from topompi.schedules.schedule import INPUT, OUTPUT, SCRATCH
from topompi.schedules.trees import Tree, rank_clusters

BY_SIZE = {
    "gather linear": gather.gather_linear,
    "gather linear, all in flight": functools.partial(gather.gather_linear, window=0),
    "gather binomial": gather.gather_knomial,
    "gather 4-nomial": functools.partial(gather.gather_knomial, radix=4),
    "scatter linear": gather.scatter_linear,
    "scatter binomial": gather.scatter_knomial,
    "scatter 4-nomial": functools.partial(gather.scatter_knomial, radix=4),
}
BY_NETWORK = {
    "gather leaders": gather.gather_leaders,
    "gather leaders, 4-nomial": functools.partial(gather.gather_leaders, radix=4),
    "gather nodes": lambda network, **arguments: gather.gather_nodes(network.rank_host, **arguments),
    "scatter nodes": lambda network, **arguments: gather.scatter_nodes(network.rank_host, **arguments),
    "scatter leaders": gather.scatter_leaders,
    "scatter leaders, 4-nomial": functools.partial(gather.scatter_leaders, radix=4),
}
ALL = [*BY_SIZE, *BY_NETWORK]


def make(name, network, **arguments):
    if name in BY_SIZE:
        return BY_SIZE[name](network.num_ranks, **arguments)
    return BY_NETWORK[name](network, **arguments)


def counts_of(network):
    return st.lists(st.integers(0, 5), min_size=network.num_ranks, max_size=network.num_ranks)


@given(random_trees(), st.data())
def test_a_gather_and_a_scatter_run_along_any_tree(tree, data):
    counts = data.draw(st.lists(st.integers(0, 4), min_size=tree.size, max_size=tree.size))
    schedule = gather.gather_along(tree, "any tree", counts=counts)
    check(schedule)
    check(gather.mirrored(schedule))


@given(networks(), st.sampled_from(ALL), st.data())
def test_each_rank_but_the_root_has_one_message_on_the_roots_side(network, name, data):
    """A gather has one send a rank, a scatter one receive, whatever must be moved within ranks."""
    root = data.draw(st.integers(0, network.num_ranks - 1))
    schedule = make(name, network, root=root)
    side = schedule.source if schedule.collective == "gather" else schedule.destination
    others = [rank for rank in range(network.num_ranks) if rank != root]
    assert sorted(side[schedule.messages].tolist()) == others


@given(networks(), st.sampled_from([name for name in BY_NETWORK if "leaders" in name]), st.data())
def test_one_message_crosses_a_border_for_each_cluster_without_the_root(network, name, data):
    root = data.draw(st.integers(0, network.num_ranks - 1))
    schedule = make(name, network, root=root)
    ends = (schedule.source, schedule.destination) if "gather" in name else (schedule.destination, schedule.source)
    for row in rank_clusters(network):
        away, towards = (row[end[schedule.messages]] for end in ends)
        assert sorted(away[away != towards].tolist()) == sorted(set(row.tolist()) - {row[root]})


@given(networks(), st.sampled_from(list(BY_NETWORK)), st.data())
def test_each_block_crosses_the_borders_around_the_root_once(network, name, data):
    root = data.draw(st.integers(0, network.num_ranks - 1))
    counts = np.array(data.draw(counts_of(network)))
    schedule = make(name, network, root=root, counts=counts)
    rows = schedule.messages
    for row in rank_clusters(network):
        inside = row == row[root]
        border = inside[schedule.source[rows]] != inside[schedule.destination[rows]]
        assert schedule.count[rows][border].sum() == counts[~inside].sum()


def test_the_window_is_the_callers_and_steps_are_independent():
    schedule = gather.gather_linear(9, root=4, window=3)
    assert (schedule.independent, schedule.window) == (True, 3)
    assert schedule.source[schedule.messages].tolist() == [5, 6, 7, 8, 0, 1, 2, 3]
    assert (gather.mirrored(schedule).independent, gather.mirrored(schedule).window) == (True, 3)
    assert not gather.gather_knomial(9).independent


@pytest.mark.parametrize("make", [gather.gather_knomial, gather.gather_linear])
def test_blocks_in_rank_order_go_straight_to_their_place(make):
    """From root 0 every sub-tree is a range of ranks: the root moves nothing but its own block."""
    schedule = make(20)
    at_root = schedule.destination == 0
    assert (schedule.destination_buffer[at_root] == OUTPUT).all()
    assert (schedule.source_buffer[at_root & (schedule.source == 0)] == INPUT).all()


def test_another_root_needs_scratch_for_one_sub_tree_at_most():
    for root in range(20):
        schedule = gather.gather_knomial(20, root=root)
        rows = schedule.messages[schedule.destination[schedule.messages] == root]
        moves = (schedule.source == root) & (schedule.source_buffer == SCRATCH)
        assert np.count_nonzero(schedule.destination_buffer[rows] == SCRATCH) <= 1
        assert np.count_nonzero(moves) <= 2, "what comes before the last rank, and what comes behind"


def test_ranks_placed_in_turn_on_hosts_are_put_in_order_by_moves_at_the_root():
    network = network_from(np.arange(12) % 3, [0, 0, 0], [0, 1, 2])
    schedule = gather.gather_leaders(network)
    moves = (schedule.source == 0) & (schedule.destination == 0) & (schedule.source_buffer == SCRATCH)
    check(schedule)
    assert np.count_nonzero(moves) == 4 + 4 + 2, "one for each rank of the other hosts, and for 6 and 9, sent as one"
    assert len(schedule.messages) == 11


@pytest.mark.parametrize("counts", [[1, 2], [1, -1, 2], [[1, 2, 3]]])
def test_counts_that_do_not_fit_are_refused(counts):
    with pytest.raises(ValueError, match="expecting 3 counts of blocks"):
        gather.gather_linear(3, counts=counts)
    with pytest.raises(ValueError, match="expecting 3 counts of blocks"):
        gather.gather_along(Tree([-1, 0, 0]), "tree", counts=counts)


@examples(20)
@given(st.data())
def test_each_host_sends_one_message_to_the_root_with_nodes(data):
    network = data.draw(networks())
    root = data.draw(st.integers(0, network.num_ranks - 1))
    schedule = gather.gather_nodes(network.rank_host, root=root)
    source, destination = (end[schedule.messages] for end in (schedule.source, schedule.destination))
    here = network.rank_host[source]
    out = here != network.rank_host[destination]
    assert (destination[out] == root).all()
    assert sorted(here[out].tolist()) == sorted(set(network.rank_host.tolist()) - {network.rank_host[root]})
