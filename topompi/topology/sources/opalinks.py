"""Reader of the links of Omni-Path that ``opaextractsellinks`` writes: both ends of a cable per line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import nan

from ...errors import SourceError
from ...inputs import InputFile
from ..discovery import Discovery, Report
from ..hostnaming import NamedPort
from .infiniband import Cabling, guid, numbers_fit, source_name

__all__ = ["NAME", "read", "recognise"]

NAME = "opaextractsellinks"

_END = r"(?:0x)?(?P<guid{0}>[0-9a-f]{{16}});(?P<port{0}>\d{{1,9}});(?P<type{0}>FI|SW);(?P<name{0}>.{{0,256}}?)"
_LINE = re.compile(rf"\s*{_END.format(1)};{_END.format(2)}\s*", re.IGNORECASE)
_HEAD = re.compile(r"^[ \t]*0x[0-9a-f]{16};\d+;(FI|SW);", re.M | re.IGNORECASE)


def recognise(head: str) -> bool:
    """Whether a line of the text begins with a GUID, a port, a kind of device and semicolons."""
    return _HEAD.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of one or several lists of links, which name no rates.

    :param texts: the lists.
    :param report: receiver of problems and progress.
    :raises SourceError: (a partial report only records it) if a line is damaged, or a port has two cables.
    """
    cabling = Cabling(source_name(texts), report)
    for text in texts:
        report.step(f"reading {text.name}")
        for number, line in text.lines():
            place = f"{text.name}:{number}"
            if match := _LINE.fullmatch(line):
                if numbers_fit(place, report, port=match["port1"], port_peer=match["port2"]):
                    ends = [_end(match, side, place, cabling) for side in (1, 2)]
                    cabling.add_link(ends[0], ends[1], nan, place)
                    cabling.add_link(ends[1], ends[0], nan, place)
            elif _HEAD.match(line):
                wanted = "expecting GUID;PORT;FI or SW;NAME of two devices"
                report.problem(SourceError(f"{place}: {wanted}, got {line.strip()[:80]!r}"))
    return cabling.settle()


def _end(match: re.Match[str], side: int, place: str, cabling: Cabling) -> tuple[str, int]:
    identity, port, name = guid(match[f"guid{side}"]), int(match[f"port{side}"]), match[f"name{side}"].strip()
    if match[f"type{side}"].upper() == "SW":
        cabling.add_switch(identity, name, place)
    else:
        cabling.add_adapter(identity, NamedPort(name, port, identity, place), own=True)
    return identity, port
