"""The reading of a trace in any known form, which is found from the content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from ....inputs import open_inputs
from ....mapping.readers import read_graph, topoprof
from ....mapping.readers.text import GraphFile
from ..errors import InterferenceError
from . import goal, otf2events, simgrid
from .graphs import trace_of_graph
from .operations import Trace

__all__ = ["read_trace"]


def read_trace(
    path: str | os.PathLike[str],
    *,
    flops: float = simgrid.FLOPS,
    unit: float = goal.NANOSECONDS,
    iterations: int = 1,
    burst: float | None = None,
    partial: bool = False,
    columns: Sequence[str] = (),
) -> Trace:
    """Read SimGrid's time-independent trace, GOAL, OTF2, a profile of `topompi profile`, or a communication graph.

    :param path: path of the file, or of the folder of a SimGrid trace; of an OTF2 trace, its anchor file ``.otf2``.
    :param flops: flop/s of the machine of a SimGrid trace.
    :param unit: seconds of ``calc 1`` in GOAL.
    :param iterations: number of iterations of a profile or graph.
    :param burst: seconds that each rank computes in each iteration of a profile or graph; None if they are unknown, so
        that those of a profile follow from the run time that it has.
    :param partial: whether wrong lines of a trace are skipped and counted; else they are errors.
    :param columns: meaning of a graph's table, see `read_graph`; empty to decide by the content.
    :raises InterferenceError: if a line is wrong, with file and line.
    :raises GraphFileError: if the file is none of these forms.
    """
    if str(path).endswith(".otf2"):
        return otf2events.read_otf2(path)
    first = open_inputs(path, InterferenceError, "a trace, a profile or a communication graph")[0]
    head = first.first_bytes().decode("utf-8", errors="replace")
    if goal.recognise(head):
        return goal.read_goal(path, unit=unit, partial=partial)
    if simgrid.recognise(head):
        return simgrid.read_simgrid(path, flops=flops, partial=partial)
    recorded = 0.0
    if burst is None and topoprof.recognise(GraphFile(str(path), first.first_bytes())):
        seconds = topoprof.head_of(str(path), next(first.lines())[1]).seconds
        recorded = seconds if 0 < seconds < inf else 0.0
    notes: list[str] = []
    graph = read_graph(path, columns=columns, notes=notes)
    found = trace_of_graph(graph, iterations=iterations, burst=burst or 0.0, recorded=recorded, name=str(path))
    return replace(found, notes=(*found.notes, *(note.replace("--columns ", "@columns=") for note in notes)))
