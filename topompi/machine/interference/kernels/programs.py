"""The traces of kernels: iterations of a compute burst and the kernel's phases, one after the other on each rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....netsim import COMPUTE, RECEIVE, SEND, Program
from ..errors import InterferenceError
from ..traces.collectives import ALGORITHMS, messages_between
from ..traces.operations import Trace
from .kernel import Alltoalls, Burst, Kernel, Phase

__all__ = ["trace_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = tuple[Integers, Integers, Integers, Floats]  # step, source, destination and bytes of messages


def trace_of(kernel: Kernel, nbytes: int, *, iterations: int = 1, burst: float = 0.0, name: str = "") -> Trace:
    """Make the trace of a kernel: in each iteration every rank computes, then takes part in each phase in turn.

    No barrier separates the phases: a rank begins a phase when its own messages of the phase before are complete.
    Alltoalls are pairwise, and sums over all ranks are recursive doublings.

    :param kernel: the kernel.
    :param nbytes: message size in bytes, as the kernel takes it.
    :param iterations: number of iterations.
    :param burst: seconds that each rank computes in each iteration.
    :param name: name of the trace; by default the kernel's.
    :raises InterferenceError: if there is no iteration, or the burst is negative.
    Cost: memory for all messages of all iterations.
    """
    if iterations < 1 or not burst >= 0:
        raise InterferenceError(f"{kernel.name}: expecting iterations and a burst, got {iterations} and {burst:g} s")
    phases = [_columns(phase, kernel.ranks) for phase in kernel.phases(nbytes)]
    lengths = [int(columns[0].max(initial=-1)) + 1 for columns in phases]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    step, source, destination, size = (np.concatenate(columns) for columns in zip(*phases, strict=True))
    step = step + np.repeat(starts[:-1], [len(columns[0]) for columns in phases])
    apart = source != destination  # a rank of a grid with one rank in a direction is its own neighbour
    ends = [column[apart] for column in (step, source, destination, size)]
    every, none = np.arange(kernel.ranks), np.zeros(kernel.ranks, dtype=np.int64)
    one = {
        "rank": np.concatenate((ends[1], ends[2], every)),
        "step": np.concatenate((ends[0], ends[0], none)),
        "kind": np.repeat([SEND, RECEIVE, COMPUTE], [len(ends[0]), len(ends[0]), kernel.ranks]),
        "peer": np.concatenate((ends[2], ends[1], every)),
        "amount": np.concatenate((ends[3], ends[3], np.full(kernel.ranks, burst))),
    }
    columns: dict[str, Any] = {key: np.tile(column, iterations) for key, column in one.items()}
    columns["step"] += np.repeat(np.arange(iterations) * max(int(starts[-1]), 1), len(one["step"]))
    return Trace(Program(every, **columns, name=name or kernel.name))


def _columns(phase: Phase, ranks: int) -> Columns:
    if isinstance(phase, Burst):
        return np.zeros_like(phase.source), phase.source, phase.target, phase.nbytes.astype(np.float64)
    if isinstance(phase, Alltoalls):
        count, members = phase.groups.shape
        step, source, destination, share = messages_between("alltoall", ALGORITHMS["alltoall"], members)
        of = np.repeat(np.arange(count), len(step))
        here, there = (phase.groups[of, np.tile(end, count)] for end in (source, destination))
        return np.tile(step, count), here, there, np.tile(share * phase.nbytes, count)
    step, source, destination, share = messages_between("allreduce", ALGORITHMS["allreduce"], ranks)
    return step, source, destination, share * phase.nbytes
