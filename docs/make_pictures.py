"""Draw the pictures of the home page and of policies of jobs, and the exchange of ``fabrics.md``.

Run it as ``python -m docs.make_pictures``.
Two orders of the same ranks on one fabric stand beside each other; bars show the results of ``gains.md``; the exchange
is that of ``topompi demo``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from studies.mixes import power_of_two_mix
from topompi.inputs.figures import span_name
from topompi.machine.jobs import Cluster, simulate
from topompi.machine.jobs.drawing import draw
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.mappers.portfolio import best
from topompi.mapping.placement import place
from topompi.mapping.readers import read_graph
from topompi.schedules.drawing.svg import GREY, Canvas
from topompi.topology import TopologyInterface, load_routes
from topompi.topology.hostnames import require_hosts
from topompi.views.machine import machine_of
from topompi.views.picture.fabricscene import DrawnJob, fabric_scene
from topompi.views.picture.loads import link_loads
from topompi.views.picture.scene import Scene
from topompi.views.picture.writers import svg

FOLDER = Path(__file__).parent / "home"
EXCHANGE = Path(__file__).parent / "exchange.svg"
JOBS = Path(__file__).parent / "jobs"
POLICIES = ("first", "contiguous", "bestfit", "exclusive", "blocks", "isolated", "leaf-exclusive", "disjoint")
RESULTS = Path(__file__).parent / "gains.md"

# 4 leaf switches of 4 hosts with 2 ranks each, half as many links out of a leaf switch as into it, and the hosts in an
# order that a busy scheduler may give; the program is the recorded stencil of ``topompi demo``.
FABRIC, PPN, SEED, GRAPH = "XGFT(2; 4,4; 1,2)", 2, 1, "graphs/stencil3d.txt"
NARROW = 440.0  # pixels; two pictures beside each other fit a page

WIDTH, LEFT, ROW, UNIT = 560, 250, 22, 84  # pixels: width, names, height of a row, length of a gain of 1
BAR = "#4d5d6c"  # no colour that has a meaning in the pictures beside it
CALLS = "One rank a host, without tuning", "Several ranks a host, without tuning"
PROGRAMS = "Whole programs"


def orders() -> dict[str, Scene]:
    """Draw the default order and topompi's, with links by load; full width is the same time in both."""
    routes = load_routes(FABRIC)
    hosts = routes.fabric.hosts
    given = [hosts[one] for one in np.random.default_rng(SEED).permutation(len(hosts)).tolist()]
    names = place(PPN * len(hosts), given, "block")
    with as_file(files("osu_like_bench") / GRAPH) as path:
        graph = read_graph(path, len(names))
    machine = machine_of(TopologyInterface.place(names, routes, virtual=True))
    found = best(graph, machine, SEED, objective="busiest link")
    mapped = [found.hosts[host] for host in found.host_of_rank.tolist()]
    numbers = {name: require_hosts(routes.fabric, order).astype(np.int64) for name, order in
               (("the default order", names), ("topompi's order", mapped))}  # fmt: skip
    loads = {name: link_loads(routes, number, _messages(graph)) for name, number in numbers.items()}
    full = max(float(one.seconds.max()) for one in loads.values())
    return {
        name: fabric_scene(
            routes,
            f"In {name}: busiest link {span_name(float(loads[name].seconds.max()))}",
            DrawnJob.of_ranks(number),
            loads[name],
            full,
            NARROW,
        )
        for name, number in numbers.items()
    }


def _messages(graph: CommunicationGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return graph.sources, graph.targets, graph.volume


def gains() -> list[tuple[str, list[tuple[str, float]]]]:
    """Read the groups of bars from the tables of the page of results: name of each group, and its rows."""
    page = RESULTS.read_text(encoding="utf-8")
    calls = [
        (f"{row[0]}, {one.split(' a host')[0].lower()} a host", float(row[-1]))
        for one in CALLS[::-1]
        for row in _table(page, one)
    ]
    programs = [
        (f"{row[0].replace(', links half as fast', ', slow links')}, {row[1]} a host", float(row[2].split()[0]))
        for row in _table(page, PROGRAMS)
    ]
    return [
        ("Calls of 64K and 256K, nothing set", calls),
        ("Whole programs at 4 : 1, tuned, after set-up", programs),
        ("One host, or one switch with one rank a host", [("calls are the library's own", 1.0)]),
    ]


def _table(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its head.

    :param page: text of the page.
    :param heading: words of the heading.
    """
    part = re.split(r"^## ", page.split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def worth() -> str:
    """Draw how many times as fast calls and programs are, as bars."""
    groups = gains()
    rows = sum(len(bars) for _, bars in groups)
    bottom = 66 + ROW * rows + 34 * (len(groups) - 1)
    canvas = Canvas(WIDTH, bottom + 66, "What topompi is worth: times as fast")
    for at in range(4):
        canvas.line(LEFT + UNIT * at, 38, LEFT + UNIT * at, bottom, GREY if at == 1 else "#e4e4e4", 1)
        canvas.text(LEFT + UNIT * at, bottom + 16, str(at), anchor="middle", size=11)
    canvas.text(LEFT + UNIT, bottom + 32, "1 = as without topompi", anchor="middle", size=11, colour=GREY)
    notes = (
        "Emulated networks of 4 to 16 hosts, links of 50 to 400 Mbit/s.",
        "4 : 1: four hosts share one link's bandwidth.",
    )
    for at, words in enumerate(notes):
        canvas.text(8, bottom + 52 + 13 * at, words, size=10)
    y = 54.0
    for name, bars in groups:
        canvas.text(8, y, name, bold=True)
        y += 8
        for label, gain in bars:
            canvas.text(LEFT - 8, y + 14, label, anchor="end", size=11)
            canvas.bar(LEFT, y + 3, UNIT * gain, ROW - 6, GREY if gain == 1 else BAR)
            canvas.text(LEFT + UNIT * gain + 6, y + 14, "0.87 to 1" if gain == 1 else f"{gain:g}", size=11)
            y += ROW
        y += 26
    return canvas.svg()


def render() -> dict[str, str]:
    """Return the text of each picture by the name of its file."""
    default, ours = orders().values()
    return {"default.svg": svg(default), "topompi.svg": svg(ours), "worth.svg": worth()}


def draw_jobs() -> None:
    """Draw one load under each policy of allocation: jobs of at most half the machine and four hours."""
    jobs = power_of_two_mix(np.random.default_rng(2), 140, 288, 2.5)
    jobs = jobs.select(jobs.nodes <= 144)
    jobs = replace(jobs, run=np.minimum(jobs.run, 4 * 3600), request=np.minimum(jobs.request, 4 * 3600))
    for name in POLICIES:
        draw(simulate(jobs, Cluster.regular(288, 18, 4), allocator=name), JOBS / f"{name}.svg")


def main() -> None:
    """Write all pictures."""
    draw_jobs()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "topompi", "demo", "-o", folder], check=True, capture_output=True)
        page = (Path(folder) / "given.html").read_text(encoding="utf-8")
    EXCHANGE.write_text(page[page.index("<svg") : page.index("</svg>")] + "</svg>\n", encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for name, text in render().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
