"""Swing and Bine: the checker's proof for any torus and counts, distances, steps and bytes; tori are recognised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs
from tests.schedules.test_butterfly import pairs, rounds, traffic
from tests.support import examples
from topompi.schedules.butterfly import staged
from topompi.schedules.proof import check
from topompi.schedules.swing import ranks_on_grid, swings
from topompi.schedules.symmetric.swing import allgather_swing, allreduce_swing, reduce_scatter_swing

MAKE = (allreduce_swing, reduce_scatter_swing, allgather_swing)


@st.composite
def grids(draw):
    """The ranks of a torus of one to three dimensions, in any order."""
    dims = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3).filter(lambda dims: math.prod(dims) <= 72))
    return np.array(draw(st.permutations(range(math.prod(dims))))).reshape(dims)


@examples(100)
@given(grids(), st.data())
def test_swing_is_proved_for_any_torus_counts_and_blocks(grid, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=grid.size, max_size=grid.size)))
    check(allreduce_swing(grid, blocks=data.draw(st.integers(1, 2 * grid.size))))
    check(reduce_scatter_swing(grid, counts=counts))
    check(allgather_swing(grid, counts=counts))


@examples(100)
@given(grids())
def test_swing_sends_one_message_per_rank_and_step_and_the_fewest_bytes(grid):
    for make in MAKE:
        schedule, both = make(grid), 2 if make is allreduce_swing else 1
        assert rounds(schedule) == both * sum((size - 1).bit_length() for size in grid.shape)
        for blocks in traffic(schedule):
            np.testing.assert_array_equal(blocks, np.full(grid.size, both * (grid.size - 1)))
        step, source, destination = pairs(schedule)
        for end in (source, destination):
            assert len(np.unique(np.stack((step, end)), axis=1).T) == len(step)


def distances(schedule, size):
    """The distance of each step's messages around a ring, which is the same for all of them."""
    step, source, destination = pairs(schedule)
    ahead = (destination - source) % size
    around = np.minimum(ahead, size - ahead)
    return [int(one) for (one,) in (np.unique(around[step == number]) for number in np.unique(step))]


@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64])
def test_distances_on_a_ring_are_those_of_the_paper(size):
    paper = [1, 1, 3, 5, 11, 21][: size.bit_length() - 1]
    assert distances(reduce_scatter_swing(np.arange(size)), size) == paper
    assert distances(allgather_swing(np.arange(size)), size) == paper[::-1]


def test_even_ranks_of_a_ring_exchange_ahead_first_then_in_turning_directions():
    partners = [int(pair[1 - place]) for groups in swings(np.arange(16)) for place, pair in _of(groups, 0)]
    assert partners == [1, 15, 3, 11]


def _of(groups, rank):
    """The place of a rank in its group of two, and the group."""
    return [(int(np.flatnonzero(pair == rank)[0]), pair) for pair in groups.T if rank in pair]


def test_dimensions_take_turns():
    stages = swings(np.arange(32).reshape(4, 8))
    moved = [np.flatnonzero(np.array(np.divmod(groups[0], 8)) != np.divmod(groups[1], 8)) for groups in stages]
    along = [set((places // groups.shape[1]).tolist()) for places, groups in zip(moved, stages, strict=True)]
    assert along == [{0}, {1}, {0}, {1}, {1}]


def test_groups_that_do_not_nest_are_refused():
    pairs_only = [np.array([[0, 2], [1, 3]]), np.array([[0, 2], [1, 3]])]
    with pytest.raises(ValueError, match="divide the same shares"):
        staged(pairs_only, 4)


@pytest.mark.parametrize("grid", [[0, 2], [[0, 1], [1, 2]]])
def test_a_grid_that_lacks_a_rank_is_refused(grid):
    with pytest.raises(ValueError, match="holds each rank of range"):
        allreduce_swing(grid)


@pytest.mark.parametrize(
    ("spec", "hosts", "shape"),
    [
        ("torus:4x4", range(16), (1, 4, 4)),
        ("torus:8x3", range(24), (1, 8, 3)),
        ("torus:4x4", [0, 1, 4, 5], (1, 2, 2)),
        ("torus:4x4@hosts_per_switch=2", range(32), (2, 4, 4)),
        ("torus:4x4", [0, 1, 4], (3,)),
        ("XGFT(2; 4,4; 1,2)", range(16), (16,)),
    ],
)
def test_a_job_that_fills_a_block_of_a_torus_is_a_grid(spec, hosts, shape):
    network = job(spec, hosts, [1] * len(hosts))
    grid = ranks_on_grid(network)
    assert grid.shape == shape
    assert sorted(grid.ravel().tolist()) == list(range(len(hosts)))


def test_neighbours_on_the_grid_are_neighbours_in_the_torus_in_any_order_of_ranks_and_in_a_part():
    order = np.random.default_rng(1).permutation(16)
    network = job("torus:4x4", order, [2] * 16)
    for one in (network, network.part(np.random.default_rng(2).permutation(32))):
        grid = ranks_on_grid(one)
        assert grid.shape == (2, 4, 4)
        near = [one.hops[one.rank_host[grid], one.rank_host[np.roll(grid, 1, axis)]] for axis in range(3)]
        assert [set(hops.ravel().tolist()) for hops in near] == [{0}, {2}, {2}]


@examples(60)
@given(jobs())
def test_every_job_has_a_grid_that_holds_each_rank_once(network):
    assert sorted(ranks_on_grid(network).ravel().tolist()) == list(range(network.num_ranks))
