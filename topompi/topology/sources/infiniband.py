"""Construction of a fabric from ports and cables, the common part of the readers of InfiniBand reports."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan

from ...errors import SourceError
from ...inputs import InputFile
from ..builder import FabricBuilder
from ..discovery import Discovery, Report
from ..fabric import Fabric, infiniband_rate
from ..hostnaming import NO_GUID, NamedAdapter, NamedPort, repeated

__all__ = ["Cabling", "End", "NamedPort", "guid", "link_rate", "numbers_fit", "refuse_difference", "source_name"]

# End of a link: (node GUID, port number) at a switch, (port GUID, port number) at an adapter.
End = tuple[str, int]

# Descriptions of SHARP's aggregation nodes, which are no hosts: they are parts of switch chips, although reports list
# them as channel adapters.
_SWITCH_INTERNAL = "Aggregation Node"


_DIFFERENCE = re.compile(r"[<>] (0x[0-9a-f]{16}\s|\w{3,10}id=0x|(Switch|Ca|Rt)\s*\d|\[\d)")


def guid(digits: str) -> str:
    """Write a GUID, given by its hexadecimal digits, in the spelling of a fabric's ids."""
    return f"0x{int(digits, 16):016x}"


def refuse_difference(line: str, place: str) -> None:
    """Raise an error if a line begins as those in which two fabrics differ (``ibnetdiscover --diff``).

    :param line: the line.
    :param place: place of the line, ``file:line``.
    :raises SourceError: also if the report is partial, because the other lines are no fabric.
    """
    if _DIFFERENCE.match(line):
        raise SourceError(f"{place}: expecting the report of one fabric, got the differences of two (--diff)")


def source_name(texts: Sequence[InputFile]) -> str:
    """Make one name for several texts: the path that they have in common."""
    names = [text.name for text in texts]
    return os.path.commonpath(names) if len(names) > 1 else names[0]


def link_rate(name: str, place: str, report: Report) -> float:
    """Convert a rate's name, for example ``4xQDR``, to bytes/s; NaN if unknown. A truncated name is a problem.

    :param name: rate in the report's spelling.
    :param place: place of the name, ``file:line``.
    :param report: receiver of problems.
    """
    rate = infiniband_rate(name)
    if isnan(rate) and "?" not in name and "undefined" not in name:
        report.problem(SourceError(f"{place}: expecting a link rate such as 4xQDR, got {name!r}"))
    return rate


# Largest values, because port numbers have eight bits, and the LMC three (InfiniBand Architecture Specification, volume
# 1, section 4.1.3).
_LARGEST = {"port": 255, "LMC": 7}


def numbers_fit(place: str, report: Report, **numbers: str | None) -> bool:
    """Check that numbers are within InfiniBand's ranges; if not, report a problem and return False.

    :param place: place of the numbers, ``file:line``.
    :param report: receiver of problems.
    :param numbers: decimal digits of ``port``, ``port_peer`` or ``LMC``, by these names; None for a number that is
        absent.
    """
    for name, digits in numbers.items():
        kind = name.partition("_")[0]
        if digits is not None and int(digits) > _LARGEST[kind]:
            report.problem(SourceError(f"{place}: expecting {kind} numbers up to {_LARGEST[kind]}, got {int(digits)}"))
            return False
    return True


@dataclass(frozen=True)
class _Link:
    target: End
    rate: float
    place: str


