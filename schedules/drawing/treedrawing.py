"""Drawings of schedules whose messages form a tree: a row per rank, a column per step, and colours for distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...inputs.figures import DISTANCES, colours_by_hops, cut_middle
from ..analysis.loads import ScheduleMessages, messages_of
from ..network import Network
from ..schedule import Schedule
from .svg import GREY, INK, Canvas

__all__ = ["HOP_COLOURS", "draw_tree", "is_tree"]

Integers = NDArray[np.int64]
Floats = NDArray[np.floating]

HOP_COLOURS = DISTANCES  # colours of distances, as in all pictures
GRID = "#e4e4e4"
LEFT, TOP, STEP = 150, 66, 64  # pixels: left margin, top margin, width of a column
ROW, LEAST_ROW = 18, 2  # pixels: height of a rank's row, and least height if there are many
NAME = 12  # pixels: height of a rank's name; if rows are lower, not every rank has its name written
WIDEST, HIGHEST = 960, 2400  # pixels: width of all steps, height of all ranks down to the least height of rows
ELBOW = 12  # pixels from the bend in a parent's line to the child, if columns are wide enough


@dataclass(frozen=True, eq=False)
class _Edges:
    """The edges of a tree.

    :param parent: parent of each rank, shape (p,), -1 for the root.
    :param joins: step that joins each rank to its parent, shape (p,): the first in which the rank receives, or the last
        in which it sends.
    :param away: whether messages run away from the root.
    """

    parent: Integers
    joins: Integers
    away: bool


def is_tree(schedule: Schedule) -> bool:
    """Whether the messages of a rooted schedule follow the edges of one tree, all from the root or all to the root."""
    return _edges(schedule) is not None


def draw_tree(schedule: Schedule, network: Network, title: str, host_names: Sequence[str] | None = None) -> str:
    """Draw a tree as SVG: each rank is at the step that joins it to its parent, coloured by the switches crossed.

    The ranks of a sub-tree are adjacent, and no lines cross.

    :param schedule: schedule whose messages form a tree.
    :param network: network on which it runs.
    :param title: heading of the drawing.
    :param host_names: name of each host of the network; by default its number.
    :raises ValueError: if the messages form no tree.
    """
    edges = _edges(schedule)
    if edges is None:
        raise ValueError(f"expecting a tree, got {schedule.algorithm}, whose messages form none")
    width = min(STEP, WIDEST / schedule.num_steps)
    row = max(min(ROW, HIGHEST / schedule.size), LEAST_ROW)
    order = _planar_order(edges)
    x = LEFT + width * (edges.joins + 0.5)
    x[schedule.root] = LEFT if edges.away else LEFT + width * schedule.num_steps
    y = np.empty(len(order))
    y[order] = TOP + row * (np.arange(len(order)) + 0.5)
    bottom = TOP + row * len(order)
    canvas = Canvas(max(LEFT + width * schedule.num_steps + 40, 480), bottom + 62, title)
    for step in canvas.steps(LEFT, TOP - 14, schedule.num_steps, width):
        canvas.line(LEFT + width * (step + 0.5), TOP - 8, LEFT + width * (step + 0.5), bottom, GRID, 1)
    turn = x - min(ELBOW, width / 2) if edges.away else x + min(ELBOW, width / 2)
    _lines(canvas, edges, x, y, turn)
    _ranks(canvas, edges, network, host_names, x, y, turn, row)
    _names(canvas, edges, network, host_names, order, y, row)
    _legend(canvas, edges, network)
    return canvas.svg()


def _edges(schedule: Schedule) -> _Edges | None:
    messages = messages_of(schedule)
    for away in (True, False):
        child, above = (messages.destination, messages.source) if away else (messages.source, messages.destination)
        parent = np.full(schedule.size, -1, dtype=np.int64)
        parent[child] = above
        if (parent[child] == above).all() and _is_one_tree(parent, schedule.root):
            return _Edges(parent, _joins(messages, child, schedule.size, away), away)
    return None


def _is_one_tree(parent: Integers, root: int | None) -> bool:
    """Whether following parents leads every rank to the root, which alone has no parent."""
    if root is None or len(parent) < 2 or np.flatnonzero(parent < 0).tolist() != [root]:
        return False
    above = np.where(parent < 0, np.arange(len(parent)), parent)
    for _ in range(len(parent).bit_length()):  # each round doubles the distance of ``above`` from the rank
        above = above[above]
    return bool((above == root).all())


def _joins(messages: ScheduleMessages, child: Integers, size: int, away: bool) -> Integers:
    joins = np.zeros(size, dtype=np.int64)
    order = np.argsort(-messages.step if away else messages.step, kind="stable")
    joins[child[order]] = messages.step[order]  # of several steps of a child the last in this order remains
    return joins


def _planar_order(edges: _Edges) -> NDArray[np.intp]:
    """The ranks from top to bottom in an order in which no line crosses another.

    Each parent precedes its children and their sub-trees. The child served last comes first if messages run away from
    the root; the child that sends first comes first if they run towards it.
    """
    parent = edges.parent
    children: list[list[int]] = [[] for _ in parent]
    for rank in np.lexsort((np.arange(len(parent)), edges.joins if edges.away else -edges.joins)).tolist():
        if parent[rank] >= 0:
            children[parent[rank]].append(rank)
    order, stack = [], np.flatnonzero(parent < 0).tolist()
    while stack:
        order.append(stack.pop())
        stack += children[order[-1]]  # the last child is taken first
    return np.array(order, dtype=np.intp)


def _lines(canvas: Canvas, edges: _Edges, x: Floats, y: Floats, turn: Floats) -> None:
    """Draw a line from each parent along its own row, and from there to each child's row.

    :param canvas: the drawing.
    :param edges: edges of the tree.
    :param x: horizontal position of each rank in pixels, shape (p,).
    :param y: vertical position of each rank in pixels, shape (p,).
    :param turn: horizontal position of the bend in each rank's line to its parent in pixels, shape (p,).
    """
    children = np.flatnonzero(edges.parent >= 0)
    parent = edges.parent[children]
    reach = x.copy()
    (np.maximum if edges.away else np.minimum).at(reach, parent, turn[children])
    for child, above in zip(children.tolist(), parent.tolist(), strict=True):
        canvas.line(turn[child], y[above], turn[child], y[child], GREY, 1)
    for rank in np.unique(parent).tolist():
        canvas.line(x[rank], y[rank], reach[rank], y[rank], GREY, 1)


def _ranks(
    canvas: Canvas,
    edges: _Edges,
    network: Network,
    host_names: Sequence[str] | None,
    x: Floats,
    y: Floats,
    turn: Floats,
    row: float,
) -> None:
    """Draw each rank as a circle, with its line from or to its parent; parameters as in ``_lines`` and ``_names``."""
    hops = _hops(edges, network)
    colours = colours_by_hops(np.unique(hops[edges.parent >= 0]).tolist())
    for rank, (host, above) in enumerate(zip(network.rank_host.tolist(), edges.parent.tolist(), strict=True)):
        name = str(host) if host_names is None else host_names[host]
        colour, tip = INK, f"rank {rank} on {name}, the root"
        if above >= 0:
            way = "from" if edges.away else "to"
            colour = colours[int(hops[rank])]
            far = _distance(int(hops[rank]))
            tip = f"rank {rank} on {name}, {way} rank {above} in step {edges.joins[rank]}, {far}"
            canvas.line(turn[rank], y[rank], x[rank], y[rank], colour, min(2, row / 2))
        canvas.circle(x[rank], y[rank], min(5, 0.45 * row), colour, tip)


def _names(
    canvas: Canvas,
    edges: _Edges,
    network: Network,
    host_names: Sequence[str] | None,
    order: NDArray[np.intp],
    y: Floats,
    row: float,
) -> None:
    """Write the numbers of ranks and the names of their hosts, as many as have room.

    :param canvas: the drawing.
    :param edges: edges of the tree.
    :param network: network of the ranks.
    :param host_names: name of each host; None for its number.
    :param order: ranks from top to bottom.
    :param y: vertical position of each rank in pixels, shape (p,).
    :param row: height of a rank's row in pixels.
    """
    every = int(-(-NAME // row))
    if every > 1:
        canvas.text(8, TOP - 14, f"1 name of {every}", size=10, colour=GREY)
    for rank in order[::every].tolist():
        host = int(network.rank_host[rank])
        name = str(host) if host_names is None else cut_middle(host_names[host], 12)
        canvas.text(8, y[rank] + 4, f"rank {rank}", bold=bool(edges.parent[rank] < 0))
        canvas.text(LEFT - 12, y[rank] + 4, name, anchor="end", colour=GREY)


def _hops(edges: _Edges, network: Network) -> Integers:
    """Return the hops between each rank and its parent, shape (p,); what the root has is of no use."""
    return np.asarray(network.hops[network.rank_host[edges.parent], network.rank_host], dtype=np.int64)


def _legend(canvas: Canvas, edges: _Edges, network: Network) -> None:
    hops, counts = np.unique(_hops(edges, network)[edges.parent >= 0], return_counts=True)
    colours = colours_by_hops(hops.tolist())
    pairs = zip(hops.tolist(), counts.tolist(), strict=True)
    canvas.legend(canvas.height - 30, [(colours[hop], f"{_distance(hop)}: {count:,}") for hop, count in pairs])


def _distance(hops: int) -> str:
    return "inside a host" if hops == 0 else f"{hops} hop{'s' if hops > 1 else ''}"
