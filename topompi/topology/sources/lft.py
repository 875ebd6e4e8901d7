"""One linear forwarding table: its header, its entries, and whether its footer agrees with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...errors import SourceError
from ..discovery import Report
from ..fabric import IntArray
from .infiniband import guid

__all__ = ["HEADER", "Entries", "EntryParser", "SwitchTable"]

HEADER = re.compile(
    r"\s*Unicast lids \[\w+-(?P<last>\d{1,9}|0x[0-9a-f]{1,8})\] of switch "
    r"(?:Lid (?P<lid>\d+)|DR path .*?) guid 0x(?P<guid>[0-9a-f]{1,16})(?!\w)"
)
_LID = re.compile(r"0x[0-9a-f]{1,4}")
_PORT = re.compile(r"\d{1,3}")
# The end of the GUID has to be seen, or the line may have been cut within it.
_DESTINATION = re.compile(r"portguid 0x([0-9a-f]{1,16})[:)]")
_NO_GUID = re.compile(r"|[:#] (?:\(?unknown node and type\)?|\(node info not available.*|\(path #\d+ out of \d+\))")
_PATH = re.compile(r"path #(\d{1,9}) out of")

INVALID_PORT = 255
# Destinations that are no adapter of the fabric.
OTHER, BY_LID, INVALID, DAMAGED = -1, -2, -3, -4


@dataclass
class SwitchTable:
    """One switch's table as it is read.

    :param text: name of the text.
    :param line: number of the header's line.
    :param lid: the switch's LID, empty where the header names a path instead.
    :param guid: the switch's GUID.
    :param top: largest LID that the header announces.
    :param numbers: line number of each entry.
    :param lines: line of each entry.
    :param error: the tool's own error line, empty where it printed none.
    """

    text: str
    line: int
    lid: str
    guid: str
    top: int
    numbers: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    error: str = ""

    @classmethod
    def begin(cls, text: str, number: int, header: re.Match[str]) -> SwitchTable:
        """The table a header announces.

        :param text: name of the text.
        :param number: line number of the header.
        :param header: what ``HEADER`` matched.
        """
        last = header["last"]
        top = int(last, 16) if last.startswith("0x") else int(last)
        return cls(text, number, header["lid"] or "", guid(header["guid"]), top)

    def __str__(self) -> str:
        lid = f"LID {self.lid} ({self.guid})" if self.lid else self.guid
        return f"the forwarding table of switch {lid}"

    def place(self, entry: int | None = None) -> str:
        """``file:line`` of an entry, or of the header."""
        return f"{self.text}:{self.line if entry is None or not self.numbers else self.numbers[entry]}"

    def check_footer(self, footer: int | None, report: Report) -> None:
        """Report a table whose footer is missing (None) or contradicts the header or the entries.

        ``dump_fts`` and ``ibroute`` count the entries there. OpenSM's own dump repeats the header's largest LID, so
        that only a missing footer tells of lost entries.

        ``ibroute`` asks the switch for 64 LIDs more than it needs (unless the last LID is a multiple of 64).
        A switch without such a block makes the tool fail when it has printed every entry: a table that lists the
        header's last LID and then has the tool's error instead of a footer is whole.
        """
        found = len(self.lines)
        if footer is None and self.error and self._last_lid() == self.top:
            report.note(f"{self.place(-1)}: {self} has all of its entries, then the tool's error {self.error!r}")
            return
        by_opensm = found > 0 and "#" in self.lines[0][:12]
        if footer is None:
            wanted = f"expecting a footer that ends its (at most {self.top}) LIDs"
            message = f"is truncated: {wanted}, got {found} entries and no footer"
        elif by_opensm and footer != self.top:
            message = f"is damaged: expecting {self.top} LIDs by its header, got {footer} by its footer"
        elif not by_opensm and footer != found:
            message = f"is damaged: expecting {footer} entries by its footer, got {found}"
        else:
            return
        report.problem(SourceError(f"{self.place(-1)}: {self} {message}"))

    def _last_lid(self) -> int:
        """The LID of the last entry; -1 where there is none or it is damaged."""
        first = self.lines[-1].split(None, 1)[0] if self.lines else ""
        return int(first, 16) if _LID.fullmatch(first) else -1


@dataclass(frozen=True)
class Entries:
    """Columns of a table, one row an entry, shape (entries,) each.

    :param row: index of the entry's line in the table.
    :param lid: LID that the entry is for.
    :param port: port that the switch sends it to.
    :param destination: index of the adapter that has the LID, or why there is none (``OTHER`` and below).
    """

    row: IntArray
    lid: IntArray
    port: IntArray
    destination: IntArray

    def keep(self, chosen: NDArray[np.bool_]) -> Entries:
        """The chosen rows."""
        return Entries(self.row[chosen], self.lid[chosen], self.port[chosen], self.destination[chosen])


class _Memo(dict[str, int]):
    """Parses each distinct string once: the tables of all switches repeat the same few thousand."""

    def __init__(self, parse: Callable[[str], int]) -> None:
        self._parse = parse

    def __missing__(self, key: str) -> int:
        self[key] = value = self._parse(key)
        return value


class EntryParser:
    """Parses the entries of tables.

    :param adapters: adapter index of each port GUID.
    :param lids: port GUID of each LID, for entries without one.
    :param report: takes the problems.
    """

    def __init__(self, adapters: Mapping[str, int], lids: Mapping[int, str], report: Report) -> None:
        self._adapters, self._lids, self._report = adapters, lids, report
        self._memos = (
            _Memo(lambda text: int(text, 16) if _LID.fullmatch(text) else -1),
            _Memo(lambda text: int(text) if _PORT.fullmatch(text) else -1),
            _Memo(self._destination),
        )

    def parse(self, table: SwitchTable) -> Entries:
        """The sound entries for adapters of the fabric; problems where a line or a LID contradicts itself."""
        fields = [line.split(None, 2) for line in table.lines]
        if any(len(parts) < 3 for parts in fields):  # ibroute -n prints no third column
            fields = [[*parts, "", ""][:3] for parts in fields]
        lid, port, destination = (
            np.array([memo[parts[column]] for parts in fields], dtype=np.int32)
            for column, memo in enumerate(self._memos)
        )
        for row in np.flatnonzero(destination == BY_LID).tolist():
            destination[row] = self._destination_of_lid(int(lid[row]), fields[row][2])
        damaged = (lid < 0) | (port < 0) | (destination == DAMAGED)
        for row in np.flatnonzero(damaged).tolist():
            message = f"expecting LID, port and destination, got {table.lines[row][:80]!r}"
            self._report.problem(SourceError(f"{table.place(row)}: {message}"))
        entries = Entries(np.arange(len(lid), dtype=np.int32), lid, port, destination)
        valid = entries.keep(~damaged & (port != INVALID_PORT) & (destination != INVALID))
        sound = self._without_clashes(table, valid)
        return sound.keep(sound.destination >= 0)

    def _destination(self, comment: str) -> int:
        if match := _DESTINATION.search(comment):
            return self._adapters.get(guid(match[1]), OTHER)
        if "illegal port" in comment:
            return INVALID
        return BY_LID if _NO_GUID.fullmatch(comment.strip()) else DAMAGED

    def _destination_of_lid(self, lid: int, comment: str) -> int:
        identity = self._lids.get(lid)
        if identity is None and (path := _PATH.search(comment)):
            identity = self._lids.get(lid - int(path[1]) + 1)
        return self._adapters.get(identity or "", OTHER)

    def _without_clashes(self, table: SwitchTable, entries: Entries) -> Entries:
        """Drop the entries of LIDs that a table lists several times with different contents."""
        if (np.diff(entries.lid) > 0).all():
            return entries
        distinct = np.unique(np.stack([entries.lid, entries.port, entries.destination]), axis=1)[0]
        lids, counts = np.unique(distinct, return_counts=True)
        clashing = lids[counts > 1]
        for lid in clashing.tolist():
            rows = entries.row[entries.lid == lid].tolist()
            message = f"{table} has LID {lid} more than once ({len(rows)} times), with different contents"
            self._report.problem(SourceError(f"{table.place(rows[1])}: {message}"))
        return entries.keep(~np.isin(entries.lid, clashing))
