"""The alltoalls of a pencil FFT: each one right, and all of them together without meeting on a link."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedules.alltoall.fft import pencils
from schedules.alltoall.leafroutes import room
from schedules.check import check
from tests.networks import job, jobs, link_loads, one_message_each, same_rows

few = settings(max_examples=40, deadline=None)


def grids(network):
    """All process grids over the ranks of a job."""
    return [
        (rows, network.num_ranks // rows) for rows in range(1, network.num_ranks + 1) if not network.num_ranks % rows
    ]


def together(schedules):
    """The pairs of hosts that exchange in each step of the ranks, over all schedules at once."""
    found: dict[int, set[tuple[int, int]]] = {}
    for schedule in schedules:
        whole = schedule.expand()
        for row in whole.messages:
            pair = tuple(int(schedule.rank_host[end[row]]) for end in (whole.source, whole.destination))
            if pair[0] != pair[1]:
                found.setdefault(int(whole.step[row]), set()).add(pair)
    return found


@few
@given(jobs(), st.data())
def test_each_row_and_each_column_is_an_alltoall(network, data):
    """On its own ranks each schedule passes the proof, and ranks can make their rows alone."""
    rows, columns = data.draw(st.sampled_from(grids(network)))
    made = pencils(network, rows, columns)
    assert (len(made.rows), len(made.columns)) == (rows, columns)
    for schedule in (*made.rows, *made.columns):
        check(schedule.expand())
        assert one_message_each(schedule)
        assert same_rows(schedule)
    assert {schedule.size for schedule in made.rows} == {columns}
    assert {schedule.size for schedule in made.columns} == {rows}


@few
@given(jobs(), st.data())
def test_concurrent_alltoalls_do_not_meet_on_a_link(network, data):
    """In one step of all rows each host serves one other, and links between switches carry what they have room for."""
    made = pencils(network, *data.draw(st.sampled_from(grids(network))))
    carried = room(network)
    for group in (made.rows, made.columns):
        for pairs in together(group).values():
            assert all(load <= carried[link] for link, load in link_loads(network, pairs).items())


@few
@given(jobs(), st.data())
def test_steps_stand_side_by_side(network, data):
    """All rows have the same steps with the same rounds, and so have all columns."""
    made = pencils(network, *data.draw(st.sampled_from(grids(network))))
    for group in (made.rows, made.columns):
        assert all(np.array_equal(schedule.rounds, group[0].rounds) for schedule in group)


def test_the_grid_of_the_reference_stays_inside_hosts():
    """With the 16 ranks of a host as a column, columns need no network, and rows one rank a host."""
    network = job("slurm64", range(24), [16] * 24)
    order = np.argsort(network.rank_host, kind="stable")  # host by host, which the job deals round
    block = replace(network, rank_host=network.rank_host[order])
    made = pencils(block, 24, 16)  # a grid row is a host
    assert {schedule.num_host_steps for schedule in made.rows} == {1}
    assert {schedule.num_steps for schedule in made.columns} == {made.columns[0].num_host_steps}
    assert made.columns[0].num_host_steps >= 24


def test_a_grid_that_does_not_fit_is_refused():
    """The numbers are told."""
    with pytest.raises(ValueError, match="grid of 6 ranks, got 2 x 4"):
        pencils(job("slurm64", range(3), [2] * 3), 2, 4)
