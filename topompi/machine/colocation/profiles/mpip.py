"""Reports of mpiP: the share of time in MPI, and the share that each call has of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from ..errors import ColocationError

__all__ = ["MpipReport", "is_mpip", "read_mpip"]

_SECTION = re.compile(r"@--- (.+?)\s*-*$")
_AGGREGATE = re.compile(r"\s*(?:Aggregate|\*)\s+(\S+)\s+(\S+)\s+(\S+)\s*$")
_MAX = re.compile(r"\s*(?:Max|[0-9]+)\s+([0-9.eE+-]+)\s+")
# Name, site, rank, count, and the largest, mean and smallest time in milliseconds.
_CALLSITE = re.compile(r"\s*(\w+)\s+(\d+)\s+(\d+|\*)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+\S+\s+\S+)?\s*$")
_ASSIGNED = re.compile(r"@ MPI Task Assignment\s*:\s*(\d+)\s+(\S+)")


@dataclass
class MpipReport:
    """The content of a report.

    :ivar mpi: share of the run time in MPI calls, in [0, 1].
    :ivar seconds: longest run time of a rank; NaN if it is unknown.
    :ivar processes: number of ranks; 0 if it is unknown.
    :ivar nodes: number of hosts; 0 if it is unknown.
    :ivar shares: share of the time in MPI of each call; empty if the report has no section of all callsites.
    """

    mpi: float = math.nan
    seconds: float = math.nan
    processes: int = 0
    nodes: int = 0
    shares: dict[str, float] = field(default_factory=dict)


def is_mpip(text: str) -> bool:
    """Whether a text is a report of mpiP.

    :param text: the text.
    """
    return re.search(r"^@(--- | mpiP)", text[:4096], re.MULTILINE) is not None


def read_mpip(name: str, text: str) -> MpipReport:
    """Read a report of mpiP.

    The share of time in MPI is that of the aggregate line, and the shares of calls come from the section of all
    callsites, a row per callsite and rank. The list of the top twenty does not suffice for them.

    :param name: name of the report, for error messages.
    :param text: content of the report.
    :raises ColocationError: if the aggregate line is missing or malformed, or a row of callsites is malformed.
    """
    report, section = MpipReport(), ""
    times: dict[str, float] = {}
    hosts: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if match := _SECTION.match(line):
            section = match[1].lower()
        elif match := _ASSIGNED.match(line):
            hosts[match[1]] = match[2]
        elif section.startswith(("task time statistics", "mpi time")):
            _time_row(report, line, where)
        elif section.startswith("callsite time statistics"):
            _callsite_row(times, line, where)
    if math.isnan(report.mpi):
        raise ColocationError(f"{name}: expecting the aggregate line of mpiP's task times, got none")
    whole = sum(times.values())
    report.shares = {call: time / whole for call, time in times.items()} if whole else {}
    report.processes, report.nodes = len(hosts), len(set(hosts.values()))
    return report


def _time_row(report: MpipReport, line: str, where: str) -> None:
    if match := _AGGREGATE.match(line):
        application, in_mpi, percent = (_number(word, where) for word in match.groups())
        if not (0 <= percent <= 100 and 0 <= in_mpi <= application):
            raise ColocationError(
                f"{where}: expecting times of MPI below those of the program, got {line.strip()!r:.80}"
            )
        report.mpi = percent / 100
    elif match := _MAX.match(line):
        seconds = _number(match[1], where)
        report.seconds = seconds if math.isnan(report.seconds) else max(seconds, report.seconds)


def _callsite_row(times: dict[str, float], line: str, where: str) -> None:
    if not line.strip() or set(line.strip()) == {"-"} or line.split()[0] == "Name":
        return
    match = _CALLSITE.match(line)
    if match is None:
        raise ColocationError(
            f"{where}: expecting name, site, rank, count and times of a callsite, got {line.strip()!r:.60}"
        )
    if match[3] != "*":  # the row of all ranks repeats the sums of the others
        times[match[1]] = times.get(match[1], 0.0) + _number(match[4], where) * _number(match[6], where)


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ColocationError(f"{where}: expecting a number from 0, got {text!r:.60}")
    return value
