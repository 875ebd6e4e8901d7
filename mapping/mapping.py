"""The mapping of ranks to slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import TopompiError
from .machine import Machine, allocation_digest

__all__ = ["Mapping", "MappingError"]

Integers = NDArray[np.int64]


class MappingError(TopompiError, ValueError):
    """A mapping puts two ranks on one slot, or does not fit its allocation."""


@dataclass(frozen=True, eq=False)
class Mapping:
    """A one-to-one placement of ranks on slots, with the hosts and slots of its allocation.

    :param slot_of_rank: slot of each rank, shape (ranks,).
    :param rank_of_slot: rank on each slot, -1 if it is empty, shape (slots,).
    :param hosts: names of the n hosts; slots are numbered host by host.
    :param slots: number of slots of each host, shape (n,).
    :raises MappingError: if the placement is not one-to-one, or the two arrays are not each other's inverse.
    """

    slot_of_rank: Integers
    rank_of_slot: Integers
    hosts: tuple[str, ...]
    slots: Integers

    def __post_init__(self) -> None:
        total, ranks = int(self.slots.sum()), np.arange(len(self.slot_of_rank))
        if len(self.hosts) != len(self.slots) or len(self.rank_of_slot) != total:
            raise MappingError(
                f"mapping: expecting {total} slots on {len(self.hosts)} hosts, got {len(self.rank_of_slot)}"
            )
        _one_to_one(self.slot_of_rank, total)
        if (self.rank_of_slot[self.slot_of_rank] != ranks).any() or (self.rank_of_slot >= 0).sum() != len(ranks):
            raise MappingError("mapping: expecting rank_of_slot to be the inverse of slot_of_rank, -1 where empty")

    def __repr__(self) -> str:
        on = len(np.unique(self.host_of_rank))
        return f"Mapping({len(self.slot_of_rank):,} ranks on {on:,} of {len(self.hosts):,} hosts)"

    @classmethod
    def of(cls, slot_of_rank: ArrayLike, hosts: Sequence[str], slots: ArrayLike) -> Mapping:
        """Make the mapping of ranks to given slots of an allocation.

        :param slot_of_rank: slot of each rank, numbered over all hosts in order, shape (p,).
        :param hosts: names of the n hosts.
        :param slots: number of slots of each host, shape (n,).
        :raises MappingError: if a slot is out of range or taken twice, or there are fewer slots than ranks.
        """
        slot, count = np.asarray(slot_of_rank, dtype=np.int64), np.asarray(slots, dtype=np.int64)
        _one_to_one(slot, int(count.sum()))
        rank_of_slot = np.full(int(count.sum()), -1, dtype=np.int64)
        rank_of_slot[slot] = np.arange(len(slot))
        return cls(slot, rank_of_slot, tuple(hosts), count)

    @classmethod
    def on_hosts(cls, host_of_rank: ArrayLike, machine: Machine) -> Mapping:
        """Make the mapping of ranks to given hosts of a machine; on a host, ranks ascend from its first slot.

        :param host_of_rank: host of each rank, shape (p,).
        :param machine: hosts and their slots.
        :raises MappingError: if a host is out of range or has more ranks than slots.
        """
        host = np.asarray(host_of_rank, dtype=np.int64)
        if len(host) and not 0 <= host.min() <= host.max() < machine.num_hosts:
            raise MappingError(
                f"mapping: expecting hosts in range({machine.num_hosts}), got {host.min()} .. {host.max()}"
            )
        ranks = np.bincount(host, minlength=machine.num_hosts)
        if (ranks > machine.slots).any():
            full = int(np.argmax(ranks > machine.slots))
            raise MappingError(
                f"mapping: {machine.hosts[full]} has {machine.slots[full]} slots, got {ranks[full]} ranks"
            )
        order = np.argsort(host, kind="stable")
        slot = np.empty(len(host), dtype=np.int64)
        before = np.r_[0, np.cumsum(ranks)[:-1]]
        slot[order] = machine.first_slot[host[order]] + np.arange(len(host)) - before[host[order]]
        return cls.of(slot, machine.hosts, machine.slots)

    @classmethod
    def identity(cls, machine: Machine, size: int) -> Mapping:
        """Make the mapping of rank r to slot r: hosts are filled one after the other, in the machine's order."""
        return cls.of(np.arange(size), machine.hosts, machine.slots)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.slot_of_rank)

    @cached_property
    def host_of_rank(self) -> Integers:
        """The host of each rank, shape (ranks,)."""
        return np.repeat(np.arange(len(self.hosts)), self.slots)[self.slot_of_rank]

    @cached_property
    def digest(self) -> str:
        """An identifier of the allocation, from its hosts and slots."""
        return allocation_digest(self.hosts, self.slots)


def _one_to_one(slot: Integers, total: int) -> None:
    if slot.ndim != 1 or len(slot) > total:
        raise MappingError(f"mapping: expecting at most {total} ranks, one a slot, got {slot.size}")
    if len(slot) and not 0 <= slot.min() <= slot.max() < total:
        raise MappingError(f"mapping: expecting slots in range({total}), got {slot.min()} .. {slot.max()}")
    taken = np.bincount(slot, minlength=total)
    if (taken > 1).any():
        raise MappingError(f"mapping: slot {int(np.argmax(taken > 1))} is given to more than one rank")
