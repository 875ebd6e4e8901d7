"""The traffic of Leonardo's jobs, which is not known: an alltoall, or a periodic 3D halo exchange."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.specs import read_jobs
from topompi.netsim import Program

__all__ = ["ALLTOALL", "BY_TURNS", "KERNELS", "NBYTES", "programs"]

NBYTES = 64 << 20  # bytes that a node sends per run
KERNELS = ALLTOALL, BY_TURNS = "alltoall", "alltoall or halo, by turns"


def programs(jobs: Mapping[str, NDArray[np.int64]], kernel: str, nbytes: int = NBYTES) -> list[Program]:
    """The jobs with a kernel's traffic; ``BY_TURNS`` begins with an alltoall.

    :param jobs: nodes of each job.
    :param kernel: one of ``KERNELS``.
    :param nbytes: bytes that a node sends per run.
    """
    found = []
    for number, (name, nodes) in enumerate(jobs.items()):
        size = len(nodes)
        alltoall = kernel == ALLTOALL or number % 2 == 0
        made = (
            f"fft3d@grid=1x{size},size={nbytes // (size - 1)}"
            if alltoall
            else f"stencil3d@ranks={size},periodic,size={nbytes // 6}"
        )
        found += [job.on(nodes) for job in read_jobs([f"j{name}={made}"])]
    return found
