"""Writers of outcomes as Batsim's jobs.csv, which evalys reads, as Batsim's schedule.csv, and as topompi's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...inputs.csvtext import write_csv
from ...inputs.writing import open_output
from .metrics import figures
from .outcome import Outcome

__all__ = ["to_json", "write_jobs"]

JOBS = (
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time"),
    *("success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time"),
    *("stretch", "allocated_resources"),
)


def write_jobs(outcome: Outcome, path: Path) -> None:
    """Write one line per job, in the format that Batsim writes and evalys reads; rejected jobs have no times.

    If jobs held slots, the resources are slots, numbered node by node.
    """
    with open_output(path) as stream:
        write_csv(stream, chain([JOBS], _job_rows(outcome)))


def _job_rows(outcome: Outcome) -> Iterator[list[object]]:
    jobs, asked, lost = outcome.workload, outcome.workload.nodes, set(outcome.lost.tolist())
    if outcome.slots is not None:
        asked = np.where(jobs.slots > 0, jobs.slots, jobs.nodes)
    for job in range(len(jobs)):
        start, end, submit = int(outcome.start[job]), int(outcome.end[job]), int(jobs.submit[job])
        front = [int(jobs.number[job]), Path(jobs.name).name, "log", submit, int(asked[job])]
        front.append(int(jobs.estimate[job]))
        if start < 0:
            yield [*front, 0, "REJECTED", "", "", "", "", "", "", ""]
            continue
        ended = bool(jobs.run[job] > end - start == jobs.estimate[job])
        state = "COMPLETED_WALLTIME_REACHED" if ended else "COMPLETED_SUCCESSFULLY"
        state, ended = ("COMPLETED_KILLED", True) if job in lost else (state, ended)
        run, around = end - start, end - submit
        times = [start, run, end, start - submit, around, around / max(run, 1)]
        yield [*front, int(not ended), state, *times, _ranges(outcome.resources_of(job))]


def to_json(outcome: Outcome) -> str:
    """Return JSON with the policy, all figures, each job's times and, as far as they are known, its nodes or slots.

    A job's nodes are those that it held, as ranges of their numbers in the cluster. ``lost`` lists the jobs that ended
    because a node went down, if there are any.
    """
    queue, allocator, speed = outcome.policy
    content: dict[str, object] = {
        "version": 1,
        "workload": outcome.workload.name,
        "cluster": outcome.cluster.name,
        "queue": queue,
        "allocator": allocator,
        "speed": speed,
        "summary": figures(outcome) | {"rejected_because": outcome.rejections},
        "job": outcome.workload.number.tolist(),
        "start": outcome.start.tolist(),
        "end": outcome.end.tolist(),
    }
    if len(outcome.lost):
        content["lost"] = outcome.workload.number[outcome.lost].tolist()
    if outcome.has_nodes:
        content["nodes"] = [_ranges(np.sort(outcome.held_by(job))) for job in range(len(outcome.workload))]
    if outcome.slots is not None:
        content["slots"] = [_ranges(outcome.resources_of(job)) for job in range(len(outcome.workload))]
    return json.dumps(content)


def _ranges(nodes: NDArray[np.integer]) -> str:
    """Format ascending numbers as ranges, for example ``0-3 7``."""
    if not len(nodes):
        return ""
    cuts = np.flatnonzero(np.diff(nodes) > 1)
    first, last = nodes[np.append(0, cuts + 1)], nodes[np.append(cuts, len(nodes) - 1)]
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in zip(first.tolist(), last.tolist(), strict=True))
