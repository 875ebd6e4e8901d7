"""The programs of all jobs as one: ranks, steps and messages numbered through, and the links of each message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError
from .program import ONCE, Program
from .wiring import Wiring

__all__ = ["Tape"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tape:
    """Columns of all jobs.

    :param spans: ranks of each job.
    :param start: seconds at which the job of each rank begins, shape (ranks,); likewise ``window``, and ``first_row``
        and ``first_step``, which have one entry more.
    :param kind: of each operation, shape (rows,); likewise ``amount``, ``step_of_row`` and ``message_of_row``, -1 for
        none.
    :param operations: of each step, shape (steps,); likewise ``rank_of_step``.
    :param job: of each message, shape (messages,); likewise ``destination``, ``nbytes``, ``latency``, ``send_step`` and
        ``receive_step``.
    :param paths: links of each message, shape (messages, longest), padded with -1; a message inside a host has a link
        of its receiver's own, numbered after those of the network.
    :param capacity: bytes/s of all links.
    :param num_links: how many of them are the network's.
    """

    spans: tuple[slice, ...]
    start: Floats
    window: Integers
    first_row: Integers
    first_step: Integers
    kind: Integers
    amount: Floats
    step_of_row: Integers
    message_of_row: Integers
    operations: Integers
    rank_of_step: Integers
    job: Integers
    destination: Integers
    nbytes: Floats
    latency: Floats
    send_step: Integers
    receive_step: Integers
    paths: Integers
    capacity: Floats
    num_links: int

    @property
    def num_ranks(self) -> int:
        """Ranks of all jobs."""
        return len(self.start)

    @classmethod
    def of(cls, wiring: Wiring, programs: Sequence[Program], copy_rate: float) -> Tape:
        """The programs on a network.

        :param wiring: the network.
        :param programs: one a job.
        :param copy_rate: bytes/s at which a rank receives from its own host.
        :raises NetsimError: for no program, hosts that there are not, and hosts without a route.
        """
        if not programs:
            raise NetsimError("expecting at least one program, got none")
        for one in programs:
            if one.repeat != ONCE:
                raise NetsimError(f"{one.name}: repeat: expecting {ONCE} with flows, got {one.repeat}")
            if one.hosts.min(initial=0) < 0 or one.hosts.max(initial=-1) >= wiring.num_hosts:
                raise NetsimError(f"{one.name}: expecting hosts in range({wiring.num_hosts}), got {one.hosts.max()}")
        sizes = [one.num_ranks for one in programs]
        base = np.concatenate(([0], np.cumsum(sizes)))
        rank = np.concatenate([one.rank + first for one, first in zip(programs, base, strict=False)])
        step = np.concatenate([one.step for one in programs])
        hosts = np.concatenate([one.hosts for one in programs])
        begins = np.append(True, (np.diff(rank) != 0) | (np.diff(step) != 0))[: len(rank)]
        step_of_row = np.cumsum(begins) - 1
        rank_of_step = rank[begins]
        every = np.arange(base[-1] + 1)
        rows = np.cumsum([0, *(len(one.rank) for one in programs)])
        found = [one.messages for one in programs]
        send, receive = (
            np.concatenate([getattr(one, name) + first for one, first in zip(found, rows, strict=False)])
            for name in ("send_row", "receive_row")
        )
        message_of_row = np.full(len(rank), -1)
        message_of_row[send] = message_of_row[receive] = np.arange(len(send))
        paths, capacity = _paths(wiring, hosts, rank[send], rank[receive], copy_rate)
        latency = np.append(wiring.latency, np.zeros(len(capacity) - len(wiring.rate) + 1))  # -1 is the last: none
        return cls(
            spans=tuple(slice(a, b) for a, b in pairwise(base.tolist())),
            start=np.repeat([one.start for one in programs], sizes),
            window=np.repeat([one.window for one in programs], sizes),
            first_row=np.searchsorted(rank, every),
            first_step=np.searchsorted(rank_of_step, every),
            kind=np.concatenate([one.kind for one in programs]),
            amount=np.concatenate([one.amount for one in programs]),
            step_of_row=step_of_row,
            message_of_row=message_of_row,
            operations=np.bincount(step_of_row, minlength=len(rank_of_step)),
            rank_of_step=rank_of_step,
            job=np.repeat(np.arange(len(found)), [len(one.nbytes) for one in found]),
            destination=rank[receive],
            nbytes=np.concatenate([one.nbytes for one in found]),
            latency=latency[paths].sum(axis=1),
            send_step=step_of_row[send],
            receive_step=step_of_row[receive],
            paths=paths,
            capacity=capacity,
            num_links=len(wiring.rate),
        )

    def link_bytes(self) -> Floats:
        """Bytes on each link of the network, shape (links,)."""
        return self._loads(np.arange(len(self.nbytes)))[: self.num_links]

    def bounds(self) -> Floats:
        """Seconds that the busiest link of each job needs for the job's bytes, shape (jobs,)."""
        jobs = range(len(self.spans))
        return np.array(
            [(self._loads(np.flatnonzero(self.job == one)) / self.capacity).max(initial=0.0) for one in jobs]
        )

    def _loads(self, messages: NDArray[np.intp]) -> Floats:
        one, place = np.nonzero(self.paths[messages] >= 0)
        links = self.paths[messages[one], place]
        return np.bincount(links, weights=self.nbytes[messages[one]], minlength=len(self.capacity)).astype(np.float64)


def _paths(
    wiring: Wiring, hosts: Integers, source: Integers, destination: Integers, copy_rate: float
) -> tuple[Integers, Floats]:
    """Links of messages between ranks, and the capacities of all links; each rank has one more, for copies."""
    found = wiring.paths(hosts[source], hosts[destination])
    if not found.shape[1]:
        found = np.full((len(found), 1), -1)
    inside = hosts[source] == hosts[destination]
    found[inside] = -1
    found[inside, 0] = len(wiring.rate) + destination[inside]
    return found, np.append(wiring.rate, np.full(len(hosts), copy_rate))
