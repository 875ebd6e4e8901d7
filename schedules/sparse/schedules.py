"""Schedules of whole neighbourhood collectives, for proof, cost and simulation: each message direct, or aggregated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..neighbourhood import Neighbourhood
from ..schedule import COPY, Schedule
from ..transfers import transfers
from .carriers import DIRECT, CarryingTerms, carriers, landings
from .exchange import EdgeBlocks, Exchange, Known, exchange_of

__all__ = ["exchanges", "schedule_of"]

Integers = NDArray[np.int64]


def exchanges(graph: Neighbourhood, group_of: Integers, terms: CarryingTerms) -> list[Exchange]:
    """The part of each rank, made from the edges of the rank's own group, and from what other groups tell it.

    Other groups tell the carrier of each edge into the group, and the landing rank of each bundle out of it.

    :param graph: the edges, with their sizes in blocks.
    :param group_of: group of each rank, shape (p,).
    :param terms: terms on which blocks are carried.
    """
    edges = graph.edges
    groups = [np.flatnonzero(group_of == group) for group in range(int(group_of.max()) + 1)]
    carrier, landing = (np.full(len(edges), DIRECT) for _ in range(2))
    for members in groups:
        here = np.isin(edges.source, members)
        carrier[here] = carriers(edges.chosen(here), group_of, members, terms, shares=graph.shares)
    for members in groups:
        here = np.isin(edges.destination, members)
        landing[here] = landings(edges.chosen(here), carrier[here], members, terms, shares=graph.shares)
    parts: list[Exchange | None] = [None] * graph.ranks
    for members in groups:
        leaves, comes = np.isin(edges.source, members), np.isin(edges.destination, members)
        known = Known(
            group_of,
            edges.chosen(leaves),
            carrier[leaves],
            edges.chosen(comes),
            carrier[comes],
            landing[comes],
            graph.shares,
            terms,
        )
        for rank in members.tolist():
            mine = carrier == rank
            partner = dict(zip(group_of[edges.destination[mine]].tolist(), landing[mine].tolist(), strict=True))
            parts[rank] = exchange_of(rank, known, partner)
    return [part for part in parts if part is not None]


def schedule_of(graph: Neighbourhood, parts: list[Exchange], algorithm: str) -> Schedule:
    """The schedule of all ranks' parts, in which each send meets the receive that MPI matches with it.

    :param graph: the edges, with their sizes in blocks.
    :param parts: the part of each rank.
    :param algorithm: name for display.
    :raises ValueError: if sends and receives do not match.
    """
    edges, (_, begin), (_, to) = graph.edges, graph.inputs(), graph.outputs()
    rows = []
    sends, receives = ([] for _ in range(2))
    for part in parts:
        rank = part.rank
        sent = _blocks(edges.source == rank, edges.number, begin, edges.size)
        received = _blocks(edges.destination == rank, edges.place, to, edges.size)
        for number, stage in enumerate(part.stages(sent, received)):
            step = _step(number)
            source, begins, target, ends, length = stage.moves.T
            rows.append(transfers(step, rank, rank, (source, begins), (target, ends), length))
            sends.append(_ends(step + 1, rank, stage.sends))
            receives.append(_ends(step + 1, rank, stage.receives))
    rows.append(_matched(np.concatenate(sends), np.concatenate(receives)))
    return Schedule.from_rows(_name(graph), graph.ranks, algorithm, np.concatenate(rows), graph=graph)


def _step(stage: int) -> int:
    """The step of a stage's moves; its messages are in the next one. Direct messages go with the first carried ones."""
    return 2 * max(stage - 1, 0)


def _ends(step: int, rank: int, messages: Integers) -> Integers:
    """One end of each message: step, rank, peer, buffer, first unit and length, shape (messages, 6)."""
    return np.column_stack((np.full((len(messages), 2), (step, rank)), messages))


def _matched(sends: Integers, receives: Integers) -> Integers:
    """The rows of messages: the n-th send of a rank to another in a step meets the n-th receive there."""
    sends = sends[np.lexsort((sends[:, 2], sends[:, 1], sends[:, 0]))]
    receives = receives[np.lexsort((receives[:, 1], receives[:, 2], receives[:, 0]))]
    if len(sends) != len(receives) or (sends[:, [0, 1, 2, 5]] != receives[:, [0, 2, 1, 5]]).any():
        raise ValueError("expecting a receive for each send, of the same length")
    step, source, destination, here, begin, length = sends.T
    return transfers(step, source, destination, (here, begin), (receives[:, 3], receives[:, 4]), length, COPY)


def _blocks(which: NDArray[np.bool_], index: Integers, begin: Integers, size: Integers) -> EdgeBlocks:
    """The blocks of one rank's buffer, by index of the edge."""
    order = np.flatnonzero(which)[np.argsort(index[which])]
    return EdgeBlocks(begin[order], size[order])


def _name(graph: Neighbourhood) -> str:
    return "neighbor_allgather" if graph.shares else "neighbor_alltoall"
