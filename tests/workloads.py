"""Random workloads for tests of many jobs on one machine."""

from __future__ import annotations

import json

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


def batsim(jobs: Workload, nodes: int) -> str:
    """The text of Batsim's JSON with a job each, further columns as further fields, and a profile per run time."""
    free = {word: column.tolist() for word, column in jobs.columns.items()}
    names = ("number", "submit", "run", "request", "nodes", "user")
    rows, profiles = [], {}
    for at, row in enumerate(zip(*(jobs[name].tolist() for name in names), strict=True)):
        number, submit, run, request, size, user = row
        profiles[f"delay{run}"] = {"type": "delay", "delay": run}
        job = {"id": str(number), "subtime": submit, "res": size, "profile": f"delay{run}", "user": user}
        rows.append(job | ({"walltime": request} if request else {}) | {word: of[at] for word, of in free.items()})
    return json.dumps({"nb_res": nodes, "jobs": rows, "profiles": profiles})
