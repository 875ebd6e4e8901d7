"""Drawings of schedules: XML with the schedule's content; and the gallery, equal to the generators' output."""

import itertools
import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.make_gallery import FOLDER, PICTURES, network_of_gallery, render
from tests.support import examples
from topompi.schedules.analysis.loads import analyse
from topompi.schedules.drawing.charts import HOP_COLOURS, LOADS, MOST_LINKS, draw, is_tree
from topompi.schedules.registry import ALGORITHMS, make
from topompi.schedules.rooted.broadcast import along
from topompi.schedules.rooted.gather import gather_along
from topompi.schedules.trees import Tree
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

SVG = "{http://www.w3.org/2000/svg}"
ROUTES = load("XGFT(2; 4,4; 1,2)").routes
NETWORK = network_of(TopologyInterface.place([host for host in ROUTES.fabric.hosts for _ in range(2)], ROUTES))


def elements(svg, tag):
    return list(ElementTree.fromstring(svg).iter(SVG + tag))


def tips(svg):
    """What the circles say of themselves, by rank."""
    return {int(re.match(r"rank (\d+)", text)[1]): text for text in (node[0].text for node in elements(svg, "circle"))}


@pytest.mark.parametrize(("collective", "name"), [(c, name) for c, names in ALGORITHMS.items() for name in names])
def test_every_algorithm_has_a_drawing_that_is_the_same_each_time(collective, name):
    schedule = make(collective, name, NETWORK)
    svg = draw(schedule, NETWORK, title="a < b & c")
    assert svg == draw(schedule, NETWORK, title="a < b & c")
    root = ElementTree.fromstring(svg)
    assert root.find(SVG + "title").text == "a < b & c"
    width, height = float(root.get("width")), float(root.get("height"))
    for node in root.iter():
        for x in ("x", "x1", "x2", "cx"):
            assert 0 <= float((node.get(x) or "0").removesuffix("%")) <= width
        for y in ("y", "y1", "y2", "cy"):
            assert 0 <= float((node.get(y) or "0").removesuffix("%")) <= height


def test_trees_are_told_from_what_is_none():
    trees = {"binomial", "knomial", "reordered", "dft", "bft", "dft_rate", "bft_rate", "leaders", "chain"}
    assert {name for name in ALGORITHMS["bcast"] if is_tree(make("bcast", name, NETWORK, root=3))} == trees
    assert all(is_tree(make(way, name, NETWORK, root=3)) for way in ("gather", "scatter") for name in ALGORITHMS[way])
    assert {name for name in ALGORITHMS["reduce"] if is_tree(make("reduce", name, NETWORK))} == {
        "binomial",
        "knomial",
        "leaders",
        "chain",
    }
    assert not is_tree(make("allgather", "ring", NETWORK))
    alone = network_of(TopologyInterface.place(["h0000"], ROUTES))
    assert not is_tree(make("bcast", "binomial", alone))


@st.composite
def trees(draw):
    """Random trees with random turns; the root is not always rank 0."""
    size = draw(st.integers(2, 32))
    order = draw(st.permutations(range(size)))
    parent, turn = np.full(size, -1), np.zeros(size, dtype=np.int64)
    for place in range(1, size):
        parent[order[place]] = order[draw(st.integers(0, place - 1))]
        turn[order[place]] = draw(st.integers(0, 3))
    return Tree(parent, turn)


@examples(50)
@given(trees(), st.booleans())
def test_a_tree_shows_each_edge_at_its_step_in_the_colour_of_its_hops(tree, towards):
    schedule = gather_along(tree, "any") if towards else along(tree, "any")
    network = network_of(TopologyInterface.place([ROUTES.fabric.hosts[r % 16] for r in range(tree.size)], ROUTES))
    svg = draw(schedule, network)
    said, colours = tips(svg), Counter(node.get("fill") for node in elements(svg, "circle"))
    expected = Counter({"#222222": 1})
    for row in schedule.messages.tolist():
        source, destination, step = (
            int(column[row]) for column in (schedule.source, schedule.destination, schedule.step)
        )
        child, parent = (source, destination) if towards else (destination, source)
        hops = int(network.hops[network.rank_host[source], network.rank_host[destination]])
        assert f"{'to' if towards else 'from'} rank {parent} in step {step}, " in said[child]
        expected[HOP_COLOURS[hops]] += 1
    assert len(said) == tree.size
    assert colours == expected


