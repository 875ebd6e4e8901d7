"""A reader of the output of Slurm's ``sacct -P``: a line of field names, then one line per job, separated by bars.

Required are the fields JobID, Submit, NNodes, and Elapsed or both Start and End. Timelimit, User and the fields in
``FREE`` are read if present. Steps of jobs, whose JobID contains a dot, are skipped.
"""

from __future__ import annotations

from ...inputs.slurm.accounting import UNKNOWN, job_number, moment, span, words_of
from ..errors import WorkloadError
from .columns import Value, gather
from .text import Source, lines, open_log, whole
from .workload import Reading, Workload

__all__ = ["read_sacct"]

FREE = {"User": "user_name", "Account": "account", "Partition": "partition", "QOS": "class", "JobName": "program"}


def read_sacct(path: Source, partial: bool = False) -> Workload:
    """Read the jobs that have run; times without a time zone are taken as UTC.

    :param path: path of the output of ``sacct -P`` (``--parsable2``), plain or packed.
    :param partial: whether wrong lines are skipped and counted, instead of raising an error.
    :raises WorkloadError: if the file is malformed; the message names file, line and field.
    """
    log, reading, users = open_log(path), Reading(partial), dict[str, int]()
    rows = ((f"{log.name}: line {number}", line) for number, line in lines(log))
    where, first = next(rows)
    names = words_of(first)
    _check_names(where, names)

    def values(row: tuple[str, str]) -> dict[str, int] | None:
        where, words = row[0], words_of(row[1])
        if words == [""]:
            return None
        if len(words) != len(names):
            raise WorkloadError(f"{where}: expecting {len(names)} fields, got {len(words)}")
        fields = dict(zip(names, words, strict=True))
        found = _values(where, fields, reading)
        user = fields.get("User", "")
        if found is not None:
            found["user"] = users.setdefault(user, len(users)) if user else -1
        return found

    return gather(log.name, rows, values, reading, further=lambda row: _further(row[0], names, words_of(row[1])))


def _check_names(where: str, names: list[str]) -> None:
    for wanted in ("JobID", "Submit", "NNodes"):
        if wanted not in names:
            raise WorkloadError(f"{where}: expecting a field {wanted}, got {', '.join(names)[:80]}")
    if "Elapsed" not in names and not {"Start", "End"} <= set(names):
        raise WorkloadError(f"{where}: expecting a field Elapsed, or Start and End, got {', '.join(names)[:80]}")


def _values(where: str, fields: dict[str, str], reading: Reading) -> dict[str, int] | None:
    if "." in fields["JobID"]:
        return None
    number = job_number(fields["JobID"])
    if number is None:
        raise WorkloadError(f"{where}: JobID: expecting a number, got {fields['JobID'][:40]!r}")
    nodes = whole(where, "NNodes", fields["NNodes"], 0)
    if nodes == 0:
        reading.drop("no nodes")
        return None
    submit = _moment(where, "Submit", fields["Submit"])
    if "Elapsed" in fields:
        run = _span(where, "Elapsed", fields["Elapsed"])
    elif fields["Start"] in UNKNOWN or fields["End"] in UNKNOWN:
        reading.drop("not ended")
        return None
    else:
        run = _moment(where, "End", fields["End"]) - _moment(where, "Start", fields["Start"])
    limit = fields.get("Timelimit", "")
    request = 0 if limit in UNKNOWN else _span(where, "Timelimit", limit)
    return {"number": number, "submit": submit, "run": max(run, 0), "request": request, "nodes": nodes}


def _further(where: str, names: list[str], words: list[str]) -> dict[str, Value]:
    fields = dict(zip(names, words, strict=True))
    found: dict[str, Value] = {word: fields[field] for field, word in FREE.items() if field in fields}
    slots = fields.get("AllocCPUS", "")
    return found | ({"slots": whole(where, "AllocCPUS", slots, 0)} if slots else {})


def _moment(where: str, word: str, text: str) -> int:
    """Return seconds since 1970, from a number of seconds or a time in the form 2014-08-01T12:00:00."""
    found = text if text.isascii() and text.isdigit() else moment(text)
    if found is None:
        wanted = "a time such as 2014-08-01T12:00:00"
        raise WorkloadError(f"{where}: {word}: expecting {wanted}, got {text[:40]!r}")
    return whole(where, word, str(found), 0)


def _span(where: str, word: str, text: str) -> int:
    """Return the seconds of a duration in the form 1-02:03:04 (days first), 02:03:04 or 03:04."""
    found = span(text)
    if found is None:
        raise WorkloadError(f"{where}: {word}: expecting a time such as 1-02:03:04, got {text[:40]!r}")
    return found
