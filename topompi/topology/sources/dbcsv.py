"""Reader of ibdiagnet's ``db_csv``: sections of comma-separated values for nodes, ports and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...errors import SourceError
from ...inputs import InputFile
from ...inputs.csvtext import csv_fields
from ..discovery import Discovery, Report
from ..fabric import infiniband_rate
from ..hostnaming import NamedPort
from .infiniband import Cabling, guid, numbers_fit, source_name

__all__ = ["NAME", "read", "recognise"]

NAME = "ibdiagnet's db_csv"

Row = dict[str, str]

_HEAD = re.compile(r"^START_[A-Z_0-9]+[ \t]*$", re.M)
_HEX = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)
# Codes of active widths and speeds in the section PORTS.
_WIDTHS = {"1": 1, "2": 4, "4": 8, "8": 12, "16": 2}
_SPEEDS = {
    "1": "SDR",
    "2": "DDR",
    "4": "QDR",
    "256": "FDR",
    "512": "EDR",
    "1024": "HDR",
    "2048": "NDR",
    "4096": "XDR",
    "65536": "FDR10",
}
_NODE, _SWITCH, _ROUTER = "1", "2", "3"


def recognise(head: str) -> bool:
    """Whether the text has a line ``START_`` and the name of a section."""
    return _HEAD.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of the sections NODES and LINKS, with rates and port GUIDs of PORTS if it is there.

    :param texts: the files.
    :param report: receiver of problems and progress.
    :raises SourceError: (a partial report only records it) if a row is damaged, or a link ends at a node that is not
        listed.
    """
    cabling = Cabling(source_name(texts), report)
    for text in texts:
        report.step(f"reading {text.name}")
        _Reader(text, cabling, report).read()
    return cabling.settle()


class _Reader:
    """The reader of one file.

    :param text: the file.
    :param cabling: collector of the fabric's parts.
    :param report: receiver of problems.
    """

    def __init__(self, text: InputFile, cabling: Cabling, report: Report) -> None:
        self.text, self.cabling, self.report = text, cabling, report
        self.nodes: dict[str, Row] = {}
        self.ports: dict[tuple[str, str], Row] = {}
        self.links: list[tuple[str, Row]] = []

    def read(self) -> None:
        for section, place, row in self._rows():
            try:
                if section == "NODES":
                    self._node(row, place)
                elif section == "PORTS":
                    self.ports[_guid(row, "nodeguid"), row.get("portnum", "")] = row
                else:
                    self.links.append((place, row))
            except SourceError as error:
                self.report.problem(SourceError(f"{place}: {error}"))
        for place, row in self.links:
            try:
                self._link(row, place)
            except SourceError as error:
                self.report.problem(SourceError(f"{place}: {error}"))

    def _rows(self) -> Iterator[tuple[str, str, Row]]:
        """Yield section, ``file:line`` and values by lower-case column name of each row of the sections needed."""
        section, columns = "", None
        for number, line in self.text.lines():
            word = line.strip()
            if word.startswith(("START_", "END_")):
                section, columns = word[6:] if word.startswith("START_") else "", None
            elif section in ("NODES", "PORTS", "LINKS") and word:
                place = f"{self.text.name}:{number}"
                values = [value.strip() for value in csv_fields(line, place, SourceError)]
                if columns is None:
                    columns = [value.lower() for value in values]
                else:
                    yield section, place, dict(zip(columns, values, strict=False))

    def _node(self, row: Row, place: str) -> None:
        identity = _guid(row, "nodeguid")
        if row.get("nodetype") not in (_NODE, _SWITCH, _ROUTER):
            raise SourceError(f"expecting NodeType 1, 2 or 3, got {row.get('nodetype', '')!r}")
        self.nodes[identity] = {**row, "place": place}
        if row["nodetype"] == _SWITCH:
            self.cabling.add_switch(identity, row.get("nodedesc", ""), place)
        elif _HEX.fullmatch(row.get("systemimageguid", "")):
            self.cabling.add_card(identity, _guid(row, "systemimageguid"))

    def _link(self, row: Row, place: str) -> None:
        numbers = [row.get(f"portnum{side}", "") for side in (1, 2)]
        if not all(number.isascii() and number.isdecimal() and len(number) < 10 for number in numbers):
            raise SourceError(f"expecting port numbers, got {', '.join(map(repr, numbers))}")
        if not numbers_fit(place, self.report, port=numbers[0], port_peer=numbers[1]):
            return
        ends = [(_guid(row, f"nodeguid{side}"), numbers[side - 1]) for side in (1, 2)]
        one, other = ((self._end(*end), int(end[1])) for end in ends)
        rate = next((self._rate(self.ports[end]) for end in ends if end in self.ports), float("nan"))
        self.cabling.add_link(one, other, rate, place)
        self.cabling.add_link(other, one, rate, place)

    def _end(self, node: str, port: str) -> str:
        row = self.nodes.get(node)
        if row is None:
            raise SourceError(f"expecting a node of the section NODES, got {node}")
        if row["nodetype"] == _SWITCH:
            return node
        own = self.ports.get((node, port), row if row.get("numports") == "1" else {}).get("portguid", "")
        identity = guid(own[2:]) if _HEX.fullmatch(own) else f"{node}:{port}"
        self.cabling.add_adapter(identity, NamedPort(row.get("nodedesc", ""), int(port), node, row["place"]), own=True)
        if row["nodetype"] == _ROUTER:
            self.cabling.ignore(identity)
        return identity

    def _rate(self, row: Row) -> float:
        width, speed = _WIDTHS.get(row.get("linkwidthactv", "")), _SPEEDS.get(row.get("linkspeedactv", ""))
        return infiniband_rate(f"{width}x{speed}") if width and speed else float("nan")


def _guid(row: Row, column: str) -> str:
    value = row.get(column, "")
    if not _HEX.fullmatch(value):
        raise SourceError(f"expecting a GUID as {column}, got {value!r}")
    return guid(value[2:])
