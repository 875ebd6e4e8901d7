"""Hosts of InfiniBand adapters, found by node descriptions, by cards, and by names that the user gives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import SourceError, TopompiError
from ..inputs import open_inputs
from .descriptions import split_description
from .devicewords import Described, learn_devices

__all__ = ["NO_GUID", "HostNaming", "NamedAdapter", "NamedPort", "naming_of", "read_names", "repeated"]

_DNS = re.compile(r"(?=[^.]*[a-z])[\w-]+(?:\.[\w-]+)*", re.IGNORECASE)
# GUIDs as InfiniBand's tools write them, and as Linux does, in four groups (/sys/class/infiniband/*/node_guid).
_GUID = r"(?:[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}|(?:0x)?[0-9a-fA-F]{1,16})"
_ENTRY = re.compile(rf'\s*({_GUID})[\s,;:=]+(?:"([^"]*)"|([^\s"#]+))\s*(?:#.*)?')
_BY_DEVICE, _BY_WHOLE = _DESCRIBED = ("by the description without its device", "by the whole description")
_BY_SPELLING = "by another spelling of the name"
_NUMBER = re.compile("[0-9]")
NO_GUID = "0x0000000000000000"
_DOUBT = (
    "expecting descriptions that tell hosts from adapters, got {!r} and {!r}, which may be two hosts or two adapters of"
    " one: --name-rule or --names says which, --partial takes each for a host"
)

Problem = Callable[[TopompiError], None]


def _refuse(error: TopompiError) -> None:
    raise error


@dataclass(frozen=True)
class NamedPort:
    """A port of a channel adapter, as one line of a report describes it.

    :param description: node description, usually host name and device.
    :param port: port number on its card.
    :param card: GUID by which the report identifies the port's card, usually the node GUID.
    :param place: place of the line, ``file:line``.
    """

    description: str
    port: int
    card: str
    place: str


@dataclass(frozen=True)
class NamedAdapter:
    """An adapter with the host that the rules of a `HostNaming` find for it.

    :param identity: port GUID.
    :param adapter: the adapter.
    :param host: host name; empty if the description contains none.
    :param device: device name in the description; empty if it contains none.
    :param way: way by which the host was found, in words.
    """

    identity: str
    adapter: NamedPort
    host: str
    device: str
    way: str

    @property
    def rail_order(self) -> tuple[list[tuple[int, str, str]], int, str]:
        """Key that sorts the adapters of a host by device name (``mlx5_2`` before ``mlx5_10``), port and GUID."""
        found = re.findall(r"([^0-9]*)([0-9]*)", self.device)
        parts = ((text, digits.lstrip("0") or digits[-1:]) for text, digits in found)
        return [(len(digits), digits, text) for text, digits in parts], self.adapter.port, self.identity


@dataclass(frozen=True)
class HostNaming:
    """Rules that find the hosts of adapters.

    :param names: host name by port GUID, node GUID or system image GUID; these names take precedence.
    :param rule: regular expression searched in node descriptions; its group ``host``, else its first group, else its
        whole match is the host name. Descriptions without a match follow the usual rule.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    rule: re.Pattern[str] | None = None

    def hosts(
        self, adapters: Mapping[str, NamedPort], cards: Mapping[str, str], problem: Problem = _refuse
    ) -> tuple[dict[str, list[NamedAdapter]], str]:
        """Group adapters by host; return the groups by host name in order of appearance, and the ways used, in words.

        The host name is the node description without the device name, because drivers and init scripts append only
        that (rdma-ndd's formats are made of %h, the host, and %d, the device). `learn_devices` finds the device names
        that are not known. An adapter whose description contains no
        host name belongs to the only host that is named on its card; else its card is a host, named by the GUID of the
        card's first port. Adapters with equal descriptions without a device name belong to one host. Names that differ
        in case, and a name with and without its domain, are one host, because DNS and resource managers see one.

        :param adapters: the adapters by port GUID.
        :param cards: node GUID -> system image GUID, for cards of which both are known.
        :param problem: function that is called with an error if descriptions may name one host or several.
        """
        named = _learnt(
            [self._named(identity, adapter, cards) for identity, adapter in adapters.items()], cards, problem
        )
        same = _spellings(named)
        named = [
            replace(one, host=same[one.host], way=_BY_SPELLING)
            if one.way in _DESCRIBED and same.get(one.host, one.host) != one.host
            else one
            for one in named
        ]
        on_card: dict[str, set[str]] = {}
        for one in named:
            if one.host:
                on_card.setdefault(_card(one.adapter, cards), set()).add(one.host)
        groups: dict[tuple[bool, str], list[NamedAdapter]] = {}
        ways: Counter[str] = Counter()
        for one in named:
            card = _card(one.adapter, cards)
            others = on_card.get(card, set())
            host = one.host or (next(iter(others)) if len(others) == 1 else "")
            groups.setdefault((bool(host), host or card), []).append(one)
            ways[
                one.way if one.host else "named by the card's other port" if host else "by their cards, without a name"
            ] += 1
        for members in groups.values():
            members.sort(key=lambda one: one.rail_order)
        words = ", ".join(f"{count:,} {way}" for way, count in ways.items())
        guids = {guid for one in named for guid in self._guids(one.identity, one.adapter, cards)}
        if strange := len(self.names.keys() - guids):
            words += f"; {strange:,} of {len(self.names):,} GUIDs of --names are none of these"
        return {key if is_name else group[0].identity: group for (is_name, key), group in groups.items()}, words

    def _named(self, identity: str, adapter: NamedPort, cards: Mapping[str, str]) -> NamedAdapter:
        host, device = split_description(adapter.description)
        way = _BY_WHOLE if host == adapter.description.strip() else _BY_DEVICE
        if self.rule is not None and (match := self.rule.search(adapter.description)):
            at = "host" if "host" in self.rule.groupindex else min(self.rule.groups, 1)
            host, way = (match[at] or "").strip(), "by --name-rule"
        given = next((self.names[guid] for guid in self._guids(identity, adapter, cards) if guid in self.names), None)
        if given is not None:
            host, way = given, "by --names"
        return NamedAdapter(identity, adapter, host, device, way)

    @staticmethod
    def _guids(identity: str, adapter: NamedPort, cards: Mapping[str, str]) -> tuple[str, str, str]:
        """Return the GUIDs by which an adapter may be named, of its port, node and system image."""
        return identity, adapter.card, _card(adapter, cards)


