"""The alltoalls of a pencil FFT: each is right, and each step of all together is a small copy of the whole."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, jobs
from tests.support import examples
from topompi.schedules import SiblingGroups, check, make
from topompi.schedules.alltoall import joint
from topompi.schedules.alltoall.colouring import fewest_steps
from topompi.schedules.alltoall.even import SHARED
from topompi.schedules.alltoall.fft import grid_groups, pencil_grid, pencils
from topompi.schedules.alltoall.joint import all_joint, joint_steps

few = examples(40)


def grids(network):
    """All process grids over the ranks of a job."""
    return [
        (rows, network.num_ranks // rows) for rows in range(1, network.num_ranks + 1) if not network.num_ranks % rows
    ]


@few
@given(jobs(), st.data())
def test_each_row_and_each_column_is_an_alltoall(network, data):
    """On its own ranks each schedule passes the proof."""
    rows, columns = data.draw(st.sampled_from(grids(network)))
    made = pencils(network, rows, columns)
    assert (len(made.rows), len(made.columns)) == (rows, columns)
    for schedule in (*made.rows, *made.columns):
        check(schedule)
    assert {schedule.size for schedule in made.rows} == {columns}
    assert {schedule.size for schedule in made.columns} == {rows}


@few
@given(jobs(), st.data())
def test_all_of_them_together_are_one_exchange_of_all_ranks(network, data):
    """Side by side they pass the proof as an alltoallv in which other pairs have nothing."""
    rows, _ = data.draw(st.sampled_from(grids(network)))
    for name in ("rows", "columns"):
        check(make("fft", name, network, rows=rows, blocks=2))


def loads(network, pairs):
    """Messages on each link, out of each host, into each host, out of and into each rank, one by one."""
    found: Counter[object] = Counter()
    for sender, receiver in pairs:
        here, there = (int(network.rank_host[rank]) for rank in (sender, receiver))
        found.update(int(link) for link in network.links[here, there] if link >= 0)
        found.update([("out", here), ("in", there), ("sends", sender), ("receives", receiver)])
    return found


@few
@given(jobs(), st.data())
def test_a_step_of_all_together_has_its_part_of_every_load(network, data):
    """A step puts on no link, host or rank more than its part of the whole load, rounded up; inside hosts all
    is step 0."""
    rows, columns = data.draw(st.sampled_from(grids(network)))
    for groups in grid_groups(rows, columns):
        steps: dict[int, list[tuple[int, int]]] = {}
        for ranks, step in zip(groups, joint_steps(network, groups), strict=True):
            for a, b in itertools.permutations(range(len(ranks)), 2):
                inside = network.rank_host[ranks[a]] == network.rank_host[ranks[b]]
                assert inside == (step[a, b] == 0)
                if not inside:
                    steps.setdefault(int(step[a, b]), []).append((int(ranks[a]), int(ranks[b])))
        pairs = list(itertools.chain.from_iterable(steps.values()))
        kinds = Counter(tuple(sorted(network.rank_host[ranks].tolist())) for ranks in groups)
        # Groups on the same hosts may take the same steps: a step is then as many times as large.
        alike = math.gcd(*kinds.values())
        whole, least = loads(network, pairs), fewest(network, pairs, alike)
        for step in steps.values():
            parts = {what: alike * -(-whole[what] // (alike * least)) for what in whole}
            assert all(load <= parts[what] for what, load in loads(network, step).items())
        assert len(steps) <= max(1.5 * least, least + 4)


def fewest(network, pairs, alike):
    """Steps of one of so many groups that are alike: those that each rank of the busiest host needs, or half those that
    the busiest link does."""
    source, destination = network.rank_host[np.array(pairs, dtype=np.int64).reshape(-1, 2)].T
    busy = max(Counter(int(network.rank_host[rank]) for rank in {one for one, _ in pairs}).values(), default=1)
    least = fewest_steps(network, source, destination)
    hosts = max([*Counter(source.tolist()).values(), *Counter(destination.tolist()).values()], default=0)
    shared = (1 if hosts == least else SHARED) * max(1, busy // alike)
    return max(1, -(-(least // alike) // shared))


def test_groups_on_the_same_hosts_take_the_same_steps():
    """The a-th ranks of all hosts, whatever the order in which each group names them."""
    network = job("XGFT(2; 5,4; 1,4)", [3, 9, 4, 17], [2, 2, 2, 2])
    first = np.flatnonzero([rank == network.ranks_of_host[host][0] for rank, host in enumerate(network.rank_host)])
    one, other = joint_steps(network, [first, np.setdiff1d(np.arange(8), first)[::-1]])
    assert np.array_equal(one, other[::-1, ::-1])


def test_as_many_groups_of_a_kind_are_made_as_keep_their_proportions():
    """Of two groups on some hosts and four on others, one and two."""
    assert joint._models([b"a", b"b", b"b", b"a", b"b", b"b"]) == [0, 1, 2, 0, 1, 2]
    assert joint._models([b"a", b"a", b"a"]) == [0, 0, 0]


def test_the_grid_of_the_reference_stays_inside_hosts():
    """With the 16 ranks of a host as a row, rows need no network, and columns have one rank a host."""
    network = job("slurm64", range(24), [16] * 24)
    order = np.argsort(network.rank_host, kind="stable")  # host by host, which the job deals round
    made = pencils(replace(network, rank_host=network.rank_host[order]), 24, 16)  # a grid row is a host
    assert {schedule.num_steps for schedule in made.rows} == {1}
    assert len({schedule.step.tobytes() for schedule in made.columns}) == 1


@few
@given(jobs(), st.data())
def test_a_group_that_knows_the_others_makes_the_same_as_all_at_once(network, data):
    """What a communicator runs fits what its siblings run, each from its own point of view."""
    rows, columns = data.draw(st.sampled_from(grids(network)))
    groups = grid_groups(rows, columns)[0]
    for one, part in zip(all_joint(network, groups), SiblingGroups.each(network, groups), strict=True):
        mine = make("alltoall", "joint", part)
        assert all(np.array_equal(column, mine.columns()[name]) for name, column in one.columns().items())
        assert mine.window == one.window


@few
@given(jobs(most_hosts=6), st.data())
def test_part_of_a_network_has_its_routes(network, data):
    """Hosts by first rank, and between them the hops, links and leaves that there were."""
    ranks = np.array(data.draw(st.permutations(range(network.num_ranks))))[: 1 + network.num_ranks // 2]
    part, hosts = network.part(ranks), network.rank_host[ranks]
    assert list(dict.fromkeys(part.rank_host.tolist())) == list(range(part.num_hosts))
    for a, b in itertools.product(range(len(ranks)), repeat=2):
        here, there = part.rank_host[[a, b]]
        assert part.hops[here, there] == network.hops[hosts[a], hosts[b]]
        assert np.array_equal(part.links[here, there], network.links[hosts[a], hosts[b]])
    assert np.array_equal(part.leaf[part.rank_host], network.leaf[hosts])


def test_a_grid_that_does_not_fit_is_refused():
    """The numbers are told."""
    with pytest.raises(ValueError, match="grid of 6 ranks, got 2 x 4"):
        pencils(job("slurm64", range(3), [2] * 3), 2, 4)


# --- examples/fft3d: where rows of the pencil grid are put.


def test_rows_are_put_where_links_are_plenty():
    """Ranks in any order on 4 leaves of 4 hosts, 4:1: rows stay inside leaf switches; two a host, inside hosts."""
    for ranks, hosts in ((1, 4), (2, 1)):
        network = job("XGFT(2; 4,4; 1,1)", np.random.default_rng(3).permutation(16).tolist(), [ranks] * 16)
        rows, order = pencil_grid(network)
        assert sorted(order.tolist()) == list(range(16 * ranks))
        host = network.rank_host[order.reshape(rows, -1)]
        assert all(len(set(row)) <= hosts and len(set(network.leaf[row])) == 1 for row in host)
        assert pencil_grid(network, 2)[0] == 2
    assert pencil_grid(job("slurm64", [0], [7]))[0] == 1
