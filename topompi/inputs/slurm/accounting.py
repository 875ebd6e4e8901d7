"""Parsing of the output of ``sacct -P``, a line of field names, then one job or step per line, separated by bars."""

from __future__ import annotations

import datetime
import re

__all__ = ["UNKNOWN", "job_number", "moment", "span", "words_of"]

UNKNOWN = ("", "UNLIMITED", "Partition_Limit", "Unknown", "None")  # words in place of a time or a duration
_SPAN = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,8}):)?([0-9]{1,8}):([0-9]{1,2})(?:\.[0-9]+)?")
_JOB = re.compile(r"([0-9]{1,15})(?:_[0-9]+|\+[0-9]+|_\[.*\])?")


def words_of(line: str) -> list[str]:
    """Split a line of ``sacct -P`` into its fields."""
    return [word.strip() for word in line.split("|")]


def job_number(text: str) -> int | None:
    """Return the number of the job, array or pack that a JobID names; None if it is malformed."""
    match = _JOB.fullmatch(text)
    return None if match is None else int(match[1])


def moment(text: str) -> int | None:
    """Parse a time such as ``2014-08-01T12:00:00``, in UTC if it has no zone, into seconds since 1970; else None."""
    try:
        found = datetime.datetime.fromisoformat(text)
        return int((found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def span(text: str) -> int | None:
    """Parse a duration such as ``1-02:03:04`` (days first), ``02:03:04`` or ``03:04`` into seconds; else None."""
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + seconds
