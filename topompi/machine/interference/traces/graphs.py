"""Traces of communication graphs and profiles, which have the bytes of each pair of ranks, but no order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....mapping import CommunicationGraph
from ....netsim import COMPUTE, RECEIVE, SEND, Program
from ..errors import InterferenceError
from .operations import Trace

__all__ = ["trace_of_graph"]


def trace_of_graph(
    graph: CommunicationGraph, *, iterations: int = 1, burst: float = 0.0, recorded: float = 0.0, name: str = "graph"
) -> Trace:
    """Make the trace of a communication graph: in each iteration a burst, then a part of all messages at once.

    The bytes of each pair are divided equally among the iterations. A graph has no order of messages, so that all
    messages of an iteration are in flight together; a trace shows more.

    :param graph: bytes from each rank to each other rank.
    :param iterations: number of iterations.
    :param burst: seconds that each rank computes in each iteration.
    :param recorded: seconds of the run in which the graph was recorded; 0 if they are unknown.
    :param name: name of the trace.
    :raises InterferenceError: if there is no iteration, or the burst is negative.
    """
    if iterations < 1 or not burst >= 0:
        raise InterferenceError(f"{name}: expecting iterations and a burst, got {iterations} and {burst:g} s")
    source, target = np.repeat(np.arange(graph.size), np.diff(graph.offsets)), graph.targets
    sent = (source != target) & (graph.volume > 0)
    source, target, nbytes = source[sent], target[sent], graph.volume[sent] / iterations
    every, count = np.arange(graph.size), len(source)
    one = {
        "rank": np.concatenate((source, target, every)),
        "kind": np.repeat([SEND, RECEIVE, COMPUTE], [count, count, graph.size]),
        "peer": np.concatenate((target, source, every)),
        "amount": np.concatenate((nbytes, nbytes, np.full(graph.size, burst))),
    }
    columns: dict[str, Any] = {key: np.tile(column, iterations) for key, column in one.items()}
    step = np.repeat(np.arange(iterations), len(one["rank"]))
    note = f"no order of messages: {iterations} iterations of a burst and all messages at once"
    return Trace(Program(every, step=step, name=name, **columns), (note,), ordered=False, recorded=recorded)
