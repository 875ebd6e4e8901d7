"""Placements of several jobs: fragments of leaf switches, and random hosts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interference.fabrics import shapes, tree
from topompi.errors import TopompiError
from topompi.interference import levels_of, place, xgft
from topompi.interference.placements import listed
from topompi.topology import load

STUDY = levels_of(tree([16, 16, 8], [1, 4, 4]))


# Jokanovic 2014, sections 3.1 and 3.2: leaf switches and sub-trees of level 2.
@pytest.mark.parametrize(
    ("nodes", "placement", "leaves", "trees"),
    [
        (256, "F16", 16, 1),
        (256, "F8", 32, 2),
        (256, "F4", 64, 4),
        (256, "F2", 128, 8),
        (512, "F16", 32, 2),
        (512, "F8", 64, 4),
        (512, "F4", 128, 8),
        (256, "NF", 16, 1),
    ],
)
def test_fragments_have_the_source_s_footprints(nodes, placement, leaves, trees):
    placed = place(placement, STUDY, [nodes])[0]
    each = nodes // leaves
    assert [len(STUDY.used(placed, level)) for level in range(3)] == [nodes, leaves, trees]
    assert xgft.footprint([16, 16, 8], nodes, each) == [nodes, leaves, trees]


def test_a_job_that_needs_more_leaf_switches_than_there_are_does_not_fit():
    with pytest.raises(TopompiError, match="job 0: expecting 512 hosts, 2 of each leaf switch, got 256 free"):
        place("F2", STUDY, [512])
    with pytest.raises(TopompiError, match="expecting a job that fits, got 512 nodes, 2 per leaf switch"):
        xgft.footprint([16, 16, 8], 512, 2)


@pytest.mark.parametrize("each", [2, 4, 8, 16])
def test_eight_jobs_fill_the_machine_and_share_each_leaf_switch_equally(each):
    placed = place(f"F{each}", STUDY, [256] * 8)
    assert sorted(np.concatenate(placed).tolist()) == list(range(2048))
    for hosts in placed:
        assert set(np.unique(hosts // 16, return_counts=True)[1].tolist()) == {each}


@given(shapes(), st.lists(st.integers(1, 8), min_size=1, max_size=4), st.sampled_from(["NF", "F1", "F2", "RF:3"]))
def test_no_two_jobs_get_a_host(shape, sizes, placement):
    levels = levels_of(tree(*shape))
    try:
        placed = place(placement, levels, sizes)
    except TopompiError:
        return
    assert [len(hosts) for hosts in placed] == sizes
    assert len(np.unique(np.concatenate(placed))) == sum(sizes)


def test_jobs_that_are_not_fragmented_do_not_share_leaf_switches():
    placed = place("NF", STUDY, [20, 40, 3])
    assert [sorted(set((hosts // 16).tolist())) for hosts in placed] == [[0, 1], [2, 3, 4], [5]]


def test_the_last_hosts_of_a_fragmented_job_fill_a_leaf_switch():
    levels = levels_of(tree([4, 3], [1, 2]))
    assert [hosts.tolist() for hosts in place("F3", levels, [4, 5, 2])] == [[0, 1, 2, 4], [5, 6, 7, 8, 9], [10, 11]]
    assert [hosts.tolist() for hosts in place("F2", levels, [3, 3])] == [[0, 1, 4], [2, 3, 5]]


def test_random_hosts_depend_on_the_seed_alone():
    one, again, other = (place(f"RF:{seed}", STUDY, [256, 512]) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one[0], other[0])
    counts = np.bincount(np.concatenate([place(f"RF:{seed}", STUDY, [256])[0] for seed in range(200)]) // 256)
    assert counts == pytest.approx(np.full(8, 200 * 32), rel=0.05)


def test_switches_of_a_torus_are_leaf_switches():
    placed = place("F1", levels_of(load("torus:4@hosts_per_switch=2").fabric), [4, 4])
    assert [(hosts % 2).tolist() for hosts in placed] == [[0] * 4, [1] * 4]


@pytest.mark.parametrize("text", ["", "F0", "F", "RF", "RF:x", "F8 F4"])
def test_unknown_placements_are_refused(text):
    with pytest.raises(TopompiError, match="expecting NF, Fn such as F8, RF:SEED or a file"):
        place(text, STUDY, [1])


def test_a_file_gives_the_hosts_of_the_jobs_in_its_order(tmp_path):
    fabric, path = tree([4, 2], [1, 1]), tmp_path / "now.txt"
    path.write_text("old h[0005-0006]\nnew h0001,h0000,h0007\n")
    assert [hosts.tolist() for hosts in listed(path, fabric, [2, 2])] == [[5, 6], [1, 0]]
    with pytest.raises(TopompiError, match="expecting the hosts of 1 jobs, got 2"):
        listed(path, fabric, [2])
    with pytest.raises(TopompiError, match=r"now.txt:1: expecting 3 hosts of old, got 2"):
        listed(path, fabric, [3, 2])
    path.write_text("old h[0005-0006]\nnew h0006\n")
    with pytest.raises(TopompiError, match="expecting each host once, got h0006 2 times"):
        listed(path, fabric, [2, 1])


def test_more_jobs_than_hosts_are_refused():
    with pytest.raises(TopompiError, match="expecting up to 2048 hosts, got 2049"):
        place("RF:1", STUDY, [2000, 49])