@dataclass
class Cabling:
    """A collector that takes switches, adapters and links in any order; `settle` makes a fabric of them.

    :param name: name of the fabric.
    :param report: receiver of problems.
    :ivar naming: ways by which the hosts were found, in words, after `settle`.
    :ivar devices: device name of adapters, by port GUID, after `settle`.
    """

    name: str
    report: Report
    _switches: dict[str, tuple[str, str]] = field(default_factory=dict)
    _mentioned: dict[str, tuple[str, str]] = field(default_factory=dict)
    _adapters: dict[str, NamedPort] = field(default_factory=dict)
    _own: set[str] = field(default_factory=set)
    _ignored: set[str] = field(default_factory=set)
    _links: dict[End, _Link] = field(default_factory=dict)
    _lids: dict[int, str] = field(default_factory=dict)
    _shared_lids: set[int] = field(default_factory=set)
    _cards: dict[str, str] = field(default_factory=dict)
    naming: str = field(default="", init=False)
    devices: dict[str, str] = field(default_factory=dict, init=False)

    def add_switch(self, identity: str, name: str, place: str) -> None:
        """Add a switch from its own entry in the report.

        :param identity: node GUID.
        :param name: display name.
        :param place: place of the entry, ``file:line``.
        """
        self._switches.setdefault(identity, (name, place))

    def mention_switch(self, identity: str, name: str, place: str) -> None:
        """Record a switch that a report names at the other end of a cable; the report must have its own entry, too.

        :param identity: node GUID.
        :param name: display name.
        :param place: place of the mention, ``file:line``.
        """
        self._mentioned.setdefault(identity, (name, place))

    def add_adapter(self, identity: str, adapter: NamedPort, *, own: bool) -> None:
        """Add an adapter from its own entry, or from another device's cable; its own entry takes precedence.

        :param identity: port GUID.
        :param adapter: description of the adapter in the line.
        :param own: whether the line is the adapter's own entry.
        """
        if own and identity not in self._own:
            self._own.add(identity)
            self._adapters[identity] = adapter
        self._adapters.setdefault(identity, adapter)

    def add_card(self, node: str, system: str) -> None:
        """Record the system image GUID of a card that lines about its ports name by its node GUID.

        :param node: node GUID.
        :param system: system image GUID, empty or zero if the card has none.
        """
        if system not in ("", NO_GUID):
            self._cards.setdefault(node, system)

    def ignore(self, identity: str) -> None:
        """Leave out a device that is neither a host's nor a switch, and its links."""
        self._ignored.add(identity)

    def add_lids(self, identity: str, base: int, lmc: int = 0) -> None:
        """Add the LIDs of a device.

        :param identity: GUID of the device.
        :param base: first (base) LID of the device, 0 if it has none.
        :param lmc: base-2 logarithm of the number of LIDs, which are consecutive.
        """
        for lid in range(base, base + (1 << lmc)) if base else ():
            # Subnets number their LIDs independently; therefore a LID that two devices have identifies neither.
            if self._lids.setdefault(lid, identity) != identity:
                self._shared_lids.add(lid)

    def add_link(self, source: End, target: End, rate: float, place: str) -> None:
        """Add a link as one of its ends lists it; a second link from the same port to another target is a problem.

        :param source: sending end.
        :param target: receiving end.
        :param rate: bandwidth in bytes/s, NaN if unknown.
        :param place: place of the line, ``file:line``.
        """
        known = self._links.setdefault(source, _Link(target, rate, place))
        if known.target != target:
            message = f"leads to {_port(target)}, but {known.place} has it lead to {_port(known.target)}"
            self.report.problem(SourceError(f"{place}: {_port(source)} {message}"))

    def settle(self) -> Discovery:
        """Make the fabric and its LIDs; report problems if the sides of a cable disagree, or a host appears twice."""
        self._ignored.update(a for a, seen in self._adapters.items() if _SWITCH_INTERNAL in seen.description)
        lids = {lid: name for lid, name in self._lids.items() if lid not in self._shared_lids}
        fabric = self._fabric()
        known = {lid: name for lid, name in lids.items() if name not in self._ignored}
        return Discovery(fabric, lids=known, naming=self.naming, devices=self.devices)

    def _fabric(self) -> Fabric:
        self._require_entries()
        self._split_direct_cables()
        builder = FabricBuilder(self.name)
        for identity, (name, place) in self._switches.items():
            builder.add_switch(identity, name, place)
        for identity, host in self._hosts():
            builder.add_adapter(identity, host, self._adapters[identity].place)
        for source, link in self._cables():
            builder.add_link(source[0], link.target[0], source[1], link.target[1], link.rate, nan, link.place)
        return builder.build()

    def _split_direct_cables(self) -> None:
        """Put a switch into each cable between two adapters, because adapters of a fabric are linked to switches."""
        for source, link in list(self._links.items()):
            ends = sorted((source, link.target))
            if any(end[0] not in self._adapters or end[0] in self._ignored for end in ends):
                continue
            cable = f"cable {ends[0][0]} - {ends[1][0]}"
            if cable not in self._switches:
                self._switches[cable] = (cable, link.place)
                self.report.note(f"{link.place}: adapters {ends[0][0]} and {ends[1][0]} are joined back to back")
            own = (cable, 1 + ends.index(source))
            self._links[source] = replace(link, target=own)
            self._links[own] = replace(link, target=source)

    def _require_entries(self) -> None:
        for identity, (name, place) in self._mentioned.items():
            if identity not in self._switches:
                message = f"expecting switch {identity} ({name}) to have an entry of its own, got none"
                self.report.problem(SourceError(f"{place}: {message}"))
                self._switches[identity] = (name, place)

    def _cables(self) -> Iterator[tuple[End, _Link]]:
        """Yield both links of every cable; if the report lists only one of them, the other is derived from it."""
        links = {
            source: link
            for source, link in self._links.items()
            if not self._ignored.intersection((source[0], link.target[0]))
        }
        for source in list(links):
            link = links[source]
            back = links.setdefault(link.target, _Link(source, link.rate, link.place))
            if back.target != source:
                message = f"leads to {_port(link.target)}, but {back.place} has that lead to {_port(back.target)}"
                self.report.problem(SourceError(f"{link.place}: {_port(source)} {message}"))
                del links[source]
            elif link.rate != back.rate and not isnan(link.rate + back.rate):
                # A cable has one rate, but its two ends were read at different times. The lower rate is the cautious
                # choice.
                message = f"has a rate of {link.rate:g} bytes/s, but {back.place} has {back.rate:g}"
                self.report.note(f"{link.place}: {_port(source)} {message}: the lower rate is taken")
                rate = min(link.rate, back.rate)
                links[source], links[link.target] = replace(link, rate=rate), replace(back, rate=rate)
        yield from links.items()

    def _hosts(self) -> Iterator[tuple[str, str]]:
        """Yield each adapter with its host name: hosts in order of appearance, their adapters in rail order."""
        adapters = {key: adapter for key, adapter in self._adapters.items() if key not in self._ignored}
        groups, self.naming = self.report.naming.hosts(adapters, self._cards, self.report.problem)
        for host, members in groups.items():
            twice = {again.identity: first for again, first in repeated(members)}
            for one in members:
                if one.identity in twice:
                    self._report_twice(one, twice[one.identity])
                if one.device:
                    self.devices[one.identity] = one.device
                yield one.identity, one.identity if one.identity in twice else host

    def _report_twice(self, again: NamedAdapter, first: NamedAdapter) -> None:
        message = f"'{again.adapter.description}' port {again.adapter.port} appears twice"
        places = f"as {again.identity} and as {first.identity} at {first.adapter.place}"
        self.report.problem(SourceError(f"{again.adapter.place}: host {message}, {places}"))


def _port(end: End) -> str:
    return f"port {end[1]} of {end[0]}"
