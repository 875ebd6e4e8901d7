"""Reader of ibnetdiscover's port report (``-p`` or ``-s -p``), one line per port, the form that netloc stores."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...errors import SourceError
from ...inputs import InputFile
from ..discovery import Discovery, Report
from .infiniband import Cabling, NamedPort, guid, link_rate, numbers_fit, source_name

__all__ = ["NAME", "read", "recognise"]

NAME = "ibnetdiscover -p"

# Names are limited to the 64 bytes of a node description, because in a line full of quotes a name could end at any of
# them, and the search would take long.
_PORT = re.compile(
    r"\s*(?P<type>CA|SW|RT)\s+(?P<lid>\d{1,9})\s+(?P<port>\d{1,9})\s+0x(?P<guid>[0-9a-f]{16})\s+(?P<width>\d+x|\?+x?)\s+(?P<speed>\S+)"
    r"(?:\s+-\s+(?P<peer_type>CA|SW|RT)\s+(?P<peer_lid>\d{1,9})\s+(?P<peer_port>\d{1,9})\s+0x(?P<peer>[0-9a-f]{16})"
    r"\s+\(\s*'(?P<name>.{0,256})'\s+-\s+'(?P<peer_name>.{0,256})'\s*\)|\s+'(?P<idle_name>.{0,256})')\s*"
)
_OURS = re.compile(r"\s*(CA|SW|RT)\s+\d+(\s|$)")
_HEAD = re.compile(
    r"^[ \t]*((CA|SW|RT)\s+\d+\s+\d+\s+0x[0-9a-f]{16}\s|DR path slid .* -> (new|known) .*\{[0-9a-f]{16}\} port)",
    re.M,
)


def recognise(head: str) -> bool:
    """Whether the beginning of a text is that of a port report, or of the search log that ``-s`` prints before it."""
    return _HEAD.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of one or several port reports; several reports are subnets of one fabric.

    :param texts: the reports.
    :param report: receiver of problems and progress.
    :raises SourceError: (a partial report only records it) if a line is damaged, a host appears twice, the two sides of
        a cable disagree, or a switch has no line of its own.
    """
    cabling = Cabling(source_name(texts), report)
    for text in texts:
        report.step(f"reading {text.name}")
        _read_text(text, cabling, report)
    return cabling.settle()


def _read_text(text: InputFile, cabling: Cabling, report: Report) -> None:
    found = False
    for number, line in text.lines():
        place = f"{text.name}:{number}"
        if match := _PORT.fullmatch(line):
            found = True
            _port(match, place, cabling, report)
        elif _OURS.match(line):
            wanted = "expecting a port, its rate and its peer or description"
            report.problem(SourceError(f"{place}: {wanted}, got {line.strip()[:80]!r}"))
    if not found:
        report.problem(SourceError(f"{text.name}: expecting port lines as ibnetdiscover -p prints them, got none"))


def _port(match: re.Match[str], place: str, cabling: Cabling, report: Report) -> None:
    if not numbers_fit(place, report, port=match["port"], port_peer=match["peer_port"]):
        return
    identity, number = guid(match["guid"]), int(match["port"])
    name = match["name"] or match["idle_name"] or ""
    if match["type"] == "SW":
        cabling.add_switch(identity, name.strip(), place)
    cabling.add_lids(identity, int(match["lid"]))
    if match["peer"] is None:
        return
    peer, peer_port = guid(match["peer"]), int(match["peer_port"])
    cabling.add_lids(peer, int(match["peer_lid"]))
    _end(match["type"], identity, NamedPort(name.strip(), number, identity, place), cabling, own=True)
    _end(
        match["peer_type"],
        peer,
        NamedPort(match["peer_name"].strip(), peer_port, peer, place),
        cabling,
        own=False,
    )
    rate = link_rate(f"{match['width']}{match['speed']}", place, report)
    cabling.add_link((identity, number), (peer, peer_port), rate, place)


def _end(kind: str, identity: str, seen: NamedPort, cabling: Cabling, *, own: bool) -> None:
    if kind == "SW":
        cabling.mention_switch(identity, seen.description, seen.place)
        return
    cabling.add_adapter(identity, seen, own=own)
    if kind == "RT":
        cabling.ignore(identity)
