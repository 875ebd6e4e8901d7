"""Levels of fabrics: their groups and the bandwidth of each cut, against closed forms and links counted one by one."""

from dataclasses import replace
from math import prod

import networkx
import numpy as np
import pytest
from hypothesis import given

from studies.jokanovic import xgft
from tests.interference.fabrics import LINK, shapes, tree
from tests.support import examples
from topompi.errors import TopompiError
from topompi.machine.interference import levels_of
from topompi.topology import load

# Jokanovic 2014: up-links of XGFT(3; 16,16,8; 1,S,S) in Gbit/s at levels 0, 1 and 2.
STUDY = {16: (20480, 20480, 20480), 8: (20480, 10240, 5120), 4: (20480, 5120, 1280), 2: (20480, 2560, 320)}
STUDY[1] = (20480, 1280, 80)
COLUMNS = [f"link_{name}" for name in ("source", "target", "source_port", "target_port", "rate", "latency")]


@pytest.mark.parametrize("slim", STUDY)
def test_the_source_s_slimmed_trees_have_its_bandwidths(slim):
    levels = levels_of(tree([16, 16, 8], [1, slim, slim]))
    assert tuple(8 * up.sum() / 1e9 for up in levels.up) == STUDY[slim]
    assert tuple(8 * down.sum() / 1e9 for down in levels.down) == STUDY[slim]


def test_the_source_s_slimmed_trees_have_its_switches():
    found = [xgft.vertices([16, 16, 8], [1, slim, slim])[1:] for slim in (16, 8, 4, 2, 1)]
    assert found == [[128, 128, 256], [128, 64, 64], [128, 32, 16], [128, 16, 4], [128, 8, 1]]


@given(shapes())
def test_the_bandwidth_of_every_cut_of_a_tree_is_its_closed_form(shape):
    children, parents = shape
    levels = levels_of(tree(children, parents))
    links = xgft.up_links(children, parents)
    assert len(levels) == len(children)
    for level, total in enumerate(links):
        below = prod(children[:level])
        assert (levels.group[level] == np.arange(prod(children)) // below).all()
        assert (levels.up[level] == LINK * xgft.sub_tree_links(parents, level)).all()
        assert (levels.down[level] == levels.up[level]).all()
        assert levels.up[level].sum() == LINK * total


@given(shapes(most_hosts=24, least_height=2))
@examples(25)
def test_a_cut_of_a_tree_carries_its_bandwidth_unless_hosts_are_slower(shape):
    """A largest flow out of the group is the oracle: the cut's bandwidth, or that of hosts on one of its sides."""
    fabric = tree(*shape)
    levels = levels_of(fabric)
    for level in range(1, len(levels)):
        graph = networkx.DiGraph()
        for source, target in zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True):
            graph.add_edge(source, target, capacity=1)
        inside = levels.group[level] == 0
        for host, within in enumerate(inside.tolist()):
            graph.add_edge(*(("from", host) if within else (host, "to")), capacity=1)
        below = min(int(levels.up[one][np.unique(levels.group[one][inside])].sum() / LINK) for one in range(level))
        other = int((~inside).sum()), int(levels.up[level][1:].sum() / LINK)
        flow = networkx.maximum_flow_value(graph, "from", "to")
        assert flow <= levels.up[level][0] / LINK
        assert flow == min(levels.up[level][0] / LINK, below, *other, _into(levels, level, inside))


def _into(levels, level, inside):
    """The bandwidth into the other hosts' groups of all lower levels."""
    return min(int(levels.down[one][np.unique(levels.group[one][~inside])].sum() / LINK) for one in range(level))


@pytest.mark.parametrize("source", ["torus:3x4", "torus:4x4x2@hosts_per_switch=2", "dragonfly:4,2,2", "slurm64"])
def test_any_fabric_has_its_links_counted_one_by_one(source):
    fabric = load(source).fabric
    levels = levels_of(fabric, 1.0)
    leaf = fabric.adapter_leaf[[adapters[0] for adapters in fabric.host_adapters]]
    assert len(np.unique(np.stack((leaf, levels.group[1])), axis=1)[0]) == len(np.unique(leaf))
    for group in range(len(levels.up[1])):
        switch = fabric.num_adapters + leaf[np.argmax(levels.group[1] == group)]
        ends = zip(fabric.link_source.tolist(), fabric.link_target.tolist(), fabric.link_rate.tolist(), strict=True)
        rates = [rate if rate == rate else 1.0 for at, to, rate in ends if at == switch and to >= fabric.num_adapters]
        assert levels.up[1][group] == pytest.approx(sum(rates))


def test_a_torus_has_no_level_above_its_switches():
    assert len(levels_of(load("torus:3x4").fabric)) == 2


def test_given_groups_of_switches_are_levels_too():
    fabric = load("dragonfly:4,2,2").fabric
    groups = np.arange(fabric.num_switches) // 4
    levels = levels_of(fabric, switch_groups=[np.arange(fabric.num_switches), groups])
    assert [len(up) for up in levels.up] == [fabric.num_hosts, fabric.num_switches, fabric.num_switches // 4]
    rate = fabric.link_rate[0]
    assert (levels.up[2] == rate * 4 * 2).all()  # 4 switches with 2 global links each


def test_an_unknown_rate_is_an_error_unless_one_is_given():
    fabric = tree([2, 2], [1, 1])
    some = np.where(np.arange(fabric.num_links) % 5, fabric.link_rate, np.nan)
    unknown = replace(fabric, link_rate=some)
    with pytest.raises(TopompiError, match=f"expecting the rate of all links, got {np.isnan(some).sum()} unknown"):
        levels_of(unknown)
    assert levels_of(unknown, LINK).up[1].tolist() == [LINK, LINK]


def test_a_host_without_a_leaf_switch_is_an_error():
    fabric = tree([2, 2], [1, 1])
    kept = (fabric.link_source != 0) & (fabric.link_target != 0)
    columns = {name: getattr(fabric, name)[kept] for name in COLUMNS}
    with pytest.raises(TopompiError, match=r"h0000: expecting a host at a leaf switch, got one without"):
        levels_of(replace(fabric, **columns))


@pytest.mark.parametrize(("children", "parents"), [([2, 2], [1]), ([2, 0], [1, 1])])
def test_malformed_trees_are_refused(children, parents):
    with pytest.raises(TopompiError, match="expecting as many children as parents"):
        xgft.vertices(children, parents)
