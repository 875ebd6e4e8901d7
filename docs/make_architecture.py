"""Draw the rooms and their imports for ``architecture.md``: ``python -m docs.make_architecture``.

Rooms and their order are those of the import contract in ``pyproject.toml``; arrows are the imports that the code has.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from itertools import product
from pathlib import Path

import grimp

from topompi.schedules.drawing.svg import GREY, INK, Canvas

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).parent / "rooms.svg"

WIDTH, ROW, HEIGHT, GAP, LANE, TOP = 1000, 92, 52, 16, 9, 44
Box = tuple[float, float, float, int]  # left and upper edge, width, and row

PURPOSE = {
    "osu_like_bench": "benchmarks and application kernels, in three arenas",
    "topompi.__main__": "python -m topompi: a command, or a program under the launcher",
    "topompi.cli": "every command",
    "topompi.mpi.preload": "compiled programs: their calls, taken before the MPI library",
    "topompi.mpi.launcher": "a program with our communicator as its MPI.COMM_WORLD",
    "topompi.mpi.profile": "what a program really sent, and how far",
    "topompi.mpi.communicator": "what users hold: Intracomm and its kin; where ranks sit; re-ordering",
    "topompi.mpi.dispatch": "from a call to what runs it: one look-up; the state of a communicator",
    "topompi.mpi.selection": "which algorithm: rules, memory, trials, prediction",
    "topompi.mpi.prediction": "what calls cost; what MPI libraries run",
    "topompi.mpi.execution": "the table of calls; schedule, plan, MPI calls; leaders",
    "topompi.machine.slurm": "nodes that a job should ask Slurm for",
    "topompi.machine.interference": "jobs that share a network",
    "topompi.machine.colocation": "jobs that share nodes: estimates, prices, schedulers",
    "topompi.machine.shutter": "jobs of a node, measured alone",
    "topompi.views": "the job's topology as arrays",
    "topompi.network": "links, next links, the paths and loads that follow",
    "topompi.topology": "fabrics, routes, sources",
    "topompi.schedules": "algorithms, proof, costs",
    "topompi.mapping": "graphs, machines, mappers",
    "topompi.netsim": "simulated networks",
    "topompi.machine.jobs": "many jobs on one machine",
    "topompi.mpi.tuning": "timing a job's own calls; records, rules files for libraries",
    "topompi.mpi.probe": "a job's tree of hosts, measured",
    "topompi.errors": "exceptions",
    "topompi.visible": "text of others, safe to show",
    "topompi.guard": "who may replace what root trusts",
    "topompi.inputs": "files, unpacked, within limits; caches",
    "topompi.machine.daemon": "what long-running programs share",
}


def layers() -> list[list[str]]:
    """The rooms of each layer, from the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    found = next(one["layers"] for one in contracts if one["type"] == "layers")
    return [[room.strip() for room in re.split("[:|]", layer)] for layer in found]


def imports(rooms: list[str]) -> set[tuple[str, str]]:
    """Which room imports which, late imports and those for types included; ``topompi`` is what it hands on."""
    graph = grimp.build_graph("topompi", "osu_like_bench")

    def rooms_of(module: str) -> set[str]:
        found = {room for room in rooms if module == room or module.startswith(f"{room}.")}
        if module == "topompi":
            return set().union(*map(rooms_of, graph.find_modules_directly_imported_by(module)))
        return found

    pairs = set()
    for module in graph.modules - {"topompi"}:
        for target in graph.find_modules_directly_imported_by(module):
            pairs |= set(product(rooms_of(module), rooms_of(target)))
    return {(above, below) for above, below in pairs if above != below}


def direct(edges: set[tuple[str, str]], rooms: list[str]) -> set[tuple[str, str]]:
    """The edges that no path of other edges stands for."""
    reach: dict[str, set[str]] = {}
    for room in reversed(rooms):
        below = {target for source, target in edges if source == room}
        reach[room] = below.union(*(reach[one] for one in below))
    return {(a, b) for a, b in edges if not any((a, c) in edges and b in reach[c] for c in rooms)}


