"""The load of a job on each level: bytes, injection rate, usage and class, against sums made pair by pair."""

from collections import Counter
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interference.fabrics import LINK, hosts_of, jobs, routed, shapes, tree
from tests.support import examples
from topompi.errors import TopompiError
from topompi.machine.interference import Thresholds, characterise, crossbar, levels_of
from topompi.machine.interference.kernels import make_kernel
from topompi.mapping.graph import CommunicationGraph
from topompi.topology import load

KIB = 1024
NAS = ("ft", "cg", "bt", "mg")


def nas(name, ranks):
    return make_kernel(name, range(ranks))


def usages(kernel, shape, placement, seconds=None):
    """The class of a kernel of 256 ranks, and its usage of each level."""
    job, fabric = nas(kernel, 256), tree(*shape)
    base = job.usual_burst + crossbar.bound(job.graph, LINK) if seconds is None else seconds
    found = characterise(job.graph, base, hosts_of(placement, fabric, 256), levels_of(fabric))
    return found.name, [load.usage for load in found.loads]


@given(st.data())
def test_bytes_and_usage_are_those_counted_pair_by_pair(data):
    children, parents = data.draw(shapes())
    graph, hosts = data.draw(jobs(prod(children)))
    seconds = data.draw(st.floats(1e-3, 1e3))
    found = characterise(graph, seconds, hosts, levels_of(tree(children, parents)))
    for level, one in enumerate(found.loads):
        below, nbytes = prod(children[:level]), 0
        for source, target, volume in zip(graph.sources, graph.targets, graph.volume, strict=True):
            nbytes += int(volume) if hosts[source] // below != hosts[target] // below else 0
        groups = len({host // below for host in hosts.tolist()})
        width = prod(parents[: level + 1])
        assert one.nbytes == nbytes
        assert one.groups == groups
        assert one.injection == pytest.approx(nbytes / seconds)
        assert one.available == (groups * width * LINK if groups > 1 else 0)
        assert one.usage == pytest.approx(nbytes / seconds / (groups * width * LINK))
        assert one.busiest_cut == pytest.approx(_busiest(graph, hosts // below) / seconds / (width * LINK))
    nbytes = [one.nbytes for one in found.loads]
    assert nbytes == sorted(nbytes, reverse=True)
    assert found.usage == max((one.usage for one in found.loads[1:]), default=0)


def _busiest(graph, group):
    """The most bytes that leave or enter one group of a job's ranks."""
    out, into = Counter(), Counter()
    for source, target, volume in zip(graph.sources.tolist(), graph.targets.tolist(), graph.volume, strict=True):
        if group[source] != group[target]:
            out[group[source]] += int(volume)
            into[group[target]] += int(volume)
    return max((*out.values(), *into.values()), default=0)


@given(st.data())
@examples(40)
def test_links_of_a_tree_carry_the_bytes_of_their_level_once(data):
    children, parents = data.draw(shapes())
    graph, hosts = data.draw(jobs(prod(children)))
    routes = routed(children, parents)
    levels = levels_of(routes.fabric)
    carried = routes.tables.loads(hosts[graph.sources], hosts[graph.targets], graph.volume)
    for one in characterise(graph, 1.0, hosts, levels, tables=routes.tables).loads:
        assert carried[levels.leaves[one.level] >= 0].sum() == pytest.approx(one.nbytes)
        assert carried[levels.enters[one.level] >= 0].sum() == pytest.approx(one.nbytes)
        assert one.routed == levels.rate[(carried > 0) & (levels.leaves[one.level] >= 0)].sum()
        assert one.links == np.count_nonzero(carried[(levels.leaves[one.level] >= 0) | (levels.enters[one.level] >= 0)])


@pytest.mark.parametrize("source", ["xgft:4,4,2;1,2,2", "torus:4x4", "dragonfly:4,2,2"])
@given(data=st.data())
@examples(25)
def test_a_link_is_at_least_as_busy_as_its_cut_and_a_cut_as_the_mean_of_cuts(source, data):
    routes = load(source).routes
    graph, hosts = data.draw(jobs(routes.fabric.num_hosts))
    for one in characterise(graph, 1.0, hosts, levels_of(routes.fabric), tables=routes.tables).loads:
        assert one.usage <= one.busiest_cut * (1 + 1e-9)
        assert one.busiest_cut <= one.busiest_link * (1 + 1e-9)


# Jokanovic 2014, section 3.2 and table 3.2. The times on a crossbar are those of the source, cut to one iteration: two
# transposes of FT (0.212 s), four iterations of CG (0.086 s), two of BT (0.685 s). The other applications' messages are
# not in its text.
SLIM = ([16, 16, 8], [1, 2, 2])


@pytest.mark.parametrize(
    ("kernel", "seconds", "name"),
    [("ft", 0.211964 / 2, "extreme"), ("cg", 0.086342 / 4, "moderate"), ("bt", 0.685480 / 2, "low")],
)
def test_the_classes_on_the_slimmed_tree_are_the_source_s(kernel, seconds, name):
    assert usages(kernel, SLIM, "F2", seconds)[0] == name


# Jokanovic 2014, chapter 5: classes on XGFT(3; 16,16,4; 1,4,4).
@pytest.mark.parametrize(
    ("placement", "names"),
    [
        ("F8", {"ft": "moderate", "cg": "moderate", "bt": "low", "mg": "low"}),
        ("F4", {"ft": "moderate", "cg": "low", "bt": "low", "mg": "low"}),
    ],
)
def test_the_classes_of_four_kernels_are_the_source_s(placement, names):
    assert {kernel: usages(kernel, ([16, 16, 4], [1, 4, 4]), placement)[0] for kernel in names} == names


def test_cg_has_the_largest_usage_of_hosts_links_and_a_smaller_one_above_than_ft():
    found = {kernel: usages(kernel, ([16, 16, 4], [1, 4, 4]), "F8")[1] for kernel in NAS}
    assert max(found, key=lambda kernel: found[kernel][0]) == "cg"
    assert max(found["cg"][1:]) < max(found["ft"][1:])


def test_ft_and_bt_send_most_bytes_out_of_a_full_leaf_switch_and_cg_few():
    fabric = tree([16, 16, 8], [1, 16, 16])
    out = {}
    for kernel in ("ft", "bt", "cg"):
        found = characterise(nas(kernel, 256).graph, 1.0, hosts_of("NF", fabric, 256), levels_of(fabric))
        out[kernel] = found.loads[1].nbytes / found.loads[0].nbytes
        assert found.loads[2].nbytes == found.loads[2].available == 0
    assert out["ft"] == pytest.approx(240 / 255)
    assert out["bt"] == pytest.approx(2 / 3)
    assert out["cg"] == pytest.approx(240 / (4 * 256 + 240))


def test_messages_have_the_sizes_of_the_source_s_table():
    ft, cg, bt, mg = (nas(kernel, 256).graph for kernel in NAS)
    assert set(ft.volume.tolist()) == {512 * KIB}
    assert set(cg.volume.tolist()) == {750_000}  # 732 KiB
    face, there, back = (size * KIB for size in (761, 158, 26))
    largest, smallest = (pick(mg.volume[mg.offsets[0] : mg.offsets[1]].tolist()) / 4 for pick in (max, min))
    # A V-cycle exchanges four times per level, each with a quarter of the bytes; the source has a point more on edges.
    assert (largest * 3 / 4, smallest * 3 / 4) == pytest.approx((260 * KIB, 128 * KIB), rel=0.04)
    wanted = 6 * face + 3 * 15 * (there + back)  # a rank has 15 cells with a neighbour ahead, and 3 directions
    assert bt.volume.sum() / 256 == pytest.approx(wanted, rel=0.04)


def test_the_blocks_of_nas_kernels_go_to_their_neighbours():
    cg, bt = nas("cg", 16).graph, nas("bt", 9).graph
    assert cg.targets[cg.offsets[1] : cg.offsets[2]].tolist() == [0, 3, 4]
    assert bt.targets[bt.offsets[4] : bt.offsets[5]].tolist() == [1, 2, 3, 5, 6, 7]
    assert set(np.diff(nas("mg", 64).graph.offsets)) == {6}
    assert nas("mg", 256).grid == (8, 8, 4)  # 4 x 8 x 8 ranks, with x first
    mg = nas("mg", 256).graph
    assert mg.targets[mg.offsets[0] : mg.offsets[1]].tolist() == [1, 3, 4, 28, 32, 224]


@pytest.mark.parametrize(
    ("kernel", "ranks", "wanted"),
    [("cg", 64 * 2, "a square"), ("cg", 9, "a power of 4"), ("bt", 8, "a square"), ("mg", 6, "a power of 2")],
)
def test_kernels_refuse_numbers_of_ranks_that_they_have_no_grid_for(kernel, ranks, wanted):
    with pytest.raises(TopompiError, match=wanted):
        nas(kernel, ranks)


@pytest.mark.parametrize(("name", "grid"), [("cg", "2x8"), ("bt", "8x2"), ("mg", "2x2x4")])
def test_kernels_of_nas_have_one_grid_for_a_number_of_ranks(name, grid):
    with pytest.raises(TopompiError, match=f"--grid: expecting 4x4|4x2x2 for {name} of 16 ranks, got {grid}"):
        make_kernel(name, range(16), grid)


def test_thresholds_decide_the_class():
    limits = Thresholds(0.2, 0.5)
    assert [limits.name(usage) for usage in (0, 0.19, 0.2, 0.49, 0.5, np.inf)] == [
        "low",
        "low",
        "moderate",
        "moderate",
        "extreme",
        "extreme",
    ]
    with pytest.raises(TopompiError, match="expecting 0 < moderate <= extreme, got 2 and 1"):
        Thresholds(2, 1)


def test_a_job_of_another_size_or_without_time_is_refused():
    graph, levels = CommunicationGraph.from_matrix([[0, 1], [1, 0]]), levels_of(tree([2, 2], [1, 1]))
    with pytest.raises(TopompiError, match="expecting hosts of 2 ranks, got 1"):
        characterise(graph, 1.0, np.array([0]), levels)
    with pytest.raises(TopompiError, match="expecting a time on a crossbar above 0 s, got 0"):
        characterise(graph, 0, np.array([0, 1]), levels)
