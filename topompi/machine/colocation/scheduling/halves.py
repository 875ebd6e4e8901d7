"""Workloads whose jobs run on halves of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...jobs import Workload
from ..errors import ColocationError

__all__ = ["halves_of", "nodes_of", "on_halves"]

Integers = NDArray[np.int64]


def nodes_of(processes: ArrayLike, cores: int) -> Integers:
    """Return the number of whole nodes of each job, rounded up.

    :param processes: number of processes of each job, shape (n,).
    :param cores: number of cores of a node.
    """
    return -(-np.asarray(processes, dtype=np.int64) // cores)


def halves_of(processes: ArrayLike, cores: int) -> Integers:
    """Return the number of half nodes of each job, rounded up; half of an odd number of cores is rounded down.

    :param processes: number of processes of each job, shape (n,).
    :param cores: number of cores of a node, 2 or more.
    :raises ColocationError: if a node has one core.
    """
    if cores < 2:
        raise ColocationError(f"cores: expecting 2 or more cores of a node, got {cores}")
    return nodes_of(processes, cores // 2)


def on_halves(
    workload: Workload,
    programs: Sequence[str],
    *,
    seed: int = 0,
    halves: ArrayLike | None = None,
    stretch: float = 1.0,
) -> Workload:
    """Return the same jobs, which may share nodes and ask for half nodes, each with a program of its own.

    The columns are ``slots`` (half nodes), ``shared`` and ``program``. A log's own column ``program`` stays if all of
    its values are names of programs. The run time is that on whole nodes, and is cut at the request first.

    :param workload: the jobs; those whose column ``shared`` is false stay on whole nodes.
    :param programs: names of the programs, from which jobs draw with equal chances.
    :param seed: seed of the draws.
    :param halves: number of half nodes of each job, shape (n,); None for two per whole node. `halves_of` rounds by
        processes.
    :param stretch: factor of the requested times, 1 or more, so that jobs slowed by neighbours are not ended by it.
    :raises ColocationError: if there are no programs, or a number is out of range.
    """
    if not len(programs) or not 1 <= stretch < np.inf:
        raise ColocationError(f"expecting one or more programs and a stretch from 1, got {len(programs)} and {stretch}")
    shared = workload.shared if "shared" in workload.columns else np.ones(len(workload), dtype=bool)
    slots = 2 * workload.nodes.astype(np.int64) if halves is None else np.asarray(halves, dtype=np.int64)
    if slots.shape != (len(workload),) or (len(slots) and slots.min() < 1):
        raise ColocationError(f"halves: expecting 1 or more of each of {len(workload)} jobs, got {slots.shape}")
    own = workload.columns.get("program")
    if own is None or not set(own.tolist()) <= set(programs):
        draws = np.random.default_rng(seed).integers(len(programs), size=len(workload))
        own = np.array(list(programs), dtype=object)[draws]
    request = np.where(workload.request > 0, np.ceil(workload.request * stretch).astype(np.int64), 0)
    made = replace(workload, run=workload.duration, request=request)
    return made.with_columns(slots=np.where(shared, slots, 0), shared=shared, program=own)
