"""Algorithms that only MPI libraries run: every schedule is proved, and each rank's rows are those of the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import jobs
from tests.schedules.test_registry import in_order
from tests.support import examples
from topompi.schedules import ALGORITHMS, Algorithm, check, find_algorithm, make, register, rows_of
from topompi.schedules.librarylike import LIBRARY_ALGORITHMS
from topompi.schedules.ranktrees import SHAPES, shaped
from topompi.schedules.rooted.rankorder import bcast_shaped
from topompi.schedules.schedule import ROOTED

EVERY = [(collective, name) for collective, some in LIBRARY_ALGORITHMS.items() for name in some]


@st.composite
def calls(draw, collective, name):
    """A network, a root, and parameters that a library could have."""
    known, network = find_algorithm(collective, name).parameters, draw(jobs(most_hosts=9))
    size = network.num_ranks
    parameters = {"root": draw(st.integers(0, size - 1)) if collective in ROOTED else 0}
    parameters["blocks"] = draw(st.sampled_from([None, 1, 2, 5, size]))
    if "counts" in known and draw(st.booleans()):
        parameters["counts"] = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    for one in ("shape", "up", "down"):
        if one in known:
            only = {"reduce_scatter": ["linear", "binomial"]}.get(collective) if one == "down" else None
            free = [shape for shape in SHAPES if shape != "in_order" or (one, collective) != ("shape", "bcast")]
            parameters[one] = draw(
                st.sampled_from(only or [shape for shape in free if one != "down" or shape != "in_order"])
            )
    return network, parameters


@pytest.mark.parametrize(("collective", "name"), EVERY)
@examples(8)
@given(data=st.data())
def test_it_does_what_mpi_defines_and_each_ranks_rows_are_those_of_the_whole(collective, name, data):
    network, parameters = data.draw(calls(collective, name))
    if name == "neighbours" and network.num_ranks % 2:
        with pytest.raises(ValueError, match="expecting an even number of ranks, got "):
            make(collective, name, network, **parameters)
        return
    whole = make(collective, name, network, **parameters)
    check(whole)
    assert in_order(whole) or not find_algorithm(collective, name).keeps_order
    table = whole.rows()
    for rank in range(network.num_ranks):
        part = rows_of(collective, name, network, rank, **parameters)
        np.testing.assert_array_equal(part.rows, table[whole.of_rank(rank)])


def test_their_names_are_no_others_and_nobody_takes_them():
    assert not any(set(some) & set(ALGORITHMS[collective]) for collective, some in LIBRARY_ALGORITHMS.items())
    with pytest.raises(ValueError, match="expecting a name that is not taken for bcast, got 'shaped_tree'"):
        register("bcast", "shaped_tree", Algorithm(shaped))


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 12, 16, 31])
def test_a_tree_in_order_has_ranges_of_ranks_below_each_rank_and_the_last_rank_on_top(size):
    tree = shaped("in_order", size)
    assert tree.root == size - 1
    for rank in range(size):
        below = [other for other in range(size) if rank in ancestors(tree, other)]
        assert below == list(range(rank - tree.sizes[rank] + 1, rank + 1))


def ancestors(tree, rank):
    """A rank and all above it."""
    return [rank, *ancestors(tree, int(tree.parent[rank]))] if rank >= 0 else []


def test_an_unknown_shape_and_one_with_another_root_are_refused():
    with pytest.raises(ValueError, match=r"expecting a shape of linear, chain, .*, got 'star'"):
        shaped("star", 4)
    with pytest.raises(ValueError, match="expecting a shape that has its root at rank 0, got 'in_order'"):
        bcast_shaped(4, shape="in_order")
