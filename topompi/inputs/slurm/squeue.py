"""Rows of ``squeue`` (JSON and YAML of all versions of ``data_parser``, tables) and of ``scontrol show job``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import SourceError
from ..files import InputFile
from ..hostlist import expand
from .accounting import count_of
from .answers import JOBS, documents, entries, fields_of, is_answer, number_of
from .clusters import Clusters, cluster_heading
from .reports import cells, mark_of, records

__all__ = ["form_of", "holds_nodes"]

# Name of a job, its host list (empty if it has no nodes), the place of the list in the file (``file:line``), and the
# number of its CPUs, in all or by host; 0 if unknown.
Row = tuple[str, str, str, int | dict[str, int]]

# States of jobs that have no nodes any more, or none yet. A job in any other state, known or not, holds its nodes.
_RELEASED = {
    *("PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"),
    *("OUT_OF_MEMORY", "REVOKED", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"),
    *("PD", "CD", "CA", "F", "TO", "NF", "PR", "BF", "DL", "OOM", "RV", "RQ", "RF", "RH", "SE", "RD"),
}
# States in which a job holds nodes even if it is in another state, too: a COMPLETED job is also COMPLETING until its
# nodes are clean, and a PENDING job is also CONFIGURING while its nodes boot.
_HOLDING = {
    *("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"),
    *("POWER_UP_NODE", "R", "S", "CG", "CF", "ST", "RS", "SI", "SO"),
}
# squeue's table without its heading (-h): job, partition, name, user, state, time, nodes, hosts or reason; of several
# clusters (-M), the name of the cluster comes first.
_BARE = re.compile(
    rf"(?:[A-Za-z_]\S*+\s++)?[0-9]\S*+\s++\S++\s++.*\S\s++(?:{'|'.join(_RELEASED | _HOLDING)})"
    r"\s++[0-9:-]++\s++[0-9.]++K?\s++\S"
)
_DEFAULT = ("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST")


def holds_nodes(states: object) -> bool:
    """Return whether a job in these states holds its nodes.

    :param states: state as a text, in words or squeue's letters, or a list of states that apply together.
    """
    words = states if isinstance(states, list) else str(states).replace("+", ",").split(",")
    found = {str(word).strip().upper() for word in words} - {""}
    return bool(found & _HOLDING) or not found & _RELEASED


def form_of(text: InputFile) -> Callable[[InputFile, Clusters], Iterator[Row]] | None:
    """Return the function that reads jobs from an output of Slurm's commands; None if the text is no such output."""
    lines = [line.strip() for line in text.head().splitlines() if line.strip() and cluster_heading(line) is None]
    first = next((line for line in lines if not line.startswith("#")), "")
    if is_answer(first):
        return _of_answer
    if first.startswith("JobId="):
        return _of_scontrol
    if "STEPID" in first.upper().split():
        raise text.error(f"{text.name}: expecting the jobs of squeue, got their steps (squeue -s)")
    return _of_table if any(_columns(line) for line in lines[:3]) or _BARE.match(first) else None


