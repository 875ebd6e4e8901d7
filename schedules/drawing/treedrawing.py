"""Drawings of schedules whose messages form a tree: a row per rank, a column per step, and colours for distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...inputs.figures import DISTANCES
from ..analysis.loads import Messages, messages_of
from ..network import Network
from ..schedule import Schedule
from .svg import GREY, INK, Canvas

__all__ = ["HOP_COLOURS", "draw_tree", "is_tree"]

Integers = NDArray[np.int64]
Floats = NDArray[np.floating]

HOP_COLOURS = DISTANCES  # colours of distances; more than 7 hops have the colour of 7
GRID = "#e4e4e4"
LEFT, TOP, ROW, STEP = 150, 66, 18, 64  # pixels: left margin, top margin, height of a rank's row, width of a column
WIDEST = 960  # pixels: width of all steps
ELBOW = 12  # pixels from the bend in a parent's line to the child


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
    width = max(min(STEP, WIDEST // schedule.num_steps), 8)
    order = _planar_order(edges)
    x = LEFT + width * (edges.joins + 0.5)
    x[schedule.root] = LEFT if edges.away else LEFT + width * schedule.num_steps
    y = np.empty(len(order))
    y[order] = TOP + ROW * (np.arange(len(order)) + 0.5)
    canvas = Canvas(max(LEFT + width * schedule.num_steps + 40, 480), TOP + ROW * len(order) + 62, title)
    _axis(canvas, schedule.num_steps, width, TOP + ROW * len(order))
    _lines(canvas, edges, x, y)
    _ranks(canvas, edges, network, host_names, x, y)
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


def _joins(messages: Messages, child: Integers, size: int, away: bool) -> Integers:
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


def _axis(canvas: Canvas, steps: int, width: int, bottom: float) -> None:
    every = -(-24 // width)
    for step in range(steps):
        x = LEFT + width * (step + 0.5)
        canvas.line(x, TOP - 8, x, bottom, GRID, 1)
        if step % every == 0:
            canvas.text(x, TOP - 14, str(step), anchor="middle", size=10)
    canvas.text(LEFT - 12, TOP - 14, "step", anchor="end", size=10)


def _lines(canvas: Canvas, edges: _Edges, x: Floats, y: Floats) -> None:
    """Draw a line from each parent along its own row, and from there to each child's row."""
    children = np.flatnonzero(edges.parent >= 0)
    parent, turn = edges.parent[children], _turn(x[children], edges.away)
    reach = x.copy()
    (np.maximum if edges.away else np.minimum).at(reach, parent, turn)
    for child, above, at in zip(children.tolist(), parent.tolist(), turn.tolist(), strict=True):
        canvas.line(at, y[above], at, y[child], GREY, 1)
    for rank in np.unique(parent).tolist():
        canvas.line(x[rank], y[rank], reach[rank], y[rank], GREY, 1)


def _turn(x: Floats, away: bool) -> Floats:
    return x - ELBOW if away else x + ELBOW


def _ranks(
    canvas: Canvas, edges: _Edges, network: Network, host_names: Sequence[str] | None, x: Floats, y: Floats
) -> None:
    turn = _turn(x, edges.away)
    for rank, (host, above) in enumerate(zip(network.rank_host.tolist(), edges.parent.tolist(), strict=True)):
        name = str(host) if host_names is None else host_names[host]
        colour, tip = INK, f"rank {rank} on {name}, the root"
        if above >= 0:
            hops = int(network.hops[network.rank_host[above], host])
            way = "from" if edges.away else "to"
            colour = _colour(hops)
            tip = f"rank {rank} on {name}, {way} rank {above} in step {edges.joins[rank]}, {_distance(hops)}"
            canvas.line(turn[rank], y[rank], x[rank], y[rank], colour, 2)
        canvas.text(8, y[rank] + 4, f"rank {rank}", bold=above < 0)
        canvas.text(LEFT - 12, y[rank] + 4, name, anchor="end", colour=GREY)
        canvas.circle(x[rank], y[rank], 5, colour, tip)


def _legend(canvas: Canvas, edges: _Edges, network: Network) -> None:
    children = np.flatnonzero(edges.parent >= 0)
    hops = network.hops[network.rank_host[edges.parent[children]], network.rank_host[children]]
    pairs = zip(*(column.tolist() for column in np.unique(hops, return_counts=True)), strict=True)
    canvas.legend(canvas.height - 30, [(_colour(hop), f"{_distance(hop)}: {count}") for hop, count in pairs])


def _distance(hops: int) -> str:
    return "inside a host" if hops == 0 else f"{hops} hop{'s' if hops > 1 else ''}"


def _colour(hops: int) -> str:
    return HOP_COLOURS[max(known for known in HOP_COLOURS if known <= max(hops, 0))]