def render() -> str:
    """The picture."""
    table = layers()
    rooms = [room for layer in table for room in layer]
    edges = imports(rooms)
    drawn = sorted(direct(edges, rooms), key=lambda edge: (rooms.index(edge[0]), rooms.index(edge[1])))
    boxes = {}
    for row, layer in enumerate(table):
        wide = (WIDTH - GAP * (len(layer) + 1)) / len(layer)
        for place, room in enumerate(layer):
            boxes[room] = (GAP + place * (wide + GAP), TOP + row * ROW, wide, row)
    lanes = _lanes([edge for edge in drawn if boxes[edge[1]][3] - boxes[edge[0]][3] > 1], boxes)
    canvas = Canvas(WIDTH + LANE * (max(lanes.values()) + 2), TOP + ROW * len(table), "Rooms, and who imports whom")
    for room, (x, y, wide, _) in boxes.items():
        further = [below.removeprefix("topompi.") for below in rooms if (room, below) in edges - set(drawn)]
        canvas.frame(x, y, wide, HEIGHT)
        canvas.text(x + 8, y + 16, room, bold=True)
        canvas.text(x + 8, y + 31, PURPOSE[room], size=11)
        if further:
            canvas.text(x + 8, y + 45, f"also {', '.join(further)}", size=10, colour=GREY)
    used: Counter[tuple[str, int]] = Counter()  # lines between two rows, by end and row
    for above, below in drawn:
        if (above, below) in lanes:
            _by_lane(canvas, boxes[above], boxes[below], lanes[above, below], used)
        else:
            _down(canvas, boxes[above], boxes[below])
    return canvas.svg()


def _lanes(edges: list[tuple[str, str]], boxes: dict[str, Box]) -> dict[tuple[str, str], int]:
    """The lane on the right of each edge over several rows: the nearest that no other edge has on one of the rows."""
    lanes: dict[tuple[str, str], int] = {}
    for edge in sorted(edges, key=lambda edge: boxes[edge[1]][3] - boxes[edge[0]][3]):
        rows = range(boxes[edge[0]][3], boxes[edge[1]][3] + 1)
        taken = {lane for (a, b), lane in lanes.items() if boxes[a][3] <= rows[-1] and boxes[b][3] >= rows[0]}
        lanes[edge] = next(lane for lane in range(len(edges)) if lane not in taken)
    return lanes


def _down(canvas: Canvas, above: Box, below: Box) -> None:
    """An arrow between rows that follow each other."""
    x, y, wide, _ = above
    at, end, width, _ = below
    narrow = above if wide < width else below
    middle = narrow[0] + narrow[2] / 2
    if at < middle < at + width and x < middle < x + wide:
        _line(canvas, [(middle, y + HEIGHT), (middle, end)])
    else:  # to a neighbour of the box below
        bend, entry = y + HEIGHT + 12.0, at + 24
        _line(canvas, [(middle + 24, y + HEIGHT), (middle + 24, bend), (entry, bend), (entry, end)])


def _by_lane(canvas: Canvas, above: Box, below: Box, lane: int, used: Counter[tuple[str, int]]) -> None:
    """An arrow out of a box's lower side, through a lane on the right, and into the upper side of another."""
    x, y, wide, row = above
    at, end, width, target = below
    leaving, arriving = used["from", row], used["to", target]
    used["from", row] += 1
    used["to", target] += 1
    start, entry, side = x + wide - 10 - 5 * leaving, at + width - 12 - 7 * arriving, WIDTH + LANE * lane
    out, into = y + HEIGHT + 4 + 3 * leaving, end - 10 - 3 * arriving
    _line(canvas, [(start, y + HEIGHT), (start, out), (side, out), (side, into), (entry, into), (entry, end)])


def _line(canvas: Canvas, points: list[tuple[float, float]]) -> None:
    canvas.add("polyline", points=" ".join(f"{a:g},{b:g}" for a, b in points), fill="none", stroke=INK)
    tip, down = points[-1]
    canvas.add("path", d=f"M{tip:g} {down:g}l-4 -8h8z", fill=INK)


if __name__ == "__main__":
    PICTURE.write_text(render(), encoding="utf-8")
