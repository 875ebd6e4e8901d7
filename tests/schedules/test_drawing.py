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


def test_a_chart_has_the_numbers_of_its_steps_above_and_below():
    root = ElementTree.fromstring(draw(make("alltoall", "shift", NETWORK), NETWORK))
    places = [float(text.get("y")) for text in root.iter(SVG + "text") if text.text == "step"]
    assert len(places) == 2
    assert (
        places[0] < min(float(path.get("d").split()[1].split("h")[0]) for path in root.iter(SVG + "path")) < places[1]
    )


@pytest.mark.parametrize(("collective", "name"), [("gather", "linear"), ("bcast", "binomial"), ("alltoall", "shift")])
def test_drawings_of_many_ranks_fit_a_screen_and_no_name_is_cut_at_an_edge(collective, name):
    routes = load("XGFT(2; 16,16; 1,4)").routes
    network = network_of(TopologyInterface.place(routes.fabric.hosts, routes))
    links = [
        f"a-switch-with-a-long-name-{link:04} -> another-switch-with-a-long-name-{link:04}" for link in range(1000)
    ]
    svg = draw(make(collective, name, network), network, host_names=[*routes.fabric.hosts], link_names=links)
    root = ElementTree.fromstring(svg)
    assert float(root.get("width")) <= 1200
    assert float(root.get("height")) <= 2600
    for text in root.iter(SVG + "text"):
        wide = 0.55 * float(text.get("font-size")) * len(text.text)
        left = float(text.get("x")) - {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")] * wide
        assert left >= -1, text.text
    numbers = [int(text.text) for text in root.iter(SVG + "text") if text.text.isdecimal()]
    first = numbers[: numbers.index(max(numbers)) + 1]
    assert first == list(range(0, max(numbers) + 1, first[1]))
    assert first[1] in (1, 2, 5, 10, 20, 50, 100)


def test_distances_have_the_same_colours_in_every_picture():
    from topompi.mapping.drawing import _colours
    from topompi.mpi.profile.colours import colours_of

    found = colours_of([3, 2, 1, 0, 4])
    assert found == {0: "#000000", 1: "#009e73", 2: "#e69f00", 3: "#0072b2", 4: "#d55e00"}
    assert _colours({"a": {"host": 1, "1": 1, "2": 1, "3": 1, "4": 1}}, True) == {
        "host": found[0], **{str(hops): found[hops] for hops in (1, 2, 3, 4)}}  # fmt: skip
    fabric = load("torus:4x4").routes
    network = network_of(TopologyInterface.place(fabric.fabric.hosts, fabric))
    schedule = make("gather", "linear", network)
    hops = {rank: int(network.hops[0, rank]) for rank in range(1, 16)}
    colours = colours_of(hops.values())
    for node in elements(draw(schedule, network), "circle"):
        rank = int(re.match(r"rank (\d+)", node[0].text)[1])
        assert rank == 0 or node.get("fill") == colours[hops[rank]]
    assert len(set(colours.values())) == len(set(hops.values()))