def _learnt(named: Sequence[NamedAdapter], cards: Mapping[str, str], problem: Problem) -> list[NamedAdapter]:
    """Remove device names that a comparison of the descriptions finds, and report descriptions that leave a doubt."""
    found = [one for one in named if one.host and one.way in _DESCRIBED]
    learnt = learn_devices(
        [Described(one.host, one.adapter.card, _card(one.adapter, cards), one.way == _BY_WHOLE) for one in found]
    )
    places = {one.host: one.adapter.place for one in reversed(found)}
    for one, other in learnt.doubts:
        problem(SourceError(f"{places[one]}: {_DOUBT.format(one, other)}"))
    return [
        replace(one, host=split[0], device=split[1], way=_BY_DEVICE)
        if one.way == _BY_WHOLE and (split := learnt.parts.get(one.host))
        else one
        for one in named
    ]


def _card(adapter: NamedPort, cards: Mapping[str, str]) -> str:
    return cards.get(adapter.card, adapter.card)


def _spellings(named: Sequence[NamedAdapter]) -> dict[str, str]:
    """Find host names that name one host: they differ in case, or one is the first label of only one other.

    The spelling that appears first stands for all. Names are not joined if adapters of one device name would meet.
    """
    found = [one for one in named if one.host and one.way in _DESCRIBED and _DNS.fullmatch(one.host)]
    whole: dict[str, list[str]] = {}
    for one in found:
        names = whole.setdefault(one.host.casefold(), [])
        if one.host not in names:
            names.append(one.host)
    of_label: dict[str, list[str]] = {}
    for name in whole:
        of_label.setdefault(name.partition(".")[0], []).append(name)
    order = {one.host: at for at, one in reversed(list(enumerate(found)))}
    same: dict[str, str] = {}
    for label, names in of_label.items():
        joined = [names] if label in names and len(names) == 2 else [[name] for name in names]
        for group in joined:
            spelt = sorted((host for name in group for host in whole[name]), key=order.__getitem__)
            if len(spelt) > 1 and not _meet([one for one in found if one.host in spelt]):
                same |= dict.fromkeys(spelt, spelt[0])
    return same


def _meet(members: Sequence[NamedAdapter]) -> bool:
    """Whether two adapters have the same numbered device and port."""
    numbered = [(one.device, one.adapter.port) for one in members if _NUMBER.search(one.device)]
    return len(set(numbered)) < len(numbered)


def read_names(path: str) -> dict[str, str]:
    """Read host names by GUID: a GUID and a name per line, with or without quotes, as in OpenSM's node-name-map.

    :param path: file of the names; text from ``#`` at a line's beginning is a comment.
    :raises SourceError: if a line has another form, or gives a GUID a second name, with file and line.
    """
    names: dict[str, str] = {}
    for text in open_inputs(path):
        text.refuse_foreign()
        for number, line in text.lines():
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _ENTRY.fullmatch(line)
            name = (match[2] or match[3] or "").strip() if match else ""
            if match is None or not name:
                raise SourceError(f"{text.name}:{number}: expecting a GUID and a host name, got {line.strip()[:60]!r}")
            guid = f"0x{int(match[1].replace(':', ''), 16):016x}"
            if names.setdefault(guid, name) != name:
                raise SourceError(
                    f"{text.name}:{number}: expecting one name of {guid}, got {names[guid]!r} and {name!r}"
                )
    return names


def naming_of(names: str | None, rule: str | None) -> HostNaming:
    """Make a `HostNaming` from a file of names and a regular expression.

    :param names: path of the file, see `read_names`; None for no names.
    :param rule: regular expression, see `HostNaming`; None for no expression.
    :raises SourceError: if the file or the expression is malformed.
    """
    try:
        compiled = re.compile(rule) if rule else None
    except re.error as error:
        raise SourceError(f"--name-rule: expecting a regular expression, got {rule!r}: {error}") from error
    return HostNaming(read_names(names) if names else {}, compiled)


def repeated(members: Sequence[NamedAdapter]) -> Iterable[tuple[NamedAdapter, NamedAdapter]]:
    """Yield pairs of a host's adapters with the same device name and port: the repeated adapter, then the first one.

    Adapters without a number in their device name are left out, because rdma-ndd may be configured to write only host
    names. Adapters whose host the user named are left out, too.
    """
    seen: dict[tuple[str, int], NamedAdapter] = {}
    for one in members:
        counts = one.way == _BY_DEVICE and one.host and _NUMBER.search(one.device)
        first = seen.setdefault((one.device, one.adapter.port), one) if counts else one
        if first is not one:
            yield one, first
