"""Blueprints from which the generators build fabrics, namely hosts, switches and cables without ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import FabricError
from ..fabric import Fabric, infiniband_rate

__all__ = [
    "ADAPTER_GUID",
    "DEFAULT_RATE",
    "SWITCH_GUID",
    "Blueprint",
    "Cables",
    "cables",
    "check_at_least",
    "check_size",
    "guids",
]

Integers = NDArray[np.int64]
DEFAULT_RATE = infiniband_rate("4xQDR")

# Synthetic GUIDs are EUI-64s with the "locally administered" bit set, so that they equal no vendor's GUID. An adapter's
# id is the GUID of its port 1, which is the device's GUID plus 1, as in real adapters.
SWITCH_GUID = 0x0200_0001_0000_0000
ADAPTER_GUID = 0x0200_0002_0000_0001
GUID_STRIDE = 16

# Largest number of hosts, switches or cables; a larger one is probably a typing error, because the largest machines
# have some 10^5 hosts.
LARGEST = 4_000_000


class Cables(NamedTuple):
    """Cables as columns of shape (cables,).

    :param first: vertex at the first end, numbered as in Fabric: hosts, then switches.
    :param second: vertex at the second end.
    :param first_port: port number at the first end, from 1.
    :param second_port: port number at the second end, from 1.
    :param rate: bandwidth in bytes/s.
    """

    first: Integers
    second: Integers
    first_port: Integers
    second_port: Integers
    rate: NDArray[np.float64]

    @classmethod
    def join(cls, parts: Iterable[Cables]) -> Cables:
        """Concatenate the cables of several parts, in order."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def cables(first: ArrayLike, second: ArrayLike, first_port: ArrayLike, second_port: ArrayLike, rate: float) -> Cables:
    """Make a cable for each element of four arrays, which numpy broadcasts to one shape, in row-major order.

    :param first: vertices at the first end.
    :param second: vertices at the second end.
    :param first_port: port numbers at the first end.
    :param second_port: port numbers at the second end.
    :param rate: bandwidth of each cable in bytes/s.
    """
    columns = np.broadcast_arrays(first, second, first_port, second_port)
    numbers = [np.asarray(column, dtype=np.int64).ravel() for column in columns]
    return Cables(numbers[0], numbers[1], numbers[2], numbers[3], np.full(len(numbers[0]), rate))


def check_at_least(least: int, what: str, values: Sequence[int]) -> None:
    """Raise FabricError unless there are values and each is at least ``least``.

    :param least: smallest value allowed.
    :param what: name of the values in the error message.
    :param values: numbers to check.
    """
    if not values:
        raise FabricError(f"expecting {what}, got none")
    if min(values) < least:
        raise FabricError(f"expecting {what} of at least {least}, got {min(values)}")


def check_size(*counts: int) -> None:
    """Raise FabricError if a number of hosts, switches or cables exceeds LARGEST, before memory is allocated."""
    if max(counts) > LARGEST:
        given = max(counts) if max(counts) < 10**15 else "more than 10^15"
        raise FabricError(f"expecting at most {LARGEST} hosts, switches and cables each, got {given}")


@dataclass(frozen=True, eq=False)
class Blueprint:
    """A fabric whose vertices have no ids yet.

    :param num_hosts: number of hosts, each with one adapter.
    :param switch_names: display names, one per switch.
    :param cables: cables between hosts and switches.
    """

    num_hosts: int
    switch_names: tuple[str, ...]
    cables: Cables

    def combined_with(self, other: Blueprint) -> Blueprint:
        """Combine two blueprints, without cables between them; hosts and switches of ``other`` come second."""
        hosts, switches = self.num_hosts, len(self.switch_names)
        mine, theirs = self.cables, other.cables
        moved = Cables.join(
            [
                mine._replace(
                    first=_moved(mine.first, hosts, 0, other.num_hosts),
                    second=_moved(mine.second, hosts, 0, other.num_hosts),
                ),
                theirs._replace(
                    first=_moved(theirs.first, other.num_hosts, hosts, hosts + switches),
                    second=_moved(theirs.second, other.num_hosts, hosts, hosts + switches),
                ),
            ]
        )
        return Blueprint(hosts + other.num_hosts, self.switch_names + other.switch_names, moved)

    def build(self, name: str) -> Fabric:
        """Make the fabric, with one adapter per host, links sorted by source and port, and unknown latencies (NaN)."""
        drawn = self.cables
        source, target = np.r_[drawn.first, drawn.second], np.r_[drawn.second, drawn.first]
        source_port = np.r_[drawn.first_port, drawn.second_port]
        target_port = np.r_[drawn.second_port, drawn.first_port]
        order = np.lexsort((source_port, source))
        digits = max(4, len(str(self.num_hosts - 1)))
        return Fabric(
            name=name,
            hosts=tuple(f"h{host:0{digits}d}" for host in range(self.num_hosts)),
            adapter_ids=guids(ADAPTER_GUID, self.num_hosts),
            adapter_host=np.arange(self.num_hosts, dtype=np.int32),
            switch_ids=guids(SWITCH_GUID, len(self.switch_names)),
            switch_names=self.switch_names,
            link_source=source[order].astype(np.int32),
            link_target=target[order].astype(np.int32),
            link_source_port=source_port[order].astype(np.int32),
            link_target_port=target_port[order].astype(np.int32),
            link_rate=np.r_[drawn.rate, drawn.rate][order],
            link_latency=np.full(len(order), np.nan),
        )


def _moved(vertices: Integers, num_hosts: int, host_shift: int, switch_shift: int) -> Integers:
    return vertices + np.where(vertices < num_hosts, host_shift, switch_shift)


def guids(first: int, count: int) -> tuple[str, ...]:
    """Make the ids of devices of one kind.

    :param first: number of the first id.
    :param count: number of ids.
    """
    return tuple(f"0x{first + GUID_STRIDE * number:016x}" for number in range(count))
