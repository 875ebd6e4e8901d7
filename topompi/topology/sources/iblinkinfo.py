"""Reader of the lines of ``iblinkinfo -l``: one port of a switch or adapter per line, with its peer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from ...errors import SourceError
from ...inputs import InputFile
from ..discovery import Discovery, Report
from ..hostnaming import NamedPort
from .infiniband import Cabling, guid, link_rate, numbers_fit, refuse_difference, source_name

__all__ = ["NAME", "read", "recognise"]

NAME = "iblinkinfo -l"

_LINE = re.compile(
    r"\s*0x(?P<guid>[0-9a-f]{16})\s+\"(?P<name>.{0,256}?)\"\s+(?P<lid>\d{1,9})\s+(?P<port>\d{1,9})\[[^]]*\]\s+"
    r"==\((?P<state>.{0,250}?)\)==>\s+(?:(?:0x(?P<peer>[0-9a-f]{16})\s+(?P<peer_lid>\d{1,9})\s+(?P<peer_port>\d{1,9}))?"
    r"\s*\[[^]]*\]\s+\"(?P<peer_name>.{0,256}?)\"\s*\(.*|\"Port not available\"\s*)"
)
_OURS = re.compile(r"\s*0x[0-9a-f]{16}\s+\".*==\(")
_SPEED = re.compile(r"\s*(?P<width>\d{1,2})X\s+(?P<speed>[0-9.]{1,12}) Gbps(?P<rest>.*)")
# Signalling rate of one lane in Gb/s -> name.
_LANES = {
    2.5: "SDR",
    5.0: "DDR",
    10.0: "QDR",
    10.3125: "FDR10",
    14.0625: "FDR",
    25.78125: "EDR",
    53.125: "HDR",
    106.25: "NDR",
    212.5: "XDR",
}
_HEAD = re.compile(r"^[ \t]*0x[0-9a-f]{16}[ \t]+\".{0,256}\"[ \t]+\d+[ \t]+\d+\[.{0,9}\][ \t]+==\(", re.M)


def recognise(head: str) -> bool:
    """Whether a line of the text has the form of ``iblinkinfo -l``."""
    return _HEAD.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of one or several reports.

    A device with lines of several ports is a switch, because a line names an adapter by the GUID of its port; a device
    with one port is a switch if its peer is none.

    :param texts: the reports.
    :param report: receiver of problems and progress.
    :raises SourceError: (a partial report only records it) if a line is damaged, or the two sides of a cable disagree.
    """
    cabling = Cabling(source_name(texts), report)
    found = [one for text in texts for one in _lines(text, report)]
    ports: dict[str, set[str]] = defaultdict(set)
    for match, _ in found:
        ports[match["guid"]].add(match["port"])
    switches = {device for device, some in ports.items() if len(some) > 1}
    switches |= {match["guid"] for match, _ in found if match["peer"] and match["peer"] not in ports}
    for match, place in found:
        _add(match, place, switches, cabling, report)
    return cabling.settle()


def _lines(text: InputFile, report: Report) -> list[tuple[re.Match[str], str]]:
    report.step(f"reading {text.name}")
    found = []
    for number, line in text.lines():
        place = f"{text.name}:{number}"
        refuse_difference(line, place)
        if match := _LINE.fullmatch(line):
            if numbers_fit(place, report, port=match["port"], port_peer=match["peer_port"]):
                found.append((match, place))
        elif _OURS.match(line):
            report.problem(SourceError(f"{place}: expecting a port, its rate and its peer, got {line.strip()[:80]!r}"))
    return found


def _add(match: re.Match[str], place: str, switches: set[str], cabling: Cabling, report: Report) -> None:
    own, port = guid(match["guid"]), int(match["port"])
    if match["guid"] in switches:
        cabling.add_switch(own, match["name"].strip(), place)
    if match["peer"] is None:
        return
    peer, peer_port = guid(match["peer"]), int(match["peer_port"])
    if match["guid"] not in switches:
        cabling.add_adapter(own, NamedPort(match["name"].strip(), port, own, place), own=True)
    if match["peer"] in switches:
        cabling.mention_switch(peer, match["peer_name"].strip(), place)
    else:
        cabling.add_adapter(peer, NamedPort(match["peer_name"].strip(), peer_port, peer, place), own=False)
    cabling.add_lids(own, int(match["lid"]))
    cabling.add_lids(peer, int(match["peer_lid"]))
    cabling.add_link((own, port), (peer, peer_port), _rate(match["state"], place, report), place)


def _rate(state: str, place: str, report: Report) -> float:
    """The bandwidth in bytes/s that the text between the arrows gives; NaN if it gives none."""
    match = _SPEED.match(state)
    if match is None:
        return float("nan")
    try:
        speed = "FDR10" if "FDR10" in match["rest"] else _LANES.get(float(match["speed"]), match["speed"])
    except ValueError:
        speed = match["speed"]
    return link_rate(f"{int(match['width'])}x{speed}", place, report)
