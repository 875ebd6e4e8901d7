"""What Slurm's ``sacct -P`` prints: a line of field names, and one job a line, with bars between.

Wanted are JobID, Submit, NNodes, and Elapsed, or Start and End; Timelimit and User are read where they are there. Steps
of jobs, whose JobID has a dot, are passed over.
"""

from __future__ import annotations

import datetime
import os
import re

from ..errors import WorkloadError
from .text import lines, whole
from .workload import Reading, Workload

__all__ = ["read_sacct"]

_SPAN = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,8}):)?([0-9]{1,8}):([0-9]{1,2})(?:\.[0-9]+)?")
_JOB = re.compile(r"([0-9]{1,15})(?:_[0-9]+|\+[0-9]+|_\[.*\])?")
UNLIMITED = ("", "UNLIMITED", "Partition_Limit", "Unknown", "None")


def read_sacct(path: str | os.PathLike[str], partial: bool = False) -> Workload:
    """The jobs that have run; times without a zone are taken as UTC.

    :param path: the output of ``sacct -P`` (``--parsable2``), plain, ``.gz`` or ``.xz``.
    :param partial: go on after a wrong line, and count it.
    :raises WorkloadError: with file, line and field of what is wrong.
    """
    reading, users = Reading(partial), dict[str, int]()
    columns: dict[str, list[int]] = {word: [] for word in ("number", "submit", "run", "request", "nodes", "user")}
    names: list[str] | None = None
    for number, line in lines(path):
        words = [word.strip() for word in line.split("|")]
        where = f"{path}: line {number}"
        if names is None:
            names = words
            _check_names(where, names)
            continue
        if not line.strip():
            continue
        try:
            if len(words) != len(names):
                raise WorkloadError(f"{where}: expecting {len(names)} fields, got {len(words)}")
            values = _values(where, dict(zip(names, words, strict=True)), reading)
        except WorkloadError as error:
            reading.problem(error)
            continue
        if values is not None:
            user = dict(zip(names, words, strict=True)).get("User", "")
            values["user"] = users.setdefault(user, len(users)) if user else -1
            for word, value in values.items():
                columns[word].append(value)
    if names is None:
        raise WorkloadError(f"{path}: expecting a line of field names, got an empty file")
    return Workload.of(
        os.fspath(path),
        submit=columns["submit"],
        run=columns["run"],
        nodes=columns["nodes"],
        request=columns["request"],
        number=columns["number"],
        user=columns["user"],
        reading=reading,
    )


def _check_names(where: str, names: list[str]) -> None:
    for wanted in ("JobID", "Submit", "NNodes"):
        if wanted not in names:
            raise WorkloadError(f"{where}: expecting a field {wanted}, got {', '.join(names)[:80]}")
    if "Elapsed" not in names and not {"Start", "End"} <= set(names):
        raise WorkloadError(f"{where}: expecting a field Elapsed, or Start and End, got {', '.join(names)[:80]}")


def _values(where: str, fields: dict[str, str], reading: Reading) -> dict[str, int] | None:
    if "." in fields["JobID"]:
        return None
    match = _JOB.fullmatch(fields["JobID"])
    if match is None:
        raise WorkloadError(f"{where}: JobID: expecting a number, got {fields['JobID'][:40]!r}")
    nodes = whole(where, "NNodes", fields["NNodes"], 0)
    if nodes == 0:
        reading.drop("no nodes")
        return None
    submit = _moment(where, "Submit", fields["Submit"])
    if "Elapsed" in fields:
        run = _span(where, "Elapsed", fields["Elapsed"])
    elif fields["Start"] in UNLIMITED or fields["End"] in UNLIMITED:
        reading.drop("not ended")
        return None
    else:
        run = _moment(where, "End", fields["End"]) - _moment(where, "Start", fields["Start"])
    limit = fields.get("Timelimit", "")
    request = 0 if limit in UNLIMITED else _span(where, "Timelimit", limit)
    return {"number": int(match[1]), "submit": submit, "run": max(run, 0), "request": request, "nodes": nodes}


def _moment(where: str, word: str, text: str) -> int:
    """Seconds since 1970, of such or of 2014-08-01T12:00:00."""
    if text.isascii() and text.isdigit():
        return whole(where, word, text, 0)
    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return whole(where, word, str(int(moment.timestamp())), 0)
    except (ValueError, OverflowError) as error:
        if isinstance(error, WorkloadError):
            raise
        wanted = "a time such as 2014-08-01T12:00:00"
        raise WorkloadError(f"{where}: {word}: expecting {wanted}, got {text[:40]!r}") from None


def _span(where: str, word: str, text: str) -> int:
    """Seconds, of 1-02:03:04, 02:03:04 or 03:04."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise WorkloadError(f"{where}: {word}: expecting a time such as 1-02:03:04, got {text[:40]!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + seconds