@examples(50)
@given(trees(), st.booleans())
def test_no_lines_of_a_tree_cross(tree, towards):
    """An upright line meets a level one only at one of the two's ends."""
    schedule = gather_along(tree, "any") if towards else along(tree, "any")
    network = network_of(TopologyInterface.place([ROUTES.fabric.hosts[r % 16] for r in range(tree.size)], ROUTES))
    lines = [node for node in elements(draw(schedule, network), "line") if node.get("stroke") != "#e4e4e4"]
    spans = [tuple(float(node.get(name)) for name in ("x1", "y1", "x2", "y2")) for node in lines]
    upright = [(x1, *sorted((y1, y2))) for x1, y1, x2, y2 in spans if x1 == x2 and y1 != y2]
    level = [(y1, *sorted((x1, x2))) for x1, y1, x2, y2 in spans if y1 == y2]
    for (x, top, bottom), (y, left, right) in itertools.product(upright, level):
        assert not (top < y < bottom and left < x < right)


@pytest.mark.parametrize("name", ["shift", "bruck", "colouring", "tacs2"])
def test_a_chart_has_a_cell_for_each_loaded_link_and_step(name):
    schedule = make("alltoall", name, NETWORK)
    analysis = analyse(schedule, NETWORK)
    svg = draw(schedule, NETWORK)
    cells = {node.get("fill"): node.get("d").count("M") for node in elements(svg, "path")}
    assert sum(cells.values()) == len(analysis.step)
    over = [colour for upper, colour, _ in LOADS if upper > 1]
    assert sum(cells.get(colour, 0) for colour in over) == int((analysis.conflicts > 0).sum())
    words = [node.text for node in elements(svg, "text")]
    assert f"{int(analysis.conflicts.sum()):,} conflicts, on" in " ".join(words)
    bars = [node for node in elements(svg, "rect") if node.get("fill") == "#9a9a9a"]
    assert len(bars) == int((analysis.idle_ranks > 0).sum())


def test_a_chart_of_many_links_shows_those_with_most_conflicts_and_says_so():
    routes = load("XGFT(2; 8,8; 1,4)").routes
    network = network_of(TopologyInterface.place(routes.fabric.hosts, routes))
    schedule = make("alltoall", "pairwise", network)
    svg = draw(schedule, network)
    shown = {int(node.text[5:]) for node in elements(svg, "text") if re.fullmatch(r"link \d+", node.text)}
    assert len(shown) == MOST_LINKS < 2 * 64 + 2 * 32
    analysis, conflicts = analyse(schedule, network), Counter()
    for link, number in np.stack((analysis.link, analysis.conflicts), axis=1).tolist():
        conflicts[link] += number
    assert min(conflicts[link] for link in shown) >= max(conflicts[link] for link in set(conflicts) - shown)
    assert any(f"{MOST_LINKS} of them shown" in node.text for node in elements(svg, "text"))


@pytest.mark.parametrize("picture", PICTURES, ids="-".join)
def test_the_gallery_is_what_the_generators_make(picture):
    """After a change of a generator or of the drawing: python -m docs.make_gallery."""
    assert (FOLDER / f"{'-'.join(picture)}.svg").read_text(encoding="utf-8") == render(*picture)


def test_the_gallery_has_32_ranks():
    assert {network_of_gallery(place)[1].num_ranks for place in ("block", "random:1")} == {32}
