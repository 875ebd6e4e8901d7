"""The common header of mappings' files, and the checks of a file against its allocation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np

from ...errors import TopompiError
from ...inputs import current_limits, read_text
from ..machine import Machine, allocation_digest
from ..mapping import Mapping, MappingError

__all__ = ["RankFile", "RankFileError", "header", "host_names"]

_TITLE = re.compile(r"# topompi mapping: ([0-9]{1,18}) ranks on ([0-9]{1,18}) hosts, allocation ([0-9a-f]+)")
_HOST = re.compile(r"# host (\S+) slots ([0-9]{1,18})")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
# What sites append to a host's name for the address of its adapter.
_INTERFACE = re.compile(r"[-_](?:ib|ipoib|opa|hfi|hsn|roce|mlx|eth|en[ops]|bond)[0-9a-z_]*$", re.I)


class RankFileError(TopompiError, ValueError):
    """A file contains no mapping, or none for this allocation, or a format cannot express a mapping."""


def header(mapping: Mapping, launch: str) -> list[str]:
    """The comment lines at the top of a file: numbers of ranks and hosts, digest, launch command, and slots per host.

    :param mapping: mapping in the file.
    :param launch: command that launches a program with the file.
    """
    title = f"# topompi mapping: {mapping.size} ranks on {len(mapping.hosts)} hosts, allocation {mapping.digest}"
    slots = zip(mapping.hosts, mapping.slots.tolist(), strict=True)
    return [title, f"# launch: {launch}", *(f"# host {host} slots {count}" for host, count in slots)]


def host_names(mapping: Mapping) -> list[str]:
    """The name of each rank's host.

    :raises RankFileError: if a launcher would misread a name in a file.
    """
    odd = next((host for host in mapping.hosts if not _NAME.fullmatch(host)), None)
    if odd is not None:
        wanted = "host names of letters, digits, '.', '_' and '-' for a launcher"
        raise RankFileError(f"expecting {wanted}, got {odd!r}: leave it out with --hosts or --rails")
    return [mapping.hosts[host] for host in mapping.host_of_rank.tolist()]


@dataclass(frozen=True, eq=False)
class RankFile:
    """The text of a mapping's file, and the allocation that it must fit.

    :param name: name of the file in error messages.
    :param text: content of the file.
    :param machine: allocation that the file must fit; None to accept the allocation in the file's header.
    """

    name: str
    text: str
    machine: Machine | None = None

    @classmethod
    def open(cls, path: Path, machine: Machine | None = None) -> RankFile:
        """Read a file.

        :raises RankFileError: if it is missing, empty, or no text.
        """
        return cls(str(path), read_text(path, RankFileError, "a mapping"), machine)

    @cached_property
    def rows(self) -> list[tuple[int, str]]:
        """The line number (from 1) and text of each line, without comments, surrounding blanks and empty lines."""
        stripped = ((number, line.partition("#")[0].strip()) for number, line in self.numbered)
        return [(number, line) for number, line in stripped if line]

    @property
    def first(self) -> str:
        """The first line that is no comment; empty if there is none."""
        return self.rows[0][1] if self.rows else ""

    @property
    def numbered(self) -> list[tuple[int, str]]:
        """The line number (from 1) and text of each line, including comments."""
        return list(enumerate(self.text.splitlines(), 1))

    def fail(self, line: int, wanted: str, given: str) -> NoReturn:
        """Raise RankFileError for a line, with the expected content and the given one.

        :param line: line number, from 1.
        :param wanted: expected content, in words.
        :param given: given content; cut to 60 characters.
        """
        shown = repr(given if len(given) <= 60 else given[:57] + "...")
        raise RankFileError(f"{self.name}:{line}: expecting {wanted}, got {shown}")

    @cached_property
    def allocation(self) -> tuple[tuple[str, ...], list[int]]:
        """The hosts and their slots, from the file's header if it has one, else from ``machine``.

        If there are both, they must be equal.

        :raises RankFileError: if the header contradicts its own digest or the machine, or there is neither.
        """
        titles = [(number, match) for number, line in self.numbered if (match := _TITLE.fullmatch(line.strip()))]
        if titles:
            return self._written(*titles[0])
        if self.machine is None:
            raise RankFileError(f"{self.name}: does not say for which hosts and slots it is; give them")
        return self.machine.hosts, self.machine.slots.tolist()

    def _written(self, line: int, title: re.Match[str]) -> tuple[tuple[str, ...], list[int]]:
        listed = [match for _, text in self.numbered if (match := _HOST.fullmatch(text.strip()))]
        hosts, slots = tuple(match[1] for match in listed), [int(match[2]) for match in listed]
        if len(hosts) != int(title[2]):
            self.fail(line, f"{title[2]} lines '# host NAME slots N', as it says", str(len(hosts)))
        self.check_digest(hosts, slots, title[3], f"{self.name}:{line}")
        return hosts, slots

    def check_digest(self, hosts: Sequence[str], slots: Sequence[int], digest: str, where: str) -> None:
        """Check hosts and slots against their digest, the machine (if there is one) and the limit of ranks.

        :param hosts: names of the hosts.
        :param slots: number of slots of each host.
        :param digest: digest that the file contains.
        :param where: beginning of the message: file, or file and line.
        :raises RankFileError: if they differ, or exceed the limit.
        """
        true = allocation_digest(hosts, np.array(slots, dtype=np.int64))
        if digest != true:
            raise RankFileError(f"{where}: expecting hosts and slots of digest {digest}, got {true}")
        current_limits().check("ranks", sum(slots), where, RankFileError)
        if self.machine is not None and self.machine.digest != true:
            raise RankFileError(f"{where}: is for allocation {true}, but the job's is {self.machine.digest}")

    @property
    def is_ours(self) -> bool:
        """Whether topompi wrote the file: its title names the allocation."""
        return any(_TITLE.fullmatch(line.strip()) for _, line in self.numbered)

    @cached_property
    def _number(self) -> dict[str, int]:
        """The number of each host by its full name, and by the name's first label if no other host has this label."""
        names = self.allocation[0]
        labels = Counter(name.partition(".")[0] for name in names)
        short = {label: at for at, name in enumerate(names) if labels[label := name.partition(".")[0]] == 1}
        return short | {name: at for at, name in enumerate(names)}

    def host_number(self, line: int, name: str) -> int:
        """The number in the allocation of a host, which a file may name in full, in short, or by an interface of it.

        Examples for the host h0 are ``h0.cluster.org`` and ``h0-ib0``.

        :param line: line number, for error messages.
        :param name: name of the host.
        :raises RankFileError: if the allocation does not have it.
        """
        names, label = self.allocation[0], name.partition(".")[0]
        host = self._number.get(name, self._number.get(label, self._number.get(_INTERFACE.sub("", label), -1)))
        domains = {full.partition(".")[2] for full in (name, names[host])} - {""}
        if host < 0 or len(domains) > 1:
            self.fail(line, f"a host of the allocation ({', '.join(names[:3])}, ...)", name)
        return host

    def check_count(self, ranks: int) -> None:
        """Refuse a number of ranks other than that in the file's title, its first comment line, if it has one.

        :raises RankFileError: if the numbers differ.
        """
        title = next((match for _, line in self.numbered if (match := _TITLE.fullmatch(line.strip()))), None)
        if title and int(title[1]) != ranks:
            raise RankFileError(f"{self.name}: expecting {title[1]} ranks, as its title says, got {ranks}")

    def mapping(self, hosts: Sequence[tuple[int, str]], slots: Sequence[int | None] | None = None) -> Mapping:
        """The mapping that puts rank i on the i-th given host.

        :param hosts: line number, for error messages, and host name of each rank.
        :param slots: slot of each rank within its host, from 0; None for the next slot of the host.
        :raises RankFileError: if a host is not in the allocation, or a slot does not exist or is taken.
        """
        counts = self.allocation[1]
        self.check_count(len(hosts))
        first = np.r_[0, np.cumsum(counts)].tolist()
        taken: dict[int, int] = {}
        following = [0] * len(counts)
        for rank, (line, name) in enumerate(hosts):
            host = self.host_number(line, name)
            local = slots[rank] if slots is not None else None
            if local is None:
                local = following[host]
                following[host] += 1
            if local >= counts[host]:
                self.fail(line, f"at most the {counts[host]} slots of {name}", f"slot {local}")
            if first[host] + local in taken:
                self.fail(line, f"a free slot, rank {taken[first[host] + local]} has {name}'s", f"slot {local}")
            taken[first[host] + local] = rank
        return self.of_slots(list(taken))

    def of_slots(self, slot_of_rank: Sequence[int]) -> Mapping:
        """The mapping of ranks to given slots of the allocation.

        :raises RankFileError: if it is not one-to-one.
        """
        names, counts = self.allocation
        try:
            return Mapping.of(np.array(slot_of_rank, dtype=np.int64), names, np.array(counts, dtype=np.int64))
        except MappingError as error:
            raise RankFileError(f"{self.name}: {error}") from error
