"""Rows of ``squeue``: its JSON and YAML of all versions of ``data_parser``, and its tables of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import SourceError
from ..files import InputFile
from ..jsontext import parse_json

__all__ = ["Row", "form_of", "holds_nodes"]

Row = tuple[str, str, str]  # the job's name, its host list (empty if it has no nodes), and their place, ``file:line``

# States of jobs that have no nodes any more, or none yet. A job in any other state, known or not, holds its nodes.
_RELEASED = {
    *("PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"),
    *("OUT_OF_MEMORY", "REVOKED", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"),
    *("PD", "CD", "CA", "F", "TO", "NF", "PR", "BF", "DL", "OOM", "RV", "RQ", "RF", "RH", "SE", "RD"),
}
# States that hold nodes whatever other states they stand beside: a job that COMPLETED is COMPLETING until its nodes
# are clean, and a PENDING job is CONFIGURING while its nodes boot.
_HOLDING = {
    *("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"),
    *("POWER_UP_NODE", "R", "S", "CG", "CF", "ST", "RS", "SI", "SO"),
}
_YAML = re.compile(r"%YAML|---\s*$|(jobs|meta|errors|warnings|last_update|last_backfill)\s*:")


def holds_nodes(states: object) -> bool:
    """Return whether a job in these states holds its nodes.

    :param states: state as a text, in words or squeue's letters, or a list of states that apply together.
    """
    words = states if isinstance(states, list) else str(states).replace("+", ",").split(",")
    found = {str(word).strip().upper() for word in words}
    return bool(found & _HOLDING) or not found & _RELEASED


def form_of(text: InputFile) -> Callable[[InputFile], Iterator[Row]] | None:
    """Return the reader for a text that squeue printed; None for other texts."""
    lines = [line.strip() for line in text.head().splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith("#")), "")
    if first.startswith("{"):
        return _of_json
    if _YAML.match(first):
        return _of_yaml
    return _of_table if any(_columns(line) for line in lines[:3]) else None


def _of_json(text: InputFile) -> Iterator[Row]:
    content = parse_json(text.data(), text.name, text.error)
    try:
        yield from _held(text, list(content["jobs"]))
    except (KeyError, TypeError, AttributeError) as problem:
        got = f"{type(problem).__name__}: {problem}"
        raise text.error(f"{text.name}: expecting squeue --json, got {got}") from problem


def _of_yaml(text: InputFile) -> Iterator[Row]:
    from ..yamlvalues import parse_yaml  # imported here, because most lists of jobs are not YAML

    try:
        top = _yaml_fields(parse_yaml(text).node)
        listed = getattr(top["jobs"], "value", None)
        jobs = [_job_of_yaml(item) for item in listed or []]
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        got = problem if isinstance(problem, SourceError) else f"{type(problem).__name__}: {problem}"
        raise text.error(f"{text.name}: expecting squeue --yaml, got {got}") from problem
    yield from _held(text, jobs)


def _yaml_fields(node: Any) -> dict[str, Any]:
    return {str(key.value): value for key, value in node.value}


def _job_of_yaml(node: Any) -> dict[str, Any]:
    """Return the fields of a job that matter here; the others may be deeply nested."""
    fields = _yaml_fields(node)
    job: dict[str, Any] = {"job_id": fields["job_id"].value, "nodes": fields["nodes"].value}
    states = fields["job_state"].value
    job["job_state"] = [one.value for one in states] if isinstance(states, list) else states
    count = fields.get("node_count")
    if count is not None and isinstance(count.value, list):
        job["node_count"] = {key: value.value for key, value in _yaml_fields(count).items()}
    return job


def _held(text: InputFile, jobs: list[Any]) -> Iterator[Row]:
    for job in jobs:
        name, states, hosts = str(job["job_id"]), job["job_state"], job["nodes"]
        if not holds_nodes(states):
            continue
        place = f"{text.name}: job {name}"
        if hosts is not None and not isinstance(hosts, str):
            raise text.error(f"{place}: expecting a host list, got {hosts!r}")
        if not hosts and (count := _count(job.get("node_count"))):
            raise text.error(f"{place}: expecting a host list of {count} nodes, got none")
        yield name, hosts or "", place


def _count(value: object) -> int:
    """Return a number that stands alone or, as in data_parser, in ``{"set": true, "number": 4}``; 0 if it is unset."""
    if isinstance(value, Mapping):
        value = value.get("number") if str(value.get("set")).lower() == "true" else 0
    return int(text) if len(text := str(value)) < 10 and text.isdecimal() else 0


def _columns(line: str) -> list[str]:
    """Return the names of the columns if a line is the heading of squeue's table; else an empty list."""
    words = [word.strip().upper() for word in _cells(line)]
    words = [word.partition("(")[0] for word in words]
    return words if {"JOBID", "NODELIST"} <= set(words) else []


def _cells(line: str, most: int = -1) -> list[str]:
    for mark in "|;,":
        if mark in line:
            return line.strip(mark).split(mark, most)
    return line.split()


def _of_table(text: InputFile) -> Iterator[Row]:
    names: list[str] = []
    for number, line in text.lines():
        if not names:
            names, heading = _columns(line), line
        elif line.strip() and not _columns(line):
            row = _row(names, line, any(mark in heading for mark in "|;,"))
            place = f"{text.name}:{number}"
            if row is None:
                raise text.error(f"{place}: expecting {' '.join(names)}, got {line.strip()[:80]!r}")
            if row[1] != "" or holds_nodes(row[2]):
                yield row[0], row[1], place


def _row(names: list[str], line: str, marked: bool) -> tuple[str, str, str] | None:
    """Return a line's job, hosts and state; hosts are empty if it holds none; None if the columns do not match."""
    start = line.find(" (") if line.rstrip().endswith(")") else -1  # the reason for the wait, which may have blanks
    pending = start >= 0
    line = line[:start] if pending else line
    cells = [cell.strip() for cell in (_cells(line, len(names) - 1) if marked else line.split())]
    if pending or len(cells) == len(names) - 1:  # the column of hosts is empty, or has the reason for the wait
        at = names.index("NODELIST")
        cells = [*cells[:at], "", *cells[at:]] if len(cells) < len(names) or pending else cells
    surplus = len(cells) - len(names)
    if surplus < 0 or (surplus and "NAME" not in names):
        return None
    split_at = names.index("NAME") if "NAME" in names else len(names)  # a job's name may have blanks
    found = {name: cells[at + (surplus if at > split_at else 0)] for at, name in enumerate(names)}
    state = found.get("ST", found.get("STATE", ""))
    hosts = found["NODELIST"]
    if hosts.startswith("(") or (state and not holds_nodes(state)):
        return found["JOBID"], "", state or "PENDING"
    return found["JOBID"], hosts, state or ("RUNNING" if hosts else "PENDING")
