"""Matching of host names between jobs and machines that spell them differently."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

__all__ = ["HostNames"]

_LAST_NUMBER = re.compile(r".*?(?<![0-9])([0-9]+)[^0-9]*")


class HostNames:
    """The host names of a machine, in which names as jobs spell them are found.

    The rules are tried in this order, and the first that finds a host decides. (1) The names are equal. (2) Their first
    labels (up to a dot) are equal, and only one host has this label. (3) The labels differ only in case, and only one
    host has this label in any case. (4) If all hosts of the machine are bare numbers, as in node maps, a name is
    compared by the last number of its first label, zeros included: ``lrdn0059`` and ``lrdn0059.site`` match ``0059``,
    because the map omits the prefix.

    :param hosts: the machine's host names, each once.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts = hosts

    def find(self, name: str) -> int:
        """Return the number of the host that a name means; -1 if it means none."""
        number = self.index.get(name, -1)
        if number < 0:
            number = self._by_label.get(_label(name), -1)
        return number if number >= 0 else self._in_any_case.get(_label(name).casefold(), self._by_number(name))

    @cached_property
    def index(self) -> dict[str, int]:
        """Host name -> host number."""
        return {name: number for number, name in enumerate(self.hosts)}

    @cached_property
    def _by_label(self) -> dict[str, int]:
        return _once(map(_label, self.hosts))

    @cached_property
    def _in_any_case(self) -> dict[str, int]:
        return _once(_label(host).casefold() for host in self.hosts)

    @cached_property
    def _are_numbers(self) -> bool:
        return all(host.isdecimal() for host in self.hosts)

    def _by_number(self, name: str) -> int:
        match = _LAST_NUMBER.fullmatch(_label(name)) if self._are_numbers else None
        return self.index.get(match[1], -1) if match else -1


def _once(names: Iterable[str]) -> dict[str, int]:
    """Return the position of each name that appears only once."""
    every = list(names)
    count = Counter(every)
    return {name: at for at, name in enumerate(every) if count[name] == 1}


def _label(name: str) -> str:
    return name.partition(".")[0]
