"""Pictures of fabrics: bytes on links against sums by hand, merged parts, the fit of the page, and a real browser."""

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.inputs.figures import short_names, span_name, without_common_end
from topompi.topology import load
from topompi.views.picture import folding
from topompi.views.picture.bundles import bundles_of
from topompi.views.picture.fabricscene import DrawnJob, fabric_scene
from topompi.views.picture.folding import MOST, OTHERS, fold
from topompi.views.picture.loads import crossed_switches, link_loads
from topompi.views.picture.names import ranges
from topompi.views.picture.scene import Box, Line, Text
from topompi.views.picture.writers import svg

SVG = "{http://www.w3.org/2000/svg}"
SOURCES = ["XGFT(2; 3,2; 1,1)", "XGFT(2; 4,4; 1,2)", "stampede", "ranger", "torus:4x4x4", "dragonfly:4,2,2", "kary:4,3"]
ROUTES = {source: load(source).routes for source in SOURCES}
SMALL = ROUTES["XGFT(2; 4,4; 1,2)"]

messages = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(1, 10**6)), min_size=1, max_size=40)


def job_of(hosts):
    return DrawnJob(np.unique(hosts), {int(host): np.flatnonzero(hosts == host).tolist() for host in np.unique(hosts)})


@given(messages, st.permutations(range(16)))
def test_a_link_carries_what_its_routes_bring(pairs, hosts):
    source, target, nbytes = (np.array(column) for column in zip(*pairs, strict=True))
    loads = link_loads(SMALL, np.array(hosts), (source, target, nbytes))
    fabric, expected = SMALL.fabric, Counter()
    for one, other, size in pairs:
        if one != other:
            start, end = (int(fabric.host_adapters[hosts[rank]][0]) for rank in (one, other))
            expected[int(fabric.adapter_uplink[start])] += size
            _, links, _ = SMALL.tables.walk(fabric.adapter_leaf[[start]], np.array([end]))
            expected.update(dict.fromkeys(links[links >= 0].tolist(), 0))
            for link in links[links >= 0].tolist():
                expected[link] += size
    assert {link: loads.bytes[link] for link in np.flatnonzero(loads.bytes).tolist()} == dict(expected)
    busiest = loads.busiest(3)
    assert [loads.seconds[link] for link in busiest] == sorted(loads.seconds[loads.bytes > 0], reverse=True)[:3]


@pytest.mark.parametrize("source", SOURCES)
def test_every_switch_is_in_one_node_and_a_level_has_not_too_many(source):
    fabric = ROUTES[source].fabric
    nodes = fold(fabric)
    assert sorted(np.concatenate([node.switches for node in nodes]).tolist()) == list(range(fabric.num_switches))
    for level, count in Counter(node.level for node in nodes).items():
        switches = int((fabric.switch_level == level).sum())
        assert count == switches if switches <= MOST else count <= MOST
    assert all((fabric.switch_level[node.switches] == node.level).all() for node in nodes)


@examples(20)
@given(st.lists(st.integers(0, 6399), min_size=1, max_size=12, unique=True))
def test_the_leaves_of_a_job_stand_alone_and_no_other_switch_is_called_crossed(hosts):
    routes = ROUTES["stampede"]
    crossed = crossed_switches(routes, np.unique(hosts))
    nodes = fold(routes.fabric, crossed)
    leaves = {int(leaf) for leaf in routes.fabric.adapter_leaf[hosts]}
    alone = {int(node.switches[0]) for node in nodes if node.level == 0 and len(node.switches) == 1}
    assert leaves <= alone
    assert sum(node.level == 0 for node in nodes) <= MOST + OTHERS
    assert all(node.crossed == crossed[node.switches].any() for node in nodes)


@pytest.mark.parametrize("source", SOURCES)
def test_bundles_hold_every_cable_between_nodes_once(source):
    fabric = ROUTES[source].fabric
    of_switch = np.empty(fabric.num_switches, dtype=np.int64)
    for number, node in enumerate(fold(fabric)):
        of_switch[node.switches] = number
    ends = [
        of_switch[column[fabric.switch_links] - fabric.num_adapters]
        for column in (fabric.link_source, fabric.link_target)
    ]
    assert 2 * sum(one.cables for one in bundles_of(fabric, of_switch, None)) == int((ends[0] != ends[1]).sum())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("with_job", [False, True])
