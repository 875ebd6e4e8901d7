"""The picture of jobs side by side: hosts by job, links by how busy they are, and what no job uses."""

import numpy as np
import pytest

from topompi.topology import load
from topompi.views.picture.folding import fold
from topompi.views.picture.legend import IDLE, SHADES
from topompi.views.picture.scene import Box, Line, Text
from topompi.views.picture.shared import ONE, BusyLink, job_colours, shared_scene

SMALL = load("xgft:2,2;1,1").routes
JOBS = {"A": np.array([0, 2]), "B": np.array([1])}


def up(routes, leaf):
    """The first link up from a leaf switch."""
    fabric = routes.fabric
    return int(
        np.flatnonzero(
            (fabric.link_source == fabric.num_adapters + leaf) & (fabric.link_target > fabric.num_adapters + leaf)
        )[0]
    )


def scene(routes=SMALL, jobs=JOBS, shares=(0.95, None), words=()):
    used, busy = np.zeros(routes.fabric.num_links, dtype=bool), {}
    for leaf, share in enumerate(shares):
        used[up(routes, leaf)] = True
        if share is not None:
            busy[up(routes, leaf)] = BusyLink((0, 1), share)
    return shared_scene(routes, "title", jobs, used, busy, words)


def between(found):
    return [one for one in found.items if isinstance(one, Line) and one.ends != (-1, -1)]


@pytest.mark.parametrize(("share", "shade"), [(1.0, 0), (0.95, 0), (0.7, 1), (0.2, 2)])
def test_a_line_shows_how_busy_the_busiest_of_its_shared_links_is(share, shade):
    one, other = sorted(between(scene(shares=(share, None))), key=lambda line: -line.width)
    assert one.colour == SHADES[shade][1]
    assert f"used by A, B, busy {share:.0%} of the time" in one.tip
    assert (other.colour, other.width) == ONE
    assert one.width == pytest.approx(0.8 + 7.2 * share)


def test_hosts_have_the_colours_and_names_of_their_jobs_and_the_legend_too():
    found = scene(words=("A loses 1 ms to B",))
    tips = {box.tip: box.colour for box in found.items if isinstance(box, Box) and box.tip.startswith("h0")}
    colours = job_colours(2)
    assert tips == {"h0000: A": colours[0], "h0002: A": colours[0], "h0001: B": colours[1], "h0003: free": "#ffffff"}
    words = [text.words for text in found.items if isinstance(text, Text)]
    assert {"A", "B", "free host", "A loses 1 ms to B", "above 90 %"} <= set(words)
    assert max(text.y for text in found.items if isinstance(text, Text)) < found.height


def test_what_no_job_uses_is_drawn_together_and_counted():
    routes = load("xgft:18,40;1,2").routes
    jobs = {"A": np.arange(0, 14 * 18, 18), "B": np.arange(1, 14 * 18, 18)}  # on 14 leaf switches of 40
    found = scene(routes, jobs, shares=(0.5,) * 14)
    free = [
        text.words
        for text in found.items
        if isinstance(text, Text) and "free" in text.words and "host," not in text.words
    ]
    assert sum(int(words.split()[0].replace(",", "")) for words in free if words[0].isdigit()) == 26 * 18
    assert IDLE not in {line.colour for line in between(found)}
    assert "no job: not drawn" in [text.words for text in found.items if isinstance(text, Text)]


def test_nodes_of_crossed_and_of_other_switches_are_apart_if_asked():
    fabric = load("xgft:4,40;1,2").fabric
    crossed = np.zeros(fabric.num_switches, dtype=bool)
    crossed[:27:2] = True  # 14 leaf switches
    for node in fold(fabric, crossed, apart=True):
        assert len(set(crossed[node.switches].tolist())) == 1
    assert any(len(set(crossed[node.switches].tolist())) == 2 for node in fold(fabric, crossed))
    assert len(fold(fabric, crossed, apart=True)) <= 16 + 2
