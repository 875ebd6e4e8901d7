"""The service level of each job in the files of OpenSM: a QoS policy by the ports of jobs' hosts, or partitions.

A site chooses one of them. The policy answers every program that asks OpenSM for a path between two hosts of a job.
Partitions answer those that ask with the partition's key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import InterferenceError

__all__ = ["Member", "partitions", "policy"]

FIRST_KEY = 0x8001  # partition key of full members of the first job's partition; the default partition has 0xffff
PER_LINE = 8  # ports per line
_GUID = re.compile(r"0x[0-9a-fA-F]{1,16}")


@dataclass(frozen=True)
class Member:
    """A job's part of the files.

    :param name: name of the job; only letters, digits, dots, dashes and underscores.
    :param level: service level.
    :param ports: GUIDs of the ports of its hosts, as ``0x...``.
    """

    name: str
    level: int
    ports: tuple[str, ...]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+", self.name, re.ASCII):
            raise InterferenceError(f"{self.name}: expecting a job's name of letters, digits, dots, dashes and _")
        if not 0 <= self.level < 15:
            raise InterferenceError(f"{self.name}: expecting a service level below 15, got {self.level}")
        if wrong := next((port for port in self.ports if not _GUID.fullmatch(port)), None):
            raise InterferenceError(f"{self.name}: expecting GUIDs of InfiniBand ports such as 0x2c9, got {wrong!r}")


def policy(members: Sequence[Member]) -> str:
    """The QoS policy file: paths between two ports of a job have its service level, all others have level 0.

    :param members: the jobs.
    :raises InterferenceError: if two jobs have one name or one port.
    """
    _require_apart(members)
    levels = sorted({one.level for one in members})
    lines = ["port-groups"]
    for one in members:
        lines += ["  port-group", f"    name: {one.name}"]
        lines += [f"    port-guid: {', '.join(some)}" for some in _lines_of(one.ports)]
        lines += ["  end-port-group"]
    lines += ["end-port-groups", "qos-levels", *_level("DEFAULT", 0)]
    for level in levels:
        lines += _level(f"level-{level}", level)
    lines += ["end-qos-levels", "qos-match-rules"]
    for one in members:
        rule = (f"source: {one.name}", f"destination: {one.name}", f"qos-level-name: level-{one.level}")
        lines += ["  qos-match-rule", *(f"    {line}" for line in rule), "  end-qos-match-rule"]
    return "\n".join([*lines, "end-qos-match-rules", ""])


def partitions(members: Sequence[Member]) -> str:
    """The partition file: a partition per job with its service level, and all ports in the default one.

    :param members: the jobs.
    :raises InterferenceError: if two jobs have one name or one port.
    """
    _require_apart(members)
    lines = ["Default=0x7fff, ipoib : ALL=full;"]
    for key, one in enumerate(members, FIRST_KEY):
        ports = ",\n  ".join(", ".join(f"{port}=full" for port in some) for some in _lines_of(one.ports))
        lines.append(f"{one.name}={key:#06x}, sl={one.level} :\n  {ports};")
    return "\n".join([*lines, ""])


def _level(name: str, level: int) -> list[str]:
    return ["  qos-level", f"    name: {name}", f"    sl: {level}", "  end-qos-level"]


def _lines_of(ports: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ports[at : at + PER_LINE] for at in range(0, len(ports), PER_LINE))


def _require_apart(members: Sequence[Member]) -> None:
    owner: dict[str, str] = {}
    for one in members:
        for port in (f"job {one.name}", *one.ports):
            if port in owner:
                raise InterferenceError(f"opensm: {port}: expecting it once, got it in {owner[port]} and {one.name}")
            owner[port] = one.name
