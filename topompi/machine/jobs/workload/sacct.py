"""A reader of the jobs of Slurm's ``sacct``: its text, with any separator, its JSON and its YAML.

Needed are the fields JobID (or JobIDRaw), Submit, the nodes (NNodes, AllocNodes, ReqNodes, a TRES or NodeList), and
Elapsed (or ElapsedRaw) or both Start and End. State, Timelimit (or TimelimitRaw), User and the fields in ``FREE`` are
read if present. Steps of jobs, whose JobID contains a dot, are skipped.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from ....errors import SourceError
from ....inputs.hostlist import expand
from ....inputs.slurm.accounting import array_tasks, count_of, is_cut, is_unknown, job_number
from ..errors import WorkloadError
from .columns import Value, gather
from .text import Source, open_log, read_moment, read_span, whole
from .workload import LeftOut, Workload

if TYPE_CHECKING:
    from ....inputs import InputFile
    from ....inputs.slurm.answers import Document
    from ....inputs.slurm.clusters import Clusters
    from .sacctrows import Row

__all__ = ["read_sacct", "sacct_of_answer"]

Fields = dict[str, str]
Parts = tuple[str, list[Fields] | WorkloadError]  # file and line, and the components of a job (mostly 1) or an error

FREE = {"User": "user_name", "Account": "account", "Partition": "partition", "QOS": "class", "JobName": "program"}
COUNTS = ("NNodes", "AllocNodes", "ReqNodes")
TRES = ("AllocTRES", "ReqTRES")
RUNNING = ("RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT")
WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
ROUNDED = "sacct rounds with units of 1,024"
FAR = 10_000  # greatest distance, in lines, between successive components of a heterogeneous job
MOST_TASKS = 4_000_001  # greatest number of tasks of waiting arrays in a log, that of Slurm's largest array
_NODES = re.compile(r"(?:^|,)node=([0-9.]+[KMGTP]?)(?:,|$)")
_HET = re.compile(r"([0-9]{1,15})\+[0-9]+")


def read_sacct(
    path: Source,
    partial: bool = False,
    columns: Sequence[str] | None = None,
    arrivals: bool = False,
    cluster: str | None = None,
) -> Workload:
    """Read the jobs that have run from ``sacct``'s text; times without a time zone are taken as UTC.

    Left out and counted are repeated lines, and jobs that have not started or ended, were cancelled before their start,
    or ran in another cluster (REVOKED). A run that ended because its job was requeued or resized (``sacct -D``) counts
    as a job of its own. The components of a heterogeneous job are one job with the sum of their nodes, because they
    start together.

    :param path: path of the output of ``sacct -P`` (``--parsable2``), of ``sacct``'s table, or of lines without names
        of fields, plain or packed.
    :param partial: whether wrong lines are skipped and counted, instead of raising an error.
    :param columns: names of the fields of a log that does not have them in its first line, in order.
    :param arrivals: whether jobs that have not run to their end are read, with the requested time as their run time;
        a waiting array becomes a job per task.
    :param cluster: name of the cluster whose jobs are read; None if the log must be of one cluster.
    :raises WorkloadError: if the file is malformed; the message names file, line and field.
    """
    from ....inputs.slurm.clusters import Clusters  # imported here, because most commands read no log
    from .sacctrows import rows_of_text

    log, reading = open_log(path), LeftOut(partial)
    where, names, rows = rows_of_text(log, columns, reading.notes)
    _check_names(where, names)
    clusters = Clusters(cluster)
    named = (row for row in rows if isinstance(row[1], WorkloadError) or clusters.takes(row[1].get("Cluster", "")))
    return _workload(log, named, reading, arrivals, clusters)


def sacct_of_answer(
    log: InputFile,
    found: list[Document],
    partial: bool = False,
    arrivals: bool = False,
    cluster: str | None = None,
) -> Workload:
    """Make the workload of the output of ``sacct --json`` or ``--yaml``, as `read_sacct` does.

    :param log: the log.
    :param found: its objects.
    :param partial: whether wrong jobs are skipped and counted, instead of raising an error.
    :param arrivals: whether jobs that have not run to their end are read.
    :param cluster: name of the cluster whose jobs are read; None if the log must be of one cluster.
    :raises WorkloadError: if a job is malformed; the message names file, job and field.
    """
    from ....inputs.slurm.clusters import Clusters  # imported here, because most commands read no log
    from .sacctjson import rows_of_answer

    clusters = Clusters(cluster)
    return _workload(log, rows_of_answer(log, found, clusters), LeftOut(partial), arrivals, clusters)


def _workload(log: InputFile, rows: Iterable[Row], reading: LeftOut, arrivals: bool, clusters: Clusters) -> Workload:
    users, several = dict[str, int](), list[int]()

    def values(row: Parts) -> dict[str, int] | None:
        where, parts = row
        if isinstance(parts, WorkloadError):
            raise parts
        found = _joined([_values(where, fields, reading, arrivals) for fields in parts])
        user = parts[0].get("User", "")
        if found is not None:
            several.extend([found["number"]] * (len(parts) > 1))
            found["user"] = users.setdefault(user, len(users)) if user else -1
        return found

    components = _components(rows, reading)
    tasks = _tasks(components) if arrivals else components
    workload = gather(log.name, tasks, values, reading, further=_further)
    clusters.check(log.name, WorkloadError)
    if several:
        jobs = f"{len(several):,} heterogeneous job{'s' if len(several) > 1 else ''}, {several[0]} first"
        reading.notes.append(f"{jobs}: all components start together, as one job")
    return workload


def _check_names(where: str, names: list[str]) -> None:
    known, got = set(names), ", ".join(names)[:80]
    counts = (*COUNTS, *TRES, "NodeList")
    for wanted, of in (("JobID", ("JobID", "JobIDRaw")), ("Submit", ("Submit",)), ("NNodes", counts)):
        if not known & set(of):
            raise WorkloadError(f"{where}: expecting a field {wanted}, got {got}")
    if not known & {"Elapsed", "ElapsedRaw"} and not {"Start", "End"} <= known:
        raise WorkloadError(f"{where}: expecting a field Elapsed, or Start and End, got {got}")


def _components(rows: Iterable[Row], reading: LeftOut) -> Iterator[Parts]:
    """Yield jobs without steps and repeated lines; all components of a run of a heterogeneous job come together."""
    waiting, runs, seen = deque[_Run](), dict[str, _Run](), set[int]()
    for at, (where, fields) in enumerate(rows):
        name = "" if isinstance(fields, WorkloadError) else _job_id(fields)
        if "." in name.partition("[")[0] or (
            not isinstance(fields, WorkloadError) and _is_repeated(fields, seen, reading)
        ):
            continue
        het = _HET.fullmatch(name) if "+" in name else None
        if het is None and not waiting:
            yield where, fields if isinstance(fields, WorkloadError) else [fields]
            continue
        run = runs.get(het[1]) if het else None
        if run is not None and name not in run.parts and not isinstance(fields, WorkloadError):
            run.parts[name], run.last = fields, at
        else:  # a job that is not heterogeneous, the first component, or one that runs again after it was requeued
            waiting.append(_Run(where, {name: fields}, at if het else -FAR))
            runs |= {het[1]: waiting[-1]} if het else {}
        while waiting and at - waiting[0].last >= FAR:
            yield waiting.popleft().job
    yield from (run.job for run in waiting)


@dataclass
class _Run:
    """One run of a job, to which components may be added if it is heterogeneous.

    :param where: file and line of the first component.
    :param parts: JobID -> fields of a component, or the error of its line.
    :param last: number of the row that has the last component so far.
    """

    where: str
    parts: dict[str, Fields | WorkloadError]
    last: int

    @property
    def job(self) -> Parts:
        """File and line of the first component, and all components, or the error of a wrong line."""
        parts = list(self.parts.values())
        wrong = next((one for one in parts if isinstance(one, WorkloadError)), None)
        return self.where, wrong or [one for one in parts if not isinstance(one, WorkloadError)]


def _is_repeated(fields: Fields, seen: set[int], reading: LeftOut) -> bool:
    """Return whether an equal line came before, for example because logs of months were joined; if so, count it."""
    run = hash(tuple(fields.values()))
    if run not in seen:
        seen.add(run)
        return False
    reading.drop("the same line again")
    return True


def _job_id(fields: Fields) -> str:
    return fields.get("JobID") or fields.get("JobIDRaw", "")


def _tasks(rows: Iterable[Parts]) -> Iterator[Parts]:
    """Repeat the row of a waiting array for each of its tasks."""
    total = 0
    for where, parts in rows:
        if not isinstance(parts, WorkloadError) and is_cut(name := _job_id(parts[0])):
            wanted = "all tasks of the array (SLURM_BITSTR_LEN=0 sacct -P)"
            yield where, WorkloadError(f"{where}: JobID: expecting {wanted}, got {name[:40]!r}")
            continue
        count = 1 if isinstance(parts, WorkloadError) else array_tasks(_job_id(parts[0]))
        total += count if count > 1 else 0
        if total > MOST_TASKS:
            raise WorkloadError(f"{where}: expecting at most {MOST_TASKS} tasks of waiting arrays, got more")
        yield from repeat((where, parts), count)


def _joined(parts: list[dict[str, int] | None]) -> dict[str, int] | None:
    """Return one job from the components that ran: they start together, each on nodes of its own."""
    ran = [one for one in parts if one is not None]
    if not ran:
        return None
    longest = {word: max(one[word] for one in ran) for word in ("run", "request")}
    return {**ran[0], **longest, "nodes": sum(one["nodes"] for one in ran)}


def _values(where: str, fields: Fields, reading: LeftOut, arrivals: bool) -> dict[str, int] | None:
    number = job_number(_job_id(fields))
    if number is None:
        raise WorkloadError(f"{where}: JobID: expecting a number, got {_job_id(fields)[:40]!r}")
    nodes = _nodes(where, fields, reading)
    request, run = _request(where, fields), _run(where, fields)
    reason = _unfinished(fields, run) if nodes else "no nodes"
    if reason and arrivals and request and nodes and reason != "revoked":
        run, reason = request, ""
    if reason or run is None:
        reading.drop(reason or "not ended")
        return None
    submit = read_moment(where, "Submit", fields["Submit"])
    return {"number": number, "submit": submit, "run": max(run, 0), "request": request, "nodes": nodes}


def _unfinished(fields: Fields, run: int | None) -> str:
    """Return in words why a job has not run to its end; empty if it has."""
    state = (fields.get("State", "").split() or [""])[0].upper().rstrip("+")
    if state == "REVOKED":
        return "revoked"
    if is_unknown(fields.get("Start", "-")) or (state in WAITING and not run) or "_[" in _job_id(fields):
        return "cancelled before start" if state == "CANCELLED" else "not started"
    if state == "CANCELLED" and run == 0:
        return "cancelled before start"
    return "not ended" if is_unknown(fields.get("End", "-")) or state in RUNNING else ""


def _nodes(where: str, fields: Fields, reading: LeftOut) -> int:
    """Return the number of nodes, from the first field that has one above 0; 0 if no field has."""
    counts = [(word, fields[word]) for word in COUNTS if fields.get(word)]
    for word in TRES:
        counts += [(word, match[1]) for match in [_NODES.search(fields.get(word, ""))] if match]
    for word, text in counts:
        if count := whole(where, word, count_of(text), 0):
            if "." in text and text[-1:].isalpha() and not any(ROUNDED in note for note in reading.notes):
                reading.notes.append(f"{word} {text} is taken as {count:,}: {ROUNDED} (--noconvert prints all digits)")
            return count
    hosts = fields.get("NodeList", "")
    try:
        return 0 if is_unknown(hosts) or hosts == "None assigned" else len(expand(hosts))
    except SourceError as problem:
        raise WorkloadError(f"{where}: NodeList: {problem}") from problem


def _request(where: str, fields: Fields) -> int:
    """Return the requested seconds, 0 if there are none: Timelimit, else TimelimitRaw, which is in minutes."""
    limit, minutes = fields.get("Timelimit", ""), fields.get("TimelimitRaw", "")
    if not is_unknown(limit):
        return read_span(where, "Timelimit", limit)
    return 0 if is_unknown(minutes) else 60 * whole(where, "TimelimitRaw", minutes, 0)


def _run(where: str, fields: Fields) -> int | None:
    """Return the seconds that a job ran: Elapsed, else ElapsedRaw, else from Start to End; None if unknown."""
    for word in ("Elapsed", "ElapsedRaw"):
        if not is_unknown(fields.get(word, "")):
            return read_span(where, word, fields[word])
    ends = [fields.get(word, "") for word in ("Start", "End")]
    if any(map(is_unknown, ends)):
        return None
    return read_moment(where, "End", ends[1]) - read_moment(where, "Start", ends[0])


def _further(row: Parts) -> dict[str, Value]:
    where, parts = row
    fields = {} if isinstance(parts, WorkloadError) else parts[0]
    found: dict[str, Value] = {word: fields[field] for field, word in FREE.items() if field in fields}
    slots = [one["AllocCPUS"] for one in parts if one.get("AllocCPUS")] if not isinstance(parts, WorkloadError) else []
    if not slots:
        return found
    return found | {"slots": sum(whole(where, "AllocCPUS", count_of(text), 0) for text in slots)}
