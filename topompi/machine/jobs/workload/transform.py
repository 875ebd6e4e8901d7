"""Functions that make new workloads from given ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import WorkloadError
from .workload import Workload

__all__ = ["extract", "larger", "scale_run", "segments", "shake"]


def larger(workload: Workload, factor: int) -> Workload:
    """Multiply the nodes and slots of every job by a factor, not its times (Pollard et al., SC18, 2x and 3x logs)."""
    if factor < 1:
        raise WorkloadError(f"larger: expecting a factor of 1 or more, got {factor}")
    made = replace(workload, name=f"{workload.name} {factor}x", nodes=workload.nodes * np.int32(factor))
    return made.with_columns(slots=workload.slots * factor) if "slots" in workload.columns else made


def scale_run(workload: Workload, factor: float) -> Workload:
    """Multiply run times and requested times by a factor, rounded to seconds."""
    if not 0 < factor < np.inf:
        raise WorkloadError(f"scale_run: expecting a positive factor, got {factor}")
    run, request = (np.rint(column * factor).astype(np.int64) for column in (workload.run, workload.request))
    request = np.where(workload.request > 0, np.maximum(request, 1), 0)
    return replace(workload, name=f"{workload.name} run x{factor:g}", run=run, request=request)


def shake(workload: Workload, rng: np.random.Generator, seconds: int) -> Workload:
    """Move each arrival by up to ``seconds`` earlier or later, drawn uniformly.

    The figures of workloads with small random changes show how much of a figure is chance (D. Tsafrir, K. Ouaknine, D.
    Feitelson, MASCOTS 2007).

    :param workload: the jobs.
    :param rng: the random generator.
    :param seconds: largest shift in seconds, 0 or more.
    """
    if seconds < 0:
        raise WorkloadError(f"shake: expecting 0 seconds or more, got {seconds}")
    moved = np.maximum(0, workload.submit + rng.integers(-seconds, seconds + 1, len(workload)))
    order = np.argsort(moved, kind="stable")
    return replace(workload.select(order), name=f"{workload.name} shaken {seconds} s", submit=moved[order])


def extract(workload: Workload, first: int, last: int) -> Workload:
    """Return the jobs that arrive at second ``first`` or later and before second ``last``.

    :param workload: the jobs.
    :param first: seconds since the first arrival.
    :param last: seconds since the first arrival.
    """
    since = workload.submit - (workload.submit[0] if len(workload) else 0)
    return workload.select((since >= first) & (since < last), f"{workload.name} from {first} to {last} s")


def segments(workload: Workload, count: int) -> list[Workload]:
    """Divide a log into ``count`` parts of equal numbers of jobs, so that each can be simulated on its own."""
    if not 1 <= count <= max(1, len(workload)):
        raise WorkloadError(f"segments: expecting 1 to {max(1, len(workload))}, got {count}")
    parts = np.array_split(np.arange(len(workload)), count)
    return [workload.select(part, f"{workload.name} part {at}") for at, part in enumerate(parts, 1)]
