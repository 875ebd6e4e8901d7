"""Rows of ``sacct --json``, under the names of ``sacct -P``'s fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import WorkloadError
from .sacctrows import Row

__all__ = ["is_sacct_json", "rows_of_json"]


def is_sacct_json(content: Any) -> bool:
    """Return whether JSON is sacct's: a list of jobs with their times, and none of Batsim's profiles."""
    jobs = content.get("jobs") if isinstance(content, dict) and "profiles" not in content else None
    return isinstance(jobs, list) and all(isinstance(job, dict) and "job_id" in job for job in jobs)


def rows_of_json(name: str, content: Any) -> Iterator[Row]:
    """Yield a row per job; the row of a job without a needed field contains an error.

    :param name: name of the file.
    :param content: the JSON.
    """
    for job in content["jobs"]:
        where = f"{name}: job {str(job['job_id'])[:20]}"
        try:
            yield where, _fields(job)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            got = f"{type(problem).__name__}: {problem}"
            yield where, WorkloadError(f"{where}: expecting sacct --json, got {got}"[:300])


def _fields(job: dict[str, Any]) -> dict[str, str]:
    time, state = job["time"], job["state"]
    current = state["current"] if isinstance(state, dict) else state
    limit = _set(time.get("limit"))
    found = {
        "JobID": _job_id(job),
        "State": str(current[0] if isinstance(current, list) and current else current),
        "Submit": str(_set(time["submission"])),
        "Elapsed": str(_set(time["elapsed"])),
        "NNodes": str(_nodes(job)),
        "Timelimit": "" if limit is None else str(60 * int(limit)),
        "User": str(job.get("user") or (job.get("association") or {}).get("user") or ""),
    }
    for field, word in (("Start", "start"), ("End", "end")):
        if word in time:
            found[field] = str(_set(time[word]) or "Unknown")
    for field, word in (("Account", "account"), ("Partition", "partition"), ("QOS", "qos"), ("JobName", "name")):
        if isinstance(job.get(word), str):
            found[field] = job[word]
    return found


def _set(value: Any) -> int | float | str | None:
    """Return a number that stands alone or, as in data_parser, in ``{"set": true, "number": 4}``; None if unset."""
    if isinstance(value, dict):
        return value["number"] if value.get("set") and not value.get("infinite") else None
    if isinstance(value, list | bool):
        raise ValueError(f"{str(value)[:40]!r} for a number")
    return value  # type: ignore[no-any-return]


def _job_id(job: dict[str, Any]) -> str:
    het, array = job.get("het") or {}, job.get("array") or {}
    if _set(het.get("job_id")):
        return f"{_set(het['job_id'])}+{_set(het.get('job_offset')) or 0}"
    task, rest = _set(array.get("task_id")), array.get("task")
    if _set(array.get("job_id")) and (task is not None or rest):
        return f"{_set(array['job_id'])}_{task}" if task is not None else f"{_set(array['job_id'])}_[{rest}]"
    return str(job["job_id"])


def _nodes(job: dict[str, Any]) -> int | float | str:
    count = _set(job.get("allocation_nodes"))
    tres = job.get("tres") or {}
    for part in ("allocated", "requested"):
        listed = [one["count"] for one in tres.get(part) or [] if one.get("type") == "node"]
        count = count or (listed[0] if listed else None)
    return count or 0
