"""The figures of runs, from the records of their jobs and from Slurm's file of completed jobs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from topompi.errors import BenchmarkError
from topompi.inputs.hostlist import expand
from topompi.machine.jobs import Cluster
from topompi.machine.jobs.isolation import check
from topompi.machine.jobs.now import node_names

__all__ = ["completed", "figures", "interference_of", "interval", "output", "sharing_pairs", "spread"]

Record = Mapping[str, Any]
DRAWS = 2_000  # draws of the bootstrap


def output(text: str) -> dict[str, str]:
    """Return the values that a batch script printed, a name and a value per line; later lines win."""
    pairs = (line.split(None, 1) for line in text.splitlines() if line.strip())
    return {words[0]: words[1] if len(words) > 1 else "" for words in pairs}


def completed(text: str) -> list[dict[str, str]]:
    """Return the fields of each job in the file of ``jobcomp/filetxt``."""
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in text.splitlines()]


def sharing_pairs(jobs: Sequence[Mapping[str, str]], cluster: Cluster) -> list[tuple[str, str]]:
    """Return the pairs of jobs that ran in the same second and could use the same link, by their numbers in Slurm.

    :param jobs: fields of completed jobs; those without nodes or times are ignored.
    :param cluster: the machine.
    """
    place = {name: number for number, name in enumerate(node_names(cluster))}
    runs: dict[str, tuple[int, int, list[int]]] = {}
    for job in jobs:
        names = expand(job["NodeList"]) if job.get("NodeList", "(null)") != "(null)" else []
        try:
            begin, end = (int(datetime.fromisoformat(job[name]).timestamp()) for name in ("StartTime", "EndTime"))
        except (KeyError, ValueError):
            continue
        if names:
            runs[job["JobId"]] = begin, end, [place[name] for name in names]
    names, found = list(runs), set()
    for moment in sorted({begin for begin, _, _ in runs.values()}):
        live = {at: runs[name][2] for at, name in enumerate(names) if runs[name][0] <= moment < runs[name][1]}
        found |= {(names[a], names[b]) for a, b in check(live, cluster.links).pairs}
    return sorted(found)


def figures(run: Record, alone: Mapping[str, float], nodes: int) -> dict[str, float]:
    """Return the figures of one run.

    :param run: a run's record, with ``jobs`` and ``pairs``.
    :param alone: seconds of each kind and size on an empty cluster, by a key such as ``stencil 4``.
    :param nodes: number of nodes of the cluster.
    :raises BenchmarkError: if the run has no jobs.
    """
    jobs = run["jobs"]
    if not jobs:
        raise BenchmarkError("studies slurm: expecting jobs in a run, got none")
    waits = [job["start"] - job["submit"] for job in jobs]
    makespan = max(job["end"] for job in jobs) - min(job["submit"] for job in jobs)
    held = sum(job["size"] * (job["end"] - job["start"]) for job in jobs)
    slower = [*_interference(jobs, alone)]
    talk = {job["id"] for job in jobs if job["rounds"]}
    return {
        "makespan": makespan,
        "cumulative": sum(job["end"] - job["submit"] for job in jobs),
        "mean wait": statistics.mean(waits),
        "median wait": statistics.median(waits),
        "utilisation": held / (nodes * makespan),
        "mean interference": statistics.mean(slower) if slower else 1.0,
        "worst interference": max(slower, default=1.0),
        "pairs": len(run["pairs"]),
        "talking pairs": sum(set(pair) <= talk for pair in run["pairs"]),
    }


def _interference(jobs: Sequence[Record], alone: Mapping[str, float]) -> Iterator[float]:
    """Yield the time of each communicating job over its time alone."""
    for job in jobs:
        if job["rounds"]:
            yield job["seconds"] / alone[f"{job['kind']} {job['size']}"]


def interference_of(runs: Sequence[Record], alone: Mapping[str, float]) -> list[float]:
    """Return the interference of all communicating jobs of some runs; parameters as for `figures`."""
    return [value for run in runs for value in _interference(run["jobs"], alone)]


def spread(values: Sequence[float], form: str = "{:.1f}") -> str:
    """Return median, least and greatest value as text, such as ``5.0 (4.1 to 7.2)``."""
    middle, least, most = (form.format(f(values)) for f in (statistics.median, min, max))
    return middle if len(values) == 1 else f"{middle} ({least} to {most})"


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Return the mean of some values and its interval of 95 %, by the bootstrap.

    :param values: the values; at least one.
    :param seed: seed of the draws.
    """
    data = np.array(values, dtype=float)
    draws = np.random.default_rng(seed).choice(data, (DRAWS, len(data)))
    low, high = np.quantile(draws.mean(axis=1), (0.025, 0.975))
    return float(data.mean()), float(low), float(high)
