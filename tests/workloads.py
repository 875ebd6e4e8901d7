"""Random workloads for tests of many jobs on one machine."""

from __future__ import annotations

import numpy as np

from topompi.machine.jobs import Workload

__all__ = ["random_workload"]


def random_workload(seed: int, jobs: int, largest: int) -> Workload:
    """Jobs of up to ``largest`` nodes and 59 s, a third without a request; some run longer than they asked for."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 60, jobs)
    request = np.where(rng.random(jobs) < 0.3, 0, rng.integers(1, 90, jobs))
    submit = rng.integers(0, 15 * jobs, jobs)
    return Workload.of("random", submit=submit, run=run, request=request, nodes=rng.integers(1, largest + 1, jobs))
