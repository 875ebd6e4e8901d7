"""Device names that no list contains, found by comparing the descriptions of all adapters."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from .descriptions import is_device

__all__ = ["Described", "Learnt", "learn_devices"]

_GAP = re.compile(r"(?<=[^\s@:/,;|=])[\s@:/,;|=]{1,9}(?=[^\s@:/,;|=])")
_CHIP = re.compile(r"[^;]+;[^:]+:[^/]+/.+")  # a chip or gateway of a switch (``MF0;sw1:SX6036G/GW1``)
_LETTER = re.compile(r"[^\W\d_]")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_GUID = re.compile(r"0x[0-9a-f]{1,16}")
NEAR = 3  # largest difference between the node GUIDs of neighbouring adapters on a card
MANY = 4  # hosts; fewer could be racks that each have the same few machines

Words = dict[str, str]  # last words -> description that ends with them, of descriptions that begin alike


class Described(NamedTuple):
    """An adapter as `learn_devices` looks at it.

    :param text: description without known devices.
    :param node: node GUID.
    :param card: system image GUID, else the node GUID.
    :param is_whole: whether ``text`` is the adapter's whole description.
    """

    text: str
    node: str
    card: str
    is_whole: bool


@dataclass(frozen=True)
class Learnt:
    """The result of `learn_devices`.

    :param parts: description -> host and device, for descriptions whose last words are a device.
    :param doubts: pairs of descriptions that are either two hosts or two adapters of one host.
    """

    parts: Mapping[str, tuple[str, str]]
    doubts: Sequence[tuple[str, str]]


def learn_devices(adapters: Collection[Described]) -> Learnt:
    """Decide whether the last words of descriptions without known devices are names of devices.

    The last words of descriptions that begin alike are devices if

    - the adapters have one card, or
    - several hosts have the words, and these begin as device names do, or
    - two hosts have them that are known from other descriptions, or
    - several hosts have the same set of them, and node GUIDs follow each other within the hosts and not between, or
    - many hosts have the same set of them, and the words are no numbering.

    A device's word is one behind every host. Repeated words of other kinds may be devices of hosts or machines in
    racks, and a word behind a known host may be either, too. These are the doubts.

    :param adapters: the adapters.
    Cost: linear in the words of all descriptions, apart from sorting.
    """
    open_ = dict.fromkeys(one.text for one in adapters if one.is_whole)
    groups = _groups(open_)
    found = _Evidence(groups, adapters)
    parts = _by_card(adapters)
    devices = {word for _, word in parts.values()}
    devices.update(word for prefix, words in groups.items() if found.is_sure(prefix) for word in words)
    for text in open_:
        split = next((split for split in _splits(text) if split[1] in devices), None)
        if split is not None:
            parts.setdefault(text, split)
    doubts: dict[frozenset[str], tuple[str, str]] = {}
    for prefix, words in groups.items():
        left = [text for text in words.values() if text not in parts]
        if left and found.is_doubtful(prefix) and len(left) + (prefix in found.hosts) > 1:
            doubts.setdefault(frozenset(words), ([*left, prefix][0], [*left, prefix][1]))
    return Learnt(parts, tuple(dict.fromkeys(doubts.values())))


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to divide a description into first and last words, the shortest last words first.

    A number behind words without digits is a host's (``Storage Node 1``), and yields nothing.
    """
    for gap in [] if _CHIP.fullmatch(text) else reversed(list(_GAP.finditer(text))):
        prefix, words = text[: gap.start()], text[gap.end() :]
        if _LETTER.search(words.split()[-1]) or any(map(str.isdecimal, prefix)):
            yield prefix, words


def _groups(texts: Iterable[str]) -> dict[str, Words]:
    groups: dict[str, Words] = defaultdict(dict)
    for text in texts:
        for prefix, words in _splits(text):
            groups[prefix][words] = text
    return groups


def _by_card(adapters: Iterable[Described]) -> dict[str, tuple[str, str]]:
    """Split the different descriptions of one card behind the longest beginning that all of them have."""
    of_card: dict[str, dict[str, bool]] = defaultdict(dict)
    for one in adapters:
        of_card[one.card][one.text] = one.is_whole
    parts: dict[str, tuple[str, str]] = {}
    for texts in of_card.values():
        if len(texts) < 2:
            continue
        ways = {text: {text: ""} | dict(_splits(text)) for text in texts}
        first, *others = ways.values()
        common = max((prefix for prefix in first if all(prefix in other for other in others)), key=len, default="")
        parts |= {text: (common, ways[text][common]) for text in texts if common and texts[text] and text != common}
    return parts


class _Evidence:
    """What the descriptions that begin alike have in common with others.

    :param groups: beginning -> last words.
    :param adapters: the adapters.
    :ivar hosts: hosts that are known, because a description has nothing else but known devices.
    """

    def __init__(self, groups: Mapping[str, Words], adapters: Collection[Described]) -> None:
        self.groups = groups
        self.hosts = {one.text for one in adapters}
        self.prefixes = Counter(word for words in groups.values() for word in words)
        self.known = Counter(word for prefix, words in groups.items() if prefix in self.hosts for word in words)
        self.sets = Counter(frozenset(words) for words in groups.values())
        is_near = _nearness(adapters)
        self.near = Counter(frozenset(words) for words in groups.values() if len(words) > 1 and is_near(words))

    def is_sure(self, prefix: str) -> bool:
        """Whether the words after ``prefix`` are certainly names of devices, not parts of host names."""
        words = self.groups[prefix]
        same, near = self.sets[frozenset(words)], self.near[frozenset(words)]
        if prefix in self.hosts and all(self.known[word] > 1 for word in words):
            return True
        if len(words) < 2 or same < 2:
            return len(words) > 1 and self._is_shared(words) and all(map(is_device, words))
        return near == same or all(map(is_device, words)) or (same >= MANY and same > len(words) and _are_roles(words))

    def is_doubtful(self, prefix: str) -> bool:
        """Whether the last words, if they are not surely devices, may be devices."""
        words = self.groups[prefix]
        return self._is_shared(words) or prefix in self.hosts or self.near[frozenset(words)] > 0

    def _is_shared(self, words: Words) -> bool:
        return any(self.prefixes[word] > 1 for word in words)


def _are_roles(words: Collection[str]) -> bool:
    """Whether the words differ in more than numbers and single letters, as ``left`` and ``right`` do."""
    stems = {_NO_LETTERS.sub("", word) for word in words}
    return len(stems) == len(words) and all(len(stem) > 1 for stem in stems)


def _nearness(adapters: Collection[Described]) -> Callable[[Words], bool]:
    """Make a function that tells whether the node GUIDs of some descriptions follow each other, and no other does."""
    nodes: dict[str, list[int]] = defaultdict(list)
    for one in adapters:
        if _GUID.fullmatch(one.node):
            nodes[one.text].append(int(one.node, 16))
    everyone = sorted({node for some in nodes.values() for node in some})

    def is_near(words: Words) -> bool:
        own = sorted({node for text in words.values() for node in nodes[text]})
        if len(own) < len(words):
            return False
        at = bisect_left(everyone, own[0])
        widest = max(high - low for low, high in pairwise(own))
        around = everyone[max(0, at - 1) : at] + everyone[at + len(own) : at + len(own) + 1]
        apart = min((min(abs(node - own[0]), abs(node - own[-1])) for node in around), default=0)
        return widest <= NEAR and widest < apart and everyone[at : at + len(own)] == own

    return is_near
