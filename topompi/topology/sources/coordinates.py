"""Reader of MPICH's coordinates file (``MPIR_CVAR_COORDINATES_FILE``): group, switch and port of each rank."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import SourceError
from ...inputs import InputFile
from ..discovery import Discovery, Report
from .groups import grouped_fabric

__all__ = ["NAME", "read", "recognise"]

NAME = "MPICH coordinates"

_LINE = re.compile(r"\s*([0-9]{1,9})\s*:\s*(-?[0-9]{1,9})\s+(-?[0-9]{1,9})\s+(-?[0-9]{1,9})\s*")
_WANTED = "'RANK: GROUP SWITCH PORT' with numbers of at most 9 digits"


class _Seat(NamedTuple):
    group: int
    switch: int
    port: int
    place: str

    @property
    def leaf(self) -> str:
        return f"g{self.group}.s{self.switch}"


def recognise(head: str) -> bool:
    """Whether one of the first two non-blank lines has the form ``RANK: GROUP SWITCH PORT``, all decimal numbers."""
    lines = [line for line in head.splitlines() if line.strip()]
    return any(_LINE.fullmatch(line) for line in lines[:2])


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric that the ranks' coordinates describe, and the host of each rank.

    The first line is a heading and skipped, as in MPICH; if it describes a rank it is read, because files that
    ``MPIR_CVAR_COORDINATES_DUMP`` writes have no heading. Leaf switches are ``g<group>.s<switch>``, each group has one
    switch above them, and `grouped_fabric` joins the groups. Ranks at the same known port share the host
    ``g<group>.s<switch>.p<port>``; with port -1 (unknown) each rank is on a host ``rank<rank>`` of its own.

    :param texts: the coordinates files.
    :param report: receiver of problems.
    :raises SourceError: with file and line, for a malformed line and for a missing or repeated rank. If the report is
        partial and ranks are missing, the result places no ranks.
    """
    seats: dict[int, _Seat] = {}
    for text in texts:
        _read_seats(text, seats, report)
    if not seats:
        raise SourceError(f"{texts[0].name}: expecting {_WANTED}, got none")
    complete = _check_ranks(seats, report)
    hosts = {rank: _host(rank, seats[rank]) for rank in sorted(seats)}
    leaf_of = {host: seats[rank].leaf for rank, host in hosts.items()}
    group_of = {seats[rank].leaf: f"g{seats[rank].group}" for rank in hosts}
    fabric = grouped_fabric(texts[0].name, leaf_of, group_of)
    return Discovery(fabric, rank_hosts=tuple(hosts.values()) if complete else None)


def _read_seats(text: InputFile, seats: dict[int, _Seat], report: Report) -> None:
    for number, line in text.lines():
        match = _LINE.fullmatch(line)
        place = f"{text.name}:{number}"
        if not match:
            if number > 1 and line.strip():
                report.problem(SourceError(f"{place}: expecting {_WANTED}, got {line[:60]!r}"))
            continue
        rank, group, switch, port = map(int, match.groups())
        if min(group, switch, port + 1) < 0:
            wanted = "a group and a switch of at least 0 and a port of at least -1"
            report.problem(SourceError(f"{place}: expecting {wanted}, got {group} {switch} {port}"))
        elif rank in seats:
            report.problem(SourceError(f"{place}: rank {rank} appears twice, first at {seats[rank].place}"))
        else:
            seats[rank] = _Seat(group, switch, port, place)


def _check_ranks(seats: Mapping[int, _Seat], report: Report) -> bool:
    """Whether the ranks are 0, 1, 2, ... without a gap; the first gap is reported as a problem."""
    ordered = sorted(seats)
    gap = next((rank for rank, listed in enumerate(ordered) if rank != listed), None)
    if gap is not None:
        after = ordered[gap]
        report.problem(SourceError(f"{seats[after].place}: rank {after} is listed, but rank {gap} is missing"))
    return gap is None


def _host(rank: int, seat: _Seat) -> str:
    return f"rank{rank}" if seat.port < 0 else f"{seat.leaf}.p{seat.port}"
