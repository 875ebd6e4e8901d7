"""Batsim's workload files, in and out: JSON with ``nb_res``, ``jobs``, and ``profiles``, which have to be delays."""

from __future__ import annotations

import json
import os
from typing import Any

from ...inputs import parse_json
from ...inputs.writing import write_text
from ..errors import WorkloadError
from .columns import gather
from .text import Source, open_log
from .workload import LATEST, Reading, Workload

__all__ = ["read_batsim", "write_batsim"]


def read_batsim(path: Source, partial: bool = False) -> Workload:
    """The jobs of a file; times are rounded to whole seconds.

    :param path: of the file, plain or packed.
    :param partial: go on after a wrong job, and count it.
    :raises WorkloadError: with file, job and field of what is wrong.
    """
    log, reading = open_log(path), Reading(partial)
    content = parse_json(log.text(), log.name, WorkloadError)
    jobs, profiles = (_member(log.name, content, word, kind) for word, kind in (("jobs", list), ("profiles", dict)))
    nodes = content.get("nb_res")
    return gather(
        log.name,
        enumerate(jobs, 1),
        lambda job: _values(f"{log.name}: job {job[0]}", *job, profiles),
        reading,
        (f"; MaxNodes: {nodes}",) if isinstance(nodes, int) else (),
    )


def _member(name: str, content: Any, word: str, kind: type) -> Any:
    if not isinstance(content, dict) or not isinstance(content.get(word), kind):
        raise WorkloadError(f"{name}: expecting an object with {word}, got {type(content).__name__} without")
    return content[word]


def _values(where: str, number: int, job: Any, profiles: dict[str, Any]) -> dict[str, int]:
    if not isinstance(job, dict):
        raise WorkloadError(f"{where}: expecting an object, got {type(job).__name__}")
    profile = profiles.get(str(job.get("profile")))
    if not isinstance(profile, dict) or profile.get("type") != "delay":
        raise WorkloadError(f"{where}: profile: expecting one of type delay, got {str(job.get('profile'))[:40]!r}")
    name = str(job.get("id", number)).rpartition("!")[2]
    request = job.get("walltime", 0)
    return {
        "number": int(name) if name.isascii() and name.isdigit() and len(name) < 15 else number,
        "submit": _seconds(f"{where}: subtime", job.get("subtime")),
        "run": _seconds(f"{where}: delay", profile.get("delay")),
        "request": 0 if request in (None, -1) else _seconds(f"{where}: walltime", request),
        "nodes": _seconds(f"{where}: res", job.get("res"), 1, 2**31),
        "user": -1,
    }


def _seconds(where: str, value: Any, least: int = 0, below: int = LATEST) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value < below:
        raise WorkloadError(f"{where}: expecting a number from {least} below {below}, got {str(value)[:40]!r}")
    rounded: int = round(value)
    return rounded


def write_batsim(workload: Workload, path: str | os.PathLike[str], nodes: int) -> None:
    """A file of delays for a machine of so many nodes; a job is ended by its walltime where it asked for one.

    :param workload: the jobs.
    :param path: the file's path.
    :param nodes: of the machine.
    """
    jobs, profiles = [], {}
    columns = (workload.number, workload.submit, workload.run, workload.request, workload.nodes)
    for number, submit, run, request, size in zip(*(column.tolist() for column in columns), strict=True):
        job = {"id": str(number), "subtime": submit, "res": size, "profile": f"delay{run}"}
        jobs.append(job | ({"walltime": request} if request else {}))
        profiles[f"delay{run}"] = {"type": "delay", "delay": run}
    write_text(path, json.dumps({"nb_res": nodes, "jobs": jobs, "profiles": profiles}))
