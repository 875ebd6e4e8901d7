"""Pictures whose hosts are cells: each host once, its jobs' colours, crosses, marked links, and the fit."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.topology import load
from topompi.views.picture.cells import EDGE, FREE, MARKED, MOST_CELLS, Cell, MarkedLink, cell_scene
from topompi.views.picture.scene import Box, Line, Text

SOURCES = ["XGFT(2; 4,4; 1,2)", "xgft:36,36;1,18", "torus:4x4x4", "dragonfly:4,2,2"]
ROUTES = {source: load(source).routes for source in SOURCES}
COLOURS = ("#0072b2", "#e69f00", "#cc79a7")


def scene_of(source, cells=None, marked=None):
    routes = ROUTES[source]
    return cell_scene(routes, source, cells or [Cell()] * routes.fabric.num_hosts, marked or {})


def boxes(scene):
    return [one for one in scene.items if isinstance(one, Box)]


@examples(20)
@given(st.sampled_from(SOURCES), st.randoms(use_true_random=False))
def test_every_host_is_a_cell_with_the_colours_of_its_jobs(source, random):
    hosts, cells = ROUTES[source].fabric.hosts, []
    for _ in hosts:
        jobs = random.sample(range(3), random.randrange(3))
        cells.append(Cell("t", tuple(map(str, jobs)), tuple(COLOURS[job] for job in jobs), random.random() < 0.2))
    scene = scene_of(source, cells)
    found = Counter((box.tip, box.colour) for box in boxes(scene) if box.tip.endswith(": t"))
    wanted = Counter((f"{host}: t", colour) for host, cell in zip(hosts, cells, strict=True)
                     for colour in cell.colours or (FREE,))  # fmt: skip
    assert found == wanted
    crosses = [line.tip for line in scene.lines() if line.ends == (-1, -1) and line.tip]
    assert sorted(crosses) == sorted(f"{host}: t" for host, cell in zip(hosts, cells, strict=True) if cell.is_crossed)


@examples(20)
@given(st.sampled_from(SOURCES), st.randoms(use_true_random=False))
def test_every_marked_link_is_in_a_marked_line_or_box_and_no_other_is_marked(source, random):
    fabric = ROUTES[source].fabric
    links = random.sample(fabric.switch_links.tolist(), random.randrange(6))
    scene = scene_of(source, marked={link: MarkedLink("x", (str(link),)) for link in links})
    marked = [one for one in (*scene.lines(), *boxes(scene)) if MARKED in (one.colour, getattr(one, "edge", ""))]
    assert sorted(" ".join(one.jobs for one in marked).split()) == sorted(map(str, links))
    assert len([one for one in marked if one.jobs]) <= len(links)


@pytest.mark.parametrize("source", SOURCES)
def test_cells_keep_apart_and_within_the_picture(source):
    cells = [Cell("t", ("123456_78",), (COLOURS[at % 3],), at % 5 == 0)
             for at in range(ROUTES[source].fabric.num_hosts)]  # fmt: skip
    scene = scene_of(source, cells)
    frames = sorted((box.y, box.x, box.width, box.height) for box in boxes(scene) if box.tip)
    assert all(y != below or x + width <= right for (y, x, width, _), (below, right, *_) in pairwise(frames))
    assert all(x >= 0 and x + width <= scene.width and y + height < scene.height for y, x, width, height in frames)
    assert scene.width <= 1200
    for text in (one for one in scene.items if isinstance(one, Text) and one.jobs):
        (frame,) = (one for one in frames if one[1] < text.x < one[1] + one[2] and one[0] < text.y < one[0] + one[3])
        assert text.length <= frame[2]


def test_a_host_of_many_jobs_has_the_colours_of_the_first_and_the_names_of_all():
    jobs = tuple(map(str, range(9)))
    cells = [Cell("t", jobs, COLOURS * 3), *[Cell()] * 15]
    stripes = [box for box in boxes(scene_of("XGFT(2; 4,4; 1,2)", cells)) if box.jobs]
    assert [box.colour for box in stripes] == [*COLOURS, COLOURS[0]]
    assert {box.jobs for box in stripes} == {" ".join(jobs)}


def test_the_layout_depends_on_the_fabric_alone():
    def places(scene):
        return [(box.x, box.y) for box in boxes(scene) if box.tip]

    busy = [Cell("t", ("7",), (COLOURS[0],), True)] * 1296
    assert places(scene_of("xgft:36,36;1,18", busy)) == places(scene_of("xgft:36,36;1,18"))


def test_in_a_large_fabric_hosts_that_look_alike_are_one_bar():
    routes = load("xgft:32,16,16;1,2,2").routes
    assert routes.fabric.num_hosts > MOST_CELLS
    cells = [Cell("t", (str(at // 512),), (COLOURS[at // 512 % 3],)) for at in range(routes.fabric.num_hosts)]
    scene = cell_scene(routes, "", cells, {})
    bars = [box for box in boxes(scene) if box.tip.endswith(": t")]
    assert len(bars) < routes.fabric.num_hosts / 4
    assert {box.jobs for box in bars} == {str(job) for job in range(16)}
    sizes = np.array([box.width + 1 for box in bars])
    assert sizes.sum() == pytest.approx(routes.fabric.num_hosts * min(sizes[0], *(box.height + 1 for box in bars)))


def test_free_hosts_have_an_edge_and_lines_to_them_are_no_links():
    scene = scene_of("XGFT(2; 4,4; 1,2)")
    assert {(box.colour, box.edge) for box in boxes(scene) if box.tip.startswith("h")} == {(FREE, EDGE)}
    assert sum(isinstance(one, Line) and one.ends[0] < 0 for one in scene.items) == 4  # from leaf switches to hosts
