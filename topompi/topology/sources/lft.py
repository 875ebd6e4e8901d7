"""Reader of one switch's linear forwarding table: header, entries, and a footer that has to agree with them."""

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
# The pattern includes the character after the GUID, so that a line truncated within the GUID does not match.
_DESTINATION = re.compile(r"portguid 0x([0-9a-f]{1,16})[:)]")
_NO_GUID = re.compile(r"|[:#] (?:\(?unknown node and type\)?|\(node info not available.*|\(path #\d+ out of \d+\))")
_PATH = re.compile(r"path #(\d{1,9}) out of")

INVALID_PORT = 255
# Codes in place of an adapter's index: another device has the LID; the entry names no device, only a LID; the LID is
# unassigned; the line is damaged.
OTHER, BY_LID, INVALID, DAMAGED = -1, -2, -3, -4


@dataclass
class SwitchTable:
    """The lines of one switch's forwarding table, collected while it is read.

    :param text: name of the text.
    :param line: line number of the header.
    :param lid: LID of the switch, empty if the header gives a path instead.
    :param guid: GUID of the switch.
    :param top: largest LID according to the header.
    :param numbers: line number of each entry.
    :param lines: text of each entry.
    :param error: error line that the dumping tool printed, empty if none.
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
        """Make the empty table that a header line announces.

        :param text: name of the text.
        :param number: line number of the header.
        :param header: match of ``HEADER``.
        """
        last = header["last"]
        top = int(last, 16) if last.startswith("0x") else int(last)
        return cls(text, number, header["lid"] or "", guid(header["guid"]), top)

    def __str__(self) -> str:
        lid = f"LID {self.lid} ({self.guid})" if self.lid else self.guid
        return f"the forwarding table of switch {lid}"

    def place(self, entry: int | None = None) -> str:
        """``file:line`` of the entry with a given index, or of the header if the index is None."""
        return f"{self.text}:{self.line if entry is None or not self.numbers else self.numbers[entry]}"

    def check_footer(self, footer: int | None, report: Report) -> None:
        """Report a problem if the footer is missing, or contradicts the header or the entries.

        The footers of ``dump_fts`` and ``ibroute`` contain the number of entries. The footer of OpenSM's own dump
        repeats the header's largest LID; there, only a missing footer reveals lost entries.

        ``ibroute`` asks the switch for 64 LIDs more than it needs, unless the last LID is a multiple of 64. If the
        switch does not have these LIDs, the tool fails after it has printed every entry. Therefore a table that lists
        the header's last LID and then contains the tool's error instead of a footer is complete.

        :param footer: number in the footer, None if it is missing.
        :param report: receiver of the problem, or of a note on a complete table with an error.
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
        """The LID of the last entry; -1 if there is no entry or the LID is damaged."""
        first = self.lines[-1].split(None, 1)[0] if self.lines else ""
        return int(first, 16) if _LID.fullmatch(first) else -1


@dataclass(frozen=True)
class Entries:
    """Parsed entries of one switch's table, as columns of shape (entries,).

    :param row: index of the entry's line in the table.
    :param lid: destination LID of the entry.
    :param port: output port of the switch for this LID.
    :param destination: index of the adapter that has the LID; if no adapter of the fabric has it, a negative code
        (``OTHER`` or below) of the reason.
    """

    row: IntArray
    lid: IntArray
    port: IntArray
    destination: IntArray

    def keep(self, chosen: NDArray[np.bool_]) -> Entries:
        """Select the entries for which the mask ``chosen`` is true."""
        return Entries(self.row[chosen], self.lid[chosen], self.port[chosen], self.destination[chosen])


class _Memo(dict[str, int]):
    """A cache of parsed strings, because the tables of all switches repeat the same few thousand strings."""

    def __init__(self, parse: Callable[[str], int]) -> None:
        self._parse = parse

    def __missing__(self, key: str) -> int:
        self[key] = value = self._parse(key)
        return value


class EntryParser:
    """The parser of the tables' entries.

    :param adapters: port GUID -> adapter index.
    :param lids: LID -> port GUID, for entries without a GUID.
    :param report: receiver of problems.
    """

    def __init__(self, adapters: Mapping[str, int], lids: Mapping[int, str], report: Report) -> None:
        self._adapters, self._lids, self._report = adapters, lids, report
        self._memos = (
            _Memo(lambda text: int(text, 16) if _LID.fullmatch(text) else -1),
            _Memo(lambda text: int(text) if _PORT.fullmatch(text) else -1),
            _Memo(self._destination),
        )

    def parse(self, table: SwitchTable) -> Entries:
        """Parse a table's lines; returns the valid entries for adapters of the fabric.

        Damaged lines, and LIDs with contradictory entries, are reported as problems and left out.
        """
        fields = [line.split(None, 2) for line in table.lines]
        if any(len(parts) < 3 for parts in fields):  # ibroute -n omits the third column
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
        """Remove the entries of LIDs that the table lists several times with different contents, and report them."""
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
