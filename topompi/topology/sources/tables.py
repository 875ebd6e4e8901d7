"""Reader of the forwarding tables that OpenSM, ``dump_fts`` or ``ibroute`` print, or OpenSM's ``opensm.fdbs`` has."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import SourceError
from ...inputs import InputFile, current_limits
from ..discovery import Discovery, Report
from ..fabric import IntArray
from ..routecheck import check_routes
from ..routes import Routes
from . import fdbs
from .infiniband import source_name
from .lft import HEADER, EntryParser, SwitchTable

__all__ = ["NAME", "read", "recognise"]

NAME = "OpenSM forwarding tables (opensm-lfts.dump, dump_fts, opensm.fdbs)"

_HEAD = re.compile(r"^[ \t]*Unicast lids \[\w+-\w+\] of switch ", re.M)
_FOOTER = re.compile(r"\s*(\d{1,9})\s+(?:valid )?lids dumped")
_ERROR = re.compile(r"(?:\S+: )?iberror: ")
MAX_PATHS = 128  # 2^7, because the LMC has three bits


def recognise(head: str) -> bool:
    """Whether the beginning of a text is that of forwarding tables in a known format."""
    return _HEAD.search(head) is not None or fdbs.recognise(head)


def read(texts: Sequence[InputFile], discovery: Discovery, report: Report) -> Routes:
    """Read the routes in forwarding tables, which are in one text for all switches or in several.

    Destinations are identified by port GUID, or by the LIDs of ``discovery`` if an entry has no GUID. Further LIDs of a
    port (LMC > 0) give alternative paths. A table that lists its last LID and then ends in ``ibroute``'s own error line
    is complete; the report gets a note on this line.

    :param texts: the texts of the tables.
    :param discovery: the fabric and the LIDs of its devices.
    :param report: receiver of problems, notes and progress.
    :raises SourceError: (a partial report only records it) if a table is truncated, damaged, missing or of an unknown
        switch, or an entry leads to a port without a link.
    :raises RouteError: (a partial report only records it) if a route loops or ends before its destination, see
        ``check_routes``.
    """
    reader = _Reader(discovery, report)
    for text in texts:
        reader.read(text)
    routes = reader.routes(source_name(texts))
    check_routes(routes, report)
    return routes


class _Reader:
    """A collector of the tables of all switches, as one row (switch, adapter, LID, link) per entry.

    :param discovery: the fabric and the LIDs of its devices.
    :param report: receiver of problems and progress.
    """

    def __init__(self, discovery: Discovery, report: Report) -> None:
        self.fabric, self.report = discovery.fabric, report
        self.parser = EntryParser(self.fabric.adapter_index, discovery.lids, report)
        self.links = self.fabric.links_by_port()
        self.places: dict[int, str] = {}
        self.parts: list[NDArray[np.int32]] = []

    def read(self, text: InputFile) -> None:
        """Read one text; the lines of a table are collected up to its end, then parsed together."""
        if fdbs.recognise(text.head()):
            for found in fdbs.read_tables(text, self.report):
                self._take(found)
            return
        table: SwitchTable | None = None
        skipping = False
        for number, line in text.lines():
            if line[:2] == "0x" and table is not None:
                table.numbers.append(number)
                table.lines.append(line)
            elif footer := _FOOTER.match(line):
                self._finish(table, int(footer[1]))
                table, skipping = None, False
            elif table is not None and _ERROR.match(line):
                table.error = line.strip()
            elif "Unicast lids" in line or line.startswith("Multicast mlids"):
                self._finish(table, None)
                table = self._begin(text.name, number, line)
                skipping = table is None
            elif line[:2] == "0x" and not skipping:
                self._problem(f"{text.name}:{number}", f"expecting a table's header before {line[:80]!r}")
                skipping = True
        self._finish(table, None)

    def _problem(self, place: str, message: str) -> None:
        self.report.problem(SourceError(f"{place}: {message}"))

    def _begin(self, text: str, number: int, line: str) -> SwitchTable | None:
        if match := HEADER.match(line):
            return SwitchTable.begin(text, number, match)
        if "Unicast" in line:
            wanted = "'Unicast lids [..] of switch .. guid 0x..'"
            self._problem(f"{text}:{number}", f"expecting {wanted}, got {line.strip()[:80]!r}")
        return None

    def _finish(self, table: SwitchTable | None, footer: int | None) -> None:
        if table is None:
            return
        table.check_footer(footer, self.report)
        self._take(table)

    def _take(self, table: SwitchTable) -> None:
        switch = self.fabric.switch_index.get(table.guid)
        if switch is None:
            self._problem(table.place(), f"{table}: no such switch in {self.fabric.name}")
        elif switch in self.places:
            self._problem(table.place(), f"{table} is there twice, also at {self.places[switch]}")
        else:
            self._add(table, switch)

    def _add(self, table: SwitchTable, switch: int) -> None:
        self.places[switch] = table.place()
        self.report.step("forwarding tables", len(self.places), self.fabric.num_switches)
        entries = self.parser.parse(table)
        by_port = self.links[switch]
        within = np.minimum(entries.port, len(by_port) - 1)
        links = np.where(entries.port < len(by_port), by_port[within], -1).astype(np.int32)
        dead = links < 0
        if dead.any():
            ports = ", ".join(map(str, np.unique(entries.port[dead])))
            message = f"has {dead.sum()} entries for adapters behind ports without a link (port {ports})"
            self._problem(table.place(int(entries.row[dead][0])), f"{table} {message}")
        columns = (np.full_like(links, switch), entries.destination, entries.lid, links)
        self.parts.append(np.stack(columns)[:, ~dead])

    def routes(self, name: str) -> Routes:
        """Make the routes of all tables that have been read.

        :param name: name of the source of the tables.
        """
        self._require_tables(name)
        fabric = self.fabric
        columns = np.concatenate([np.empty((4, 0), dtype=np.int32), *self.parts], axis=1)
        switch, adapter, path, link = self._with_paths(columns)
        last = np.zeros(fabric.num_adapters, dtype=np.int32)
        np.maximum.at(last, adapter, path)
        size = _block_size(last)
        shape = (int(size.max(initial=1)), fabric.num_switches, fabric.num_adapters)
        current_limits().check("routes", shape[0] * shape[1] * shape[2], name, SourceError)
        next_link = np.full(shape, -1, dtype=np.int32)
        next_link[path, switch, adapter] = link
        for number in range(1, len(next_link)):
            next_link[number][:, size <= number] = next_link[0][:, size <= number]
        return Routes(fabric, f"forwarding tables of {os.path.basename(name)}", next_link)

    def _with_paths(self, columns: NDArray[np.int32]) -> NDArray[np.int32]:
        """Replace LIDs by path numbers (of alternative routes) in the columns (switch, adapter, LID, link).

        The LIDs of a port are a block that is aligned to its size (InfiniBand Architecture Specification, volume 1,
        section 4.1.3). Therefore path = LID - base LID, and tables that contradict this are reported.
        """
        switch, adapter, lid, _ = columns
        base = np.full(self.fabric.num_adapters, np.iinfo(np.int32).max, dtype=np.int32)
        np.minimum.at(base, adapter, lid)
        path = lid - base[adapter]
        sound = (path < MAX_PATHS) & (base[adapter] % _block_size(path) == 0)
        self._report_moved(switch[~sound], adapter[~sound], lid[~sound], base)
        columns[2] = path
        return columns[:, sound]

    def _report_moved(self, switch: IntArray, adapter: IntArray, lid: IntArray, base: IntArray) -> None:
        """Report adapters that have different LIDs in different tables, because the LIDs were reassigned in between.

        :param switch: switch of each contradictory entry, shape (entries,).
        :param adapter: adapter of each contradictory entry, shape (entries,).
        :param lid: LID of each contradictory entry, shape (entries,).
        :param base: smallest LID of each adapter, shape (adapters,).
        """
        for number, row in zip(*np.unique(adapter, return_index=True), strict=True):
            message = f"adapter {self.fabric.adapter_ids[number]} has LID {lid[row]} here, but {base[number]} in"
            other = "another table: expecting tables of the same time"
            self._problem(self.places[int(switch[row])], f"{message} {other}")

    def _require_tables(self, name: str) -> None:
        missing = sorted(set(range(self.fabric.num_switches)) - set(self.places))
        if missing:
            some = ", ".join(self.fabric.describe_switch(switch) for switch in missing[:5])
            more = ", ..." if len(missing) > 5 else ""
            wanted = f"expecting forwarding tables of {self.fabric.num_switches} switches"
            self._problem(name, f"{wanted}, got none of {len(missing)}: {some}{more}")


def _block_size(last: IntArray) -> IntArray:
    """Number of LIDs, a power of two, in the smallest block that contains path number ``last``."""
    return 2 ** np.ceil(np.log2(last + 1)).astype(np.int32)
