"""Reader of ibnetdiscover's default report: one section per node, one line per cabled port."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import SourceError
from ...inputs import InputFile
from ..discovery import Discovery, Report
from .infiniband import Cabling, NamedPort, guid, link_rate, numbers_fit, refuse_difference, source_name

__all__ = ["NAME", "read", "recognise"]

NAME = "ibnetdiscover"

# Every tab between fields is matched by \s*, because tabs get lost when reports are pasted into tickets.
_SECTION = re.compile(
    r'\s*(?P<type>Switch|Ca|Rt)\s*\d+\s*"[SHR]-(?P<guid>[0-9a-f]{1,16})"\s*#\s*"(?P<name>.*)"'
    r"(?:.*\bport\s*0\s*lid\s*(?P<lid>\d{1,9})\s*lmc\s*(?P<lmc>\d{1,9}))?"
)
# [1](own port GUID) "S-node GUID"[25](port GUID) # lid 1028 lmc 0 "name" lid 212 4xQDR; the first LID and the own GUID
# occur only in sections of adapters, [ext 3] occurs if the ports of a chassis have labels. Blanks are matched without
# backtracking (*+), because the blanks around an absent field could be divided in many ways.
_PORT = re.compile(
    r"\s*+\[(?P<port>\d{1,9})\](?:\[ext[^]]*\])?\s*+(?:\((?P<own>[0-9a-f]{1,16})\))?\s*+"
    r'"(?P<type>[SHR])-(?P<peer>[0-9a-f]{1,16})"\s*+\[(?P<peer_port>\d{1,9})\](?:\[ext[^]]*\])?\s*+'
    r"(?:\((?P<peer_guid>[0-9a-f]{1,16})\))?\s*+#\s*+(?:lid\s*+(?P<lid>\d{1,9})\s*+lmc\s*+(?P<lmc>\d{1,9})\s*+)?"
    r'"(?P<name>.*)"\s*+lid\s*+(?P<peer_lid>\d{1,9}?)\s*+(?:(?P<width>12|[1248])x|\?{1,3}x?)(?P<speed>[\w?]+)(?P<rest>.*)'
)
_IDENTITY = re.compile(r"\s*(vend|dev|sysimgg|switchg|cag|rtg)u?id\s*=\s*0x([0-9a-f]+)")
# Lines that only ibnetdiscover writes; if the patterns above do not match, a line of this form is damaged. A number in
# brackets may also be a process id in another program's output, but not within a section.
_OURS = re.compile(r'.*"[SHR]-[0-9a-f]|\s*(Switch|Ca|Rt)\s*\d+\s*("|$)')
_BRACKET = re.compile(r"\s*\[\d+(\]|$)")
_BLANKS_AND_LABELS = re.compile(r"\s+|\[ext [^]]*\]")
_HEAD = re.compile(r'^[ \t]*(# Topology file: generated|(Switch|Ca|Rt)\s*\d+\s*"[SHR]-|(switch|ca|rt)guid=0x)', re.M)


def recognise(head: str) -> bool:
    """Whether the beginning of a text is that of ibnetdiscover's default report."""
    return _HEAD.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of one or several reports.

    :param texts: the reports.
    :param report: receiver of problems and progress.
    :raises SourceError: (a partial report only records it) if a line is damaged, a device or host appears twice, the
        two sides of a cable disagree, or a switch has no section.
    """
    cabling = Cabling(source_name(texts), report)
    sections: dict[str, _Section] = {}
    for text in texts:
        report.step(f"reading {text.name}")
        _Reader(text, cabling, report, sections).read()
    return cabling.settle()


@dataclass
class _Section:
    """The lines about one device.

    :param type: kind of the device, ``Switch``, ``Ca`` or ``Rt``.
    :param guid: node GUID.
    :param name: description.
    :param place: ``file:line`` of its first line.
    :param first: an earlier section of the device that begins with the same words; None if there is none.
    :param words: the lines, without blanks and labels of ports.
    """

    type: str
    guid: str
    name: str
    place: str
    first: _Section | None = None
    words: list[str] = field(default_factory=list)


@dataclass
class _Reader:
    """The reader of one report.

    :param text: the report.
    :param cabling: collector of the fabric's parts.
    :param report: receiver of problems.
    :param sections: node GUID -> its first section, for all reports.
    :param section: the current section; None before the first section and after a damaged section header.
    :param system: system image GUID of the current section, empty if it has none.
    :param place: ``file:line`` of the current line.
    :param orphans: whether port lines without a section were reported already.
    """

    text: InputFile
    cabling: Cabling
    report: Report
    sections: dict[str, _Section]
    section: _Section | None = None
    system: str = ""
    place: str = field(default="", init=False)
    orphans: bool = False

    def read(self) -> None:
        for number, line in self.text.lines():
            self.place = f"{self.text.name}:{number}"
            refuse_difference(line, self.place)
            if match := _PORT.match(line):
                self._port(match)
            elif match := _SECTION.match(line):
                self._begin(match)
            elif match := _IDENTITY.match(line):
                self._identity(match[1], match[2])
            elif _OURS.match(line) or (self.section is not None and _BRACKET.match(line)):
                self._problem("a line of a switch, an adapter or one of their ports", line)
        self._end()

    def _problem(self, wanted: str, got: str) -> None:
        self.report.problem(SourceError(f"{self.place}: expecting {wanted}, got {got.strip()[:80]!r}"))

    def _end(self) -> None:
        """End the section; a second one of its device, which ``-g`` prints of a chassis, must repeat the first one."""
        section, self.section = self.section, None
        if section is not None and section.first is not None and section.words != section.first.words:
            message = f"expecting GUID {section.guid} once, as at {section.first.place}, got other ports"
            self.report.problem(SourceError(f"{section.place}: {message}"))

    def _identity(self, kind: str, digits: str) -> None:
        # This line ends the previous section, so that port lines are not counted for it if the next header is lost.
        self._end()
        self.orphans = False
        if kind == "sysimgg":
            self.system = guid(digits)
        elif kind == "vend":
            self.system = ""

    def _begin(self, match: re.Match[str]) -> None:
        node, name = guid(match["guid"]), match["name"].strip()
        self._end()
        first, words = self.sections.get(node), _words(match[0])
        if first is not None and first.words[0] != words:
            self._problem(f"GUID {node} once, as at {first.place}", match[0])
            first = None
        self.section = _Section(match["type"], node, name, self.place, first, [words])
        self.sections.setdefault(node, self.section)
        self.cabling.add_card(node, self.system)
        if match["type"] == "Switch":
            self.cabling.add_switch(node, name, self.place)
            if match["lid"] and numbers_fit(self.place, self.report, LMC=match["lmc"]):
                self.cabling.add_lids(node, int(match["lid"]), int(match["lmc"]))

    def _port(self, match: re.Match[str]) -> None:
        numbers = {"port": match["port"], "port_peer": match["peer_port"], "LMC": match["lmc"]}
        if not numbers_fit(self.place, self.report, **numbers):
            return
        section, number = self.section, int(match["port"])
        if section is None:
            if not self.orphans:
                self._problem("a Switch, Ca or Rt line before its ports", match[0])
            self.orphans = True  # one problem for all ports that follow
            return
        section.words.append(_words(match[0]))
        if (section.type != "Switch" and not match["own"]) or (match["type"] != "S" and not match["peer_guid"]):
            self._problem("the adapter's port GUID in parentheses", match[0])
            return
        source = section.guid if section.type == "Switch" else self._own_adapter(section, match)
        target = self._peer(match)
        # For FDR10 links, some versions print the rate that old software knows, and "FDR10" after it.
        speed = "FDR10" if "FDR10" in match["rest"] else match["speed"]
        # Some versions of ibnetdiscover print ?? in place of a width that they do not know, for example 2x.
        rate = link_rate(f"{match['width'] or '?'}x{speed}", self.place, self.report)
        self.cabling.add_link((source, number), (target, int(match["peer_port"])), rate, self.place)

    def _own_adapter(self, section: _Section, match: re.Match[str]) -> str:
        identity = guid(match["own"])
        adapter = NamedPort(section.name, int(match["port"]), section.guid, self.place)
        self.cabling.add_adapter(identity, adapter, own=True)
        if section.type == "Rt":
            self.cabling.ignore(identity)
        if match["lid"]:
            self.cabling.add_lids(identity, int(match["lid"]), int(match["lmc"]))
        return identity

    def _peer(self, match: re.Match[str]) -> str:
        name, node = match["name"].strip(), guid(match["peer"])
        identity = node if match["type"] == "S" else guid(match["peer_guid"])
        self.cabling.add_lids(identity, int(match["peer_lid"]))
        if match["type"] == "S":
            self.cabling.mention_switch(node, name, self.place)
        else:
            adapter = NamedPort(name, int(match["peer_port"]), node, self.place)
            self.cabling.add_adapter(identity, adapter, own=False)
        if match["type"] == "R":
            self.cabling.ignore(identity)
        return identity


def _words(line: str) -> str:
    """Return a line without blanks and without the labels of a chassis' ports, which do not stand everywhere."""
    return _BLANKS_AND_LABELS.sub("", line)
