"""Ranks, nodes and run time of a program in the fields that ``sacct -P`` or ``sstat -P`` print."""

from __future__ import annotations

import re
from typing import Any

from ..errors import ColocationError

__all__ = ["ASK", "is_slurm", "slurm_facts"]

ASK = "sacct -P -j JOB -o JobID,NNodes,NTasks,ElapsedRaw"  # what gives these, for error messages

_TIME = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{2})(?:\.[0-9]{1,6})?")
_WANTED = {"NNodes": "nodes", "NTasks": "processes", "Elapsed": "seconds", "ElapsedRaw": "seconds"}


def is_slurm(text: str) -> bool:
    """Whether a text has fields of Slurm's jobs with a heading, with bars between them.

    :param text: the text.
    """
    head = text.partition("\n")[0].split("|")
    return "JobID" in head and len(head) > 1


def slurm_facts(name: str, text: str) -> dict[str, Any]:
    """Return the greatest ``nodes``, ``processes`` and ``seconds`` of the steps; empty if the text has no such fields.

    :param name: name of the text, for error messages.
    :param text: the text.
    :raises ColocationError: if the text has fields of Slurm, but none of these.
    """
    if not is_slurm(text):
        return {}
    head, *lines = text.strip().splitlines()
    fields, found = head.split("|"), dict[str, Any]()
    for number, line in enumerate(lines, 2):
        cells = line.split("|")
        if len(cells) != len(fields):
            raise ColocationError(f"{name}:{number}: expecting {len(fields)} fields, got {len(cells)}")
        for field, cell in zip(fields, cells, strict=True):
            if field in _WANTED and cell:
                value = _amount(cell, f"{name}:{number}: {field}")
                found[_WANTED[field]] = max(found.get(_WANTED[field], value), value)
    if not found:
        raise ColocationError(f"{name}: expecting one of {', '.join(_WANTED)}, got {head:.80}; {ASK} gives them")
    return found


def _amount(text: str, where: str) -> int | float:
    """Return a count, or the seconds of ``days-hours:minutes:seconds``."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    match = _TIME.fullmatch(text)
    if match is None:
        raise ColocationError(f"{where}: expecting a number or a time, got {text!r:.40}")
    days, hours, minutes, seconds = (int(one or 0) for one in match.groups())
    return float(((24 * days + hours) * 60 + minutes) * 60 + seconds)