def test_pictures_have_room_for_their_words_and_boxes(source, with_job):
    routes = ROUTES[source]
    hosts = np.repeat(np.arange(0, routes.fabric.num_hosts, max(routes.fabric.num_hosts // 12, 1)), 2)
    job = job_of(hosts) if with_job else None
    ring = (np.arange(len(hosts)), np.roll(np.arange(len(hosts)), 1), np.full(len(hosts), 1000))
    scene = fabric_scene(routes, source, job, link_loads(routes, hosts, ring) if with_job else None)
    assert not any(
        " to " in one.words or " … " in one.words
        for one in scene.items
        if isinstance(one, Text) and one.anchor == "middle"
    )
    for text in (one for one in scene.items if isinstance(one, Text)):
        left = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * text.length
        assert text.x - left >= -1, text
        assert text.x - left + text.length <= scene.width + 1, text
        assert 0 <= text.y <= scene.height
    boxes = sorted((box.y, box.x, box.width) for box in scene.items if isinstance(box, Box) and box.edge)
    for (y, x, width), (below, right, _) in pairwise(boxes):
        assert y != below or x + width <= right
    boxes = [box for box in scene.items if isinstance(box, Box) and box.edge]
    for text in (one for one in scene.items if isinstance(one, Text) and one.anchor == "middle"):
        (box,) = (one for one in boxes if one.x < text.x < one.x + one.width and one.y < text.y < one.y + one.height)
        assert text.length * (1.28 if text.bold else 1) <= box.width, text
        assert text.size >= 9
    assert scene.width <= 1200
    assert ElementTree.fromstring(svg(scene)).find(SVG + "title").text == source


def test_levels_that_are_over_subscribed_are_marked_and_others_are_not():
    def marked(source):
        words = [one.words for one in fabric_scene(load(source).routes, source).items if isinstance(one, Text)]
        return [one for one in words if "over-subscribed" in one]

    assert marked("XGFT(2; 4,4; 1,2)") == ["2 : 1 over-subscribed"]
    assert marked("XGFT(2; 4,4; 1,4)") == []


def test_the_busiest_link_is_the_widest_line_and_idle_ones_are_thin():
    source, target = np.array([0, 0]), np.array([4, 8])
    loads = link_loads(SMALL, np.arange(16), (source, target, np.array([1000, 250])))
    lines = [one for one in fabric_scene(SMALL, "", job_of(np.arange(16)), loads).lines() if one.ends[0] >= 0]
    used = sorted({(line.width, line.colour) for line in lines}, reverse=True)
    assert used[0][1] == "#7f2704"
    assert sum("1 KB" in line.tip or "1.25 KB" in line.tip or "250 B" in line.tip for line in lines) == sum(
        line.width > 1 for line in lines
    )
    assert all(line.width < 1 for line in lines if "up" not in line.tip)
    assert isinstance(lines[0], Line)


def test_long_names_stay_in_their_boxes_and_keep_both_ends():
    routes = ROUTES["kary:4,3"]
    named = replace(routes.fabric, hosts=tuple(f"rack-{at:03}-chassis-of-compute-node-{at % 4}" for at in range(64)))
    scene = fabric_scene(replace(routes, fabric=named), "long", job_of(np.arange(0, 64, 4)))
    words = [one for one in scene.items if isinstance(one, Text) and one.words.startswith("rac")]
    assert len(words) == 16
    assert all("…" in one.words and one.words.endswith("-0") and one.length < 62 for one in words)


def test_a_common_end_is_left_out_from_a_separator_on():
    assert without_common_end(["S1:MQM9701/U1", "S2:MQM9701/U1"]) == ["S1", "S2"]
    assert without_common_end(["leaf-1", "spine-1"]) == ["leaf-1", "spine-1"]
    assert without_common_end([":a", ":a"]) == [":a", ":a"]
    assert without_common_end(["one:a"]) == ["one:a"]


def test_long_names_of_a_level_lose_what_they_share_and_still_differ():
    cards = [f"MF0;MellanoxIS5600-{chassis}:IS5600/L{card:02}/U1" for chassis in (1, 2, 3) for card in range(1, 28)]
    assert short_names(cards, 40)[:2] == ["MF0;MellanoxIS5600-1:IS5600/L01", "MF0;MellanoxIS5600-1:IS5600/L02"]
    assert short_names(cards, 12)[:2] == ["1:IS5600/L01", "1:IS5600/L02"]
    assert short_names(cards, 6)[:2] == ["1…L01", "1…L02"]
    guids = [f"0x0002c902004{number:05x}" for number in range(0x17C88, 0x19C88, 0x68)]
    assert len(set(short_names(guids, 6))) == len(guids)


@given(st.lists(st.text("ab1-:/ ;", min_size=1, max_size=12), max_size=6), st.integers(3, 14))
def test_short_names_are_short_and_as_many_as_the_names(names, most):
    found = short_names(names, most)
    assert len(found) == len(names)
    assert all(0 < len(one) <= most for one in found)


def test_times_have_the_unit_that_makes_them_short():
    assert [span_name(one) for one in (6.01e-5, 0.545, 3.25e-6, 90.0, 2e-9, 0.0)] == [
        "60.1 us", "545 ms", "3.25 us", "1.5 min", "2 ns", "0 ns"]  # fmt: skip


@pytest.mark.parametrize("source", ["stampede", "XGFT(3; 8,8,8; 1,4,4)"])
@pytest.mark.parametrize("used", [1, 3])
def test_groups_of_hosts_have_whole_numbers_of_hosts_and_ranks(source, used):
    """Numbers that do not fit leave out words, never digits."""
    routes = load(source).routes
    hosts = np.arange(0, routes.fabric.num_hosts, used)
    scene = fabric_scene(routes, source, job_of(hosts))
    words = [one.words for one in scene.items if isinstance(one, Text) and one.size == 10]  # below the leaf switches
    counts = [one for one in words if re.match(r"[0-9][0-9,]*((/| of )[0-9,]+)?( hosts?)?$", one)]
    assert counts
    named = [re.fullmatch(r"([0-9,]+)((/| of )[0-9,]+)?( hosts?)?", one) for one in counts]
    assert sum(int(one[1].replace(",", "")) for one in named) == len(hosts)
    assert not [one for one in words if "…" in one]


def test_the_legend_names_whole_links_within_the_picture():
    routes = ROUTES["stampede"]
    long = replace(routes.fabric, hosts=tuple(f"node-{at:04}-of-a-cluster-with-long-names" for at in range(6400)))
    hosts = np.arange(0, 6400, 100)
    ring = (np.arange(64), np.roll(np.arange(64), 1), np.full(64, 10**6))
    scene = fabric_scene(replace(routes, fabric=long), "ring", job_of(hosts), link_loads(routes, hosts, ring))
    (busy,) = [one for one in scene.items if isinstance(one, Text) and one.words.startswith("busiest link")]
    assert busy.x + busy.length <= scene.width
    assert re.fullmatch(r"busiest links?: ([^;…]+ → [^;…]+ [0-9.]+ MB(; )?)+", busy.words)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ranges_hold_the_numbers_they_were_made_of(numbers):
    parts = [list(map(int, part.split("-"))) for part in ranges(sorted(numbers)).split(",")]
    assert [one for part in parts for one in range(part[0], part[-1] + 1)] == sorted(numbers)
    assert all(after[0] > before[-1] + 1 for before, after in pairwise(parts))


@pytest.fixture
def draw(monkeypatch, command, tmp_path):
    """Runs ``topompi topology draw`` in this process and a folder of its own."""
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    monkeypatch.chdir(tmp_path)
    return partial(command, "topology", "draw")


def test_graphs_schedules_and_maps_are_drawn_from_the_command_line(draw, tmp_path):
    (tmp_path / "graph").write_text("0 3 5000000\n1 2 7\n")
    (tmp_path / "map.json").write_text(_map_file(tmp_path))
    for options in (
        ("--hosts", "h[0000,0004,0008,0012]", "--loads", "graph"),
        ("--hosts", "h[0000,0004,0008,0012]", "--loads", "alltoall:even", "--bytes", "1M"),
        ("--map", "map.json", "--loads", "graph"),
    ):
        done = draw("XGFT(2; 4,4; 1,2)", "-o", "x.svg", *options)
        assert done.code == 0, done.err
        words = [one.text or "" for one in ElementTree.parse("x.svg").iter(SVG + "text")]
        (busy,) = [one for one in words if one.startswith("busiest links: ")]
        assert " MB" in busy
    assert draw("XGFT(2; 4,4; 1,2)", "-o", "x.pdf").err.startswith(
        "topompi: expecting a file name in .svg, .png, .html"
    )
    few = draw("XGFT(2; 4,4; 1,2)", "-o", "x.svg", "--hosts", "h[0000-0001]", "--loads", "graph")
    assert "expecting at most 2 ranks, as the job has, got 4" in few.err


def _map_file(folder):
    from topompi.mapping.mapping import Mapping
    from topompi.mapping.rankfiles import write_mapping

    return write_mapping(Mapping.of([3, 2, 1, 0], ["h0000", "h0004", "h0008", "h0012"], [1] * 4), "json")


def test_a_png_is_a_picture_of_the_same_shape(draw, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    assert draw("XGFT(2; 3,2; 1,1)", "-o", "x.png").code == 0
    picture = imread(tmp_path / "x.png")
    assert picture.shape[1] > picture.shape[0] > 100
    assert 0.02 < float((picture[:, :, :3].min(axis=2) < 0.9).mean()) < 0.6  # neither blank nor black


# What a person would do: turn the wheel over the picture, and rest the pointer on a switch; what is then seen is told.
ACTIONS = """<script>
const before = document.querySelector("#view svg").viewBox.baseVal.width;
const svg_ = document.querySelector("#view svg"), node_ = svg_.querySelector('.node[data-node="0"]');
const at = node_.getBoundingClientRect(), where = {bubbles: true, clientX: at.x + 2, clientY: at.y + 2};
svg_.dispatchEvent(new WheelEvent("wheel", {...where, deltaY: -1}));
const inside = node_.getBoundingClientRect();
node_.dispatchEvent(new PointerEvent("pointermove", where));
const links = [...document.querySelectorAll(".link")];
document.title = JSON.stringify({
  zoomed: svg_.viewBox.baseVal.width / before, kept: Math.abs(inside.x - at.x) + Math.abs(inside.y - at.y),
  tip: document.getElementById("tip").textContent, shown: document.getElementById("tip").style.display,
  near: links.filter(one => one.classList.contains("near")).length,
  own: links.filter(one => one.dataset.low === "0" || one.dataset.high === "0").length,
  faded: links.filter(one => getComputedStyle(one).opacity < 0.5).length, links: links.length,
  outside: [...document.querySelectorAll("svg text")].filter(one => { const box = one.getBBox();
    return box.x < -1 || box.x + box.width > all[2] + 1; }).length });
</script></body>"""


@pytest.mark.parametrize("source", ["XGFT(2; 3,2; 1,1)", "stampede"])
def test_a_browser_zooms_at_the_pointer_and_shows_a_switch_with_its_links(draw, tmp_path, source):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser here: chromium not found")
    assert draw(source, "-o", "x.html").code == 0
    page = (tmp_path / "x.html").read_text()
    assert not re.search(r'(src|href)="', page)  # it needs no other file
    (tmp_path / "acted.html").write_text(page.replace("</body>", ACTIONS))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,800"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", (tmp_path / "acted.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    seen = json.loads(re.search(r"<title>(\{.*?\})</title>", done.stdout)[1].replace("&amp;", "&"))
    assert seen["zoomed"] == pytest.approx(0.8)
    assert seen["kept"] < 3  # pixels: what the pointer is on stays there
    assert seen["shown"] == "block"
    assert "level 0" in seen["tip"]
    assert seen["near"] == seen["own"] > 0
    assert seen["faded"] == seen["links"] - seen["own"]
    assert seen["outside"] == 0


def test_a_switch_may_have_a_number_of_thousands_of_digits():
    assert sorted(["s10", "s9", f"s{'9' * 5000}", "s", "s010a", "9"], key=folding._natural) == [
        "9", "s", "s9", "s10", "s010a", f"s{'9' * 5000}"]  # fmt: skip