def _of_answer(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    for job in entries(text, documents(text), JOBS, clusters):
        place = f"{text.name}: job {str(job.get('job_id', '?'))[:20]}"
        with fields_of(place, JOBS, text.error):
            name, states, hosts = str(job["job_id"]), job["job_state"], _hosts(job)
            cpus, count = _cpus(job), _count(job.get("node_count"))
        if not holds_nodes(states):
            continue
        if hosts is not None and not isinstance(hosts, str):
            raise text.error(f"{place}: expecting a host list, got {hosts!r}")
        if not hosts and count:
            raise text.error(f"{place}: expecting a host list of {count} nodes, got none")
        yield name, hosts or "", place, cpus


def _of_scontrol(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    clusters.takes("")
    for job, place in records(text, "JobId", ("JobState", "NodeList", "NumCPUs")):
        hosts = job.get("NodeList", "").replace("(null)", "")
        if "JobState" not in job:
            raise text.error(f"{place}: expecting the JobState of job {job['JobId']}, got none")
        if holds_nodes(job["JobState"]):
            yield job["JobId"], hosts, place, _number(job.get("NumCPUs", ""))


def _hosts(job: Mapping[str, Any]) -> object:
    """Return the host list of a job, from its field ``nodes``, else from ``job_resources``."""
    if job.get("nodes") or not isinstance(job.get("job_resources"), dict):
        return job["nodes"]
    hosts = job["job_resources"].get("nodes")
    return hosts.get("list") if isinstance(hosts, dict) else hosts


def _cpus(job: Mapping[str, object]) -> int | dict[str, int]:
    """Return the number of CPUs that a job holds, by host if ``job_resources`` has it, else in all; 0 if unknown."""
    resources = job.get("job_resources")
    nodes = resources.get("nodes") if isinstance(resources, dict) else None
    listed = nodes.get("allocation") if isinstance(nodes, dict) else None
    if isinstance(listed, list) and all(isinstance(one, dict) and isinstance(one.get("cpus"), dict) for one in listed):
        found = {str(one.get("name")): _count(one["cpus"].get("count")) for one in listed}
        if found and all(found.values()):
            return found
    return _count(job.get("cpus"))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _count(value: object) -> int:
    """Return a number that stands alone or, as in data_parser, in ``{"set": true, "number": 4}``; 0 if it is unset."""
    return _number(number_of(value))


def _columns(line: str) -> list[str]:
    """Return the names of the columns if a line is the heading of squeue's table; else an empty list."""
    words = [word.upper().partition("(")[0] for word in cells(line, mark_of(line))]
    return words if {"JOBID", "NODELIST"} <= set(words) else []


def _of_table(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    names, mark, heading = list[str](), "", ""
    for number, line in text.lines():
        if (name := cluster_heading(line)) is not None:
            heading, names = name, []
            clusters.takes(heading)
            continue
        if not names:
            names, mark = _columns(line), mark_of(line)
            if names or not _BARE.match(line.strip()):
                continue
            names, mark = [*(["CLUSTER"] if not line.strip()[0].isdigit() else []), *_DEFAULT], ""
        if line.strip() and not _columns(line):
            place = f"{text.name}:{number}"
            row = _row(names, line, mark)
            if row is None:
                raise text.error(f"{place}: expecting {' '.join(names)}, got {line.strip()[:80]!r}")
            if not clusters.takes(row.get("CLUSTER", heading)):
                continue
            _check_whole(text, place, row)
            if row["NODELIST"] or holds_nodes(row["STATE"]):
                yield row["JOBID"], row["NODELIST"], place, _number(count_of(row.get("CPUS", "")))


def _row(names: list[str], line: str, mark: str) -> dict[str, str] | None:
    """Return a line's cells by column; no NODELIST if the job holds none; None if the columns do not match."""
    start = line.find(" (") if line.rstrip().endswith(")") else -1  # the reason for the wait, which may have blanks
    pending = start >= 0
    parts = cells(line[:start] if pending else line, mark)
    if pending or len(parts) == len(names) - 1:  # the column of hosts is empty, or has the reason for the wait
        at = names.index("NODELIST")
        parts = [*parts[:at], "", *parts[at:]] if len(parts) < len(names) or pending else parts
    surplus = len(parts) - len(names)
    if surplus < 0 or (surplus and "NAME" not in names):
        return None
    split_at = names.index("NAME") if "NAME" in names else len(names)  # a job's name may have blanks
    found = {name: parts[at + (surplus if at > split_at else 0)] for at, name in enumerate(names)}
    state = found.get("ST", found.get("STATE", ""))
    if found["NODELIST"].startswith("(") or (state and not holds_nodes(state)):
        return found | {"NODELIST": "", "STATE": state or "PENDING"}
    return found | {"STATE": state or ("RUNNING" if found["NODELIST"] else "PENDING")}


def _check_whole(text: InputFile, place: str, row: Mapping[str, str]) -> None:
    """Refuse a host list with another number of hosts than the column NODES says, because a column's width cut it.

    A job whose nodes are released one after another has fewer hosts than it asked for.
    """
    count = _number(count_of(row.get("NODES", "")))
    if not row["NODELIST"] or not count or row["STATE"].upper() in ("CG", "COMPLETING", "COMPLETI"):
        return
    try:
        hosts = len(expand(row["NODELIST"]))
    except SourceError as problem:
        raise text.error(f"{place}: {problem}") from problem
    if hosts != count:
        got = f"{hosts} in {row['NODELIST'][:60]!r}"
        raise text.error(f"{place}: expecting a host list of {count} nodes, got {got} (print the whole column)")
