"""Functions that make new workloads from given ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import WorkloadError
from .workload import Workload

__all__ = ["larger", "segments"]


def larger(workload: Workload, factor: int) -> Workload:
    """Multiply the nodes and slots of every job by a factor, not its times (Pollard et al., SC18, 2x and 3x logs)."""
    if factor < 1:
        raise WorkloadError(f"larger: expecting a factor of 1 or more, got {factor}")
    made = replace(workload, name=f"{workload.name} {factor}x", nodes=workload.nodes * np.int32(factor))
    return made.with_columns(slots=workload.slots * factor) if "slots" in workload.columns else made


def segments(workload: Workload, count: int) -> list[Workload]:
    """Divide a log into ``count`` parts of equal numbers of jobs, so that each can be simulated on its own."""
    if not 1 <= count <= max(1, len(workload)):
        raise WorkloadError(f"segments: expecting 1 to {max(1, len(workload))}, got {count}")
    parts = np.array_split(np.arange(len(workload)), count)
    return [workload.select(part, f"{workload.name} part {at}") for at, part in enumerate(parts, 1)]
