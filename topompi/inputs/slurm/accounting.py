"""Parsing of the words of ``sacct``: numbers of jobs, times, durations, counts."""

from __future__ import annotations

import datetime
import re

__all__ = ["array_tasks", "count_of", "is_cut", "is_unknown", "job_number", "moment", "span"]

# Words that Slurm writes in place of a time or a duration; a table may cut a word and end it with a plus.
_UNKNOWN = ("unlimited", "partition_limit", "unknown", "none", "invalid", "n/a", "(null)")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,2})(?::([0-9]{1,2}))?")
_SPAN = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,8}):)?([0-9]{1,8}):([0-9]{1,2})(?:\.[0-9]+)?")
_JOB = re.compile(r"([0-9]{1,15})(?:_[0-9]+|\+[0-9]+|_\[.*)?")
_WAITING = re.compile(r"[0-9]{1,15}_\[([0-9,:-]{1,100000})(?:%[0-9]+)?\]")
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?")
_COUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGTP])")


def is_unknown(text: str) -> bool:
    """Return whether a word, or its beginning with a plus, stands for an unknown or unlimited time or duration."""
    word = text.lower()
    return not word or word in _UNKNOWN or (len(word) > 1 and word[-1] == "+" and _begins_one(word[:-1]))


def _begins_one(word: str) -> bool:
    return any(one.startswith(word) for one in _UNKNOWN)


def is_cut(text: str) -> bool:
    """Return whether Slurm cut the list of array tasks in a JobID, as ``700_[1,2...]`` or, in a table, ``700_[1,+``."""
    return "_[" in text and ("..." in text or not text.endswith("]"))


def job_number(text: str) -> int | None:
    """Return the number of the job, array or pack that a JobID names; None if it is malformed."""
    match = _JOB.fullmatch(text)
    return None if match is None else int(match[1])


def array_tasks(text: str) -> int:
    """Count the array tasks that a JobID such as ``700_[3-10:2,12%4]`` stands for; 1 for a JobID without a list."""
    match = _WAITING.fullmatch(text)
    parts = [_TASKS.fullmatch(part) for part in match[1].split(",")] if match else []
    if not parts or None in parts:
        return 1
    return max(1, sum((int(one[2] or one[1]) - int(one[1])) // int(one[3] or 1) + 1 for one in parts if one))


def count_of(text: str) -> str:
    """Write a count with one of Slurm's units of 1,024 (``1.50K``) as a whole number, rounded; return others as is."""
    match = None if text.isdigit() else _COUNT.fullmatch(text)
    return str(round(float(match[1]) * 1024 ** (1 + "KMGTP".index(match[2])))) if match else text


def moment(text: str) -> int | None:
    """Parse a time such as ``2014-08-01T12:00:00``, in UTC if it has no zone, into seconds since 1970; else None."""
    try:
        found = datetime.datetime.fromisoformat(text)
        return int((found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def span(text: str) -> int | None:
    """Parse a duration such as ``1-02:03:04`` (days first), ``1-02:03``, ``1-02``, ``02:03:04``, ``03:04``; else None.

    :returns: seconds. The number after the days is hours, as in Slurm's time limits: ``1-02`` is a day and two hours.
    """
    if "-" in text and (match := _DAYS.fullmatch(text)):
        return 86400 * int(match[1]) + 3600 * int(match[2]) + 60 * int(match[3] or 0)
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + seconds
