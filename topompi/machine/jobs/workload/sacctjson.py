"""Rows of ``sacct --json`` and ``--yaml``, under the names of ``sacct -P``'s fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....inputs import InputFile
from ....inputs.slurm.answers import ACCOUNTS, Document, entries, fields_of, number_of
from ....inputs.slurm.clusters import Clusters
from ..errors import WorkloadError
from .sacctrows import Row

__all__ = ["rows_of_answer"]


def rows_of_answer(log: InputFile, found: list[Document], clusters: Clusters) -> Iterator[Row]:
    """Yield a row per job; the row of a job without a needed field contains an error.

    :param log: the log.
    :param found: its objects.
    :param clusters: record and choice of the clusters.
    """
    for job in entries(log, found, ACCOUNTS, clusters):
        where = f"{log.name}: job {str(job.get('job_id', '?'))[:20]}"
        try:
            with fields_of(where, ACCOUNTS, WorkloadError):
                yield where, _fields(job)
        except WorkloadError as problem:
            yield where, problem


def _fields(job: Mapping[str, Any]) -> dict[str, str]:
    time, state = job["time"], job["state"]
    current = state["current"] if isinstance(state, Mapping) else state
    limit = number_of(time.get("limit"))
    found = {
        "JobID": _job_id(job),
        "State": str(current[0] if isinstance(current, list) and current else current),
        "Submit": number_of(time["submission"]),
        "Elapsed": number_of(time["elapsed"]),
        "NNodes": _nodes(job),
        "Timelimit": str(60 * int(limit)) if limit else "",
        "User": str(job.get("user") or (job.get("association") or {}).get("user") or ""),
        "Cluster": str(job.get("cluster") or ""),  # so that equal jobs of two clusters are no repetition
    }
    for field, word in (("Start", "start"), ("End", "end")):
        if word in time:
            found[field] = _above_zero(time[word]) or "Unknown"
    for field, word in (("Account", "account"), ("Partition", "partition"), ("QOS", "qos"), ("JobName", "name")):
        if isinstance(job.get(word), str):
            found[field] = job[word]
    return found


def _above_zero(value: Any) -> str:
    """Return a number as text; empty if it is 0 or unset."""
    number = number_of(value)
    return "" if number == "0" else number


def _job_id(job: Mapping[str, Any]) -> str:
    het, array = job.get("het") or {}, job.get("array") or {}
    if first := _above_zero(het.get("job_id")):
        return f"{first}+{number_of(het.get('job_offset')) or 0}"
    task, rest, first = number_of(array.get("task_id")), array.get("task"), _above_zero(array.get("job_id"))
    if first and (task or rest):
        return f"{first}_{task}" if task else f"{first}_[{rest}]"
    return str(job["job_id"])


def _nodes(job: Mapping[str, Any]) -> str:
    tres = job.get("tres") or {}
    listed = [one for part in ("allocated", "requested") for one in tres.get(part) or [] if one.get("type") == "node"]
    counts = map(_above_zero, (job.get("allocation_nodes"), *(one["count"] for one in listed)))
    return next(filter(None, counts), "0")
