"""Two jobs at once: their messages, their hosts, and the ratios that are compared."""

from __future__ import annotations

import pytest

from benchmarks.side_by_side import ITERATIONS, KINDS, NBYTES, Row, hosts_of, program_of, slow_downs, tree
from osu_like_bench.emulate.spec import Rates, emulated_fabric


@pytest.mark.parametrize("size", [1, 2, 3, 6, 8, 13, 16])
def test_a_broadcast_reaches_each_rank_once_from_its_parent(size):
    links = [(rank, child) for rank in range(size) for child in tree(rank, size)[1]]
    assert sorted(child for _, child in links) == list(range(1, size))
    assert all(tree(child, size)[0] == rank for rank, child in links)


@pytest.mark.parametrize("kind", KINDS)
def test_each_send_has_its_receive(kind):
    program = program_of(kind, range(8), "job")
    assert set(program.messages.nbytes) <= {1, NBYTES}
    assert (program.messages.nbytes == NBYTES).sum() == ITERATIONS * {"alltoall": 56, "bcast": 7, "stencil": 32}[kind]


def test_jobs_share_each_leaf_switch_or_none():
    fabric = emulated_fabric("4x4", Rates.parse("100M", "100M"))
    assert hosts_of(fabric, "sharing") == [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]
    assert hosts_of(fabric, "disjoint") == [list(range(8)), list(range(8, 16))]


@pytest.mark.parametrize("model", ["flow", "packet"])
def test_equal_jobs_halve_each_other_on_shared_links_and_lose_nothing_on_their_own(model):
    fabric = emulated_fabric("4x4", Rates.parse("100M", "100M"))
    pair = ["alltoall", "alltoall"]
    assert slow_downs(fabric, pair, hosts_of(fabric, "sharing"), model) == pytest.approx([2, 2], rel=0.05)
    assert slow_downs(fabric, pair, hosts_of(fabric, "disjoint"), model) == pytest.approx([1, 1], rel=1e-3)


@pytest.mark.parametrize(("predicted", "near"), [(2.0, True), (2.29, True), (2.31, False), (1.74, True), (1.73, False)])
def test_a_slow_down_is_near_within_the_factor_either_way(predicted, near):
    row = Row("sharing", "alltoall", "bcast", 0.1, [1.9, 2.0, 9.0], predicted, predicted)
    assert row.near(predicted) == near
