"""The programs of all jobs as one: ranks, steps and messages numbered through, and the links of each message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import NetsimError
from .program import REPEATS, Program
from .tables import Tables
from .wiring import Wiring

__all__ = ["Tape"]

Integers = NDArray[np.int32]
Floats = NDArray[np.float64]

MOST = 2**31 - 1  # of what is numbered in 32 bits


@dataclass(frozen=True, eq=False)
class Tape:
    """Columns of all jobs.

    :param first_rank: of each job, shape (jobs,), and the end; likewise ``first_message``.
    :param repeat: of each job, its place in ``REPEATS``.
    :param job_of_rank: shape (ranks,).
    :param start: seconds at which the job of each rank begins, shape (ranks,); likewise ``window``, and ``first_row``
        and ``first_step``, which have one entry more.
    :param kind: of each operation, shape (rows,); likewise ``amount``, ``step_of_row`` and ``message_of_row``, -1 for
        none.
    :param operations: of each step, shape (steps,); likewise ``rank_of_step``.
    :param destination: of each message, shape (messages,); likewise ``nbytes``, ``latency``, ``send_step`` and
        ``receive_step``.
    :param paths: links of each message, shape (messages, longest), padded with -1; a message inside a host has a link
        of its receiver's own, numbered after those of the network.
    :param capacity: bytes/s of all links.
    :param num_links: how many of them are the network's.
    """

    first_rank: Integers
    first_message: Integers
    repeat: Integers
    job_of_rank: Integers
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
    def of(
        cls, wiring: Wiring | Tables, programs: Sequence[Program], copy_rate: float, copy_latency: float = 0.0
    ) -> Tape:
        """The programs on a network.

        :param wiring: the network.
        :param programs: one a job.
        :param copy_rate: bytes/s at which a rank receives from its own host.
        :param copy_latency: seconds before such a message flows.
        :raises NetsimError: for no program, hosts that there are not, and hosts without a route.
        """
        if not programs:
            raise NetsimError("expecting at least one program, got none")
        for one in programs:
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
        if max(paths.size, len(rank)) > MOST:
            raise NetsimError(f"expecting at most {MOST:,} links of all messages together, got {paths.size:,}")
        latency = np.concatenate((wiring.latency, np.full(len(hosts), copy_latency), [0.0]))  # -1 is the last: none
        return cls(
            first_rank=_whole(base),
            first_message=_whole(np.cumsum([0, *(len(one.nbytes) for one in found)])),
            repeat=_whole([REPEATS.index(one.repeat) for one in programs]),
            job_of_rank=_whole(np.repeat(np.arange(len(sizes)), sizes)),
            start=np.repeat(np.array([one.start for one in programs], dtype=np.float64), sizes),
            window=_whole(np.repeat([one.window for one in programs], sizes)),
            first_row=_whole(np.searchsorted(rank, every)),
            first_step=_whole(np.searchsorted(rank_of_step, every)),
            kind=_whole(np.concatenate([one.kind for one in programs])),
            amount=np.concatenate([one.amount for one in programs]),
            step_of_row=_whole(step_of_row),
            message_of_row=_whole(message_of_row),
            operations=_whole(np.bincount(step_of_row, minlength=len(rank_of_step))),
            rank_of_step=_whole(rank_of_step),
            destination=_whole(rank[receive]),
            nbytes=np.concatenate([one.nbytes for one in found]),
            latency=sum((latency[column] for column in paths.T), np.zeros(len(paths))),
            send_step=_whole(step_of_row[send]),
            receive_step=_whole(step_of_row[receive]),
            paths=paths,
            capacity=capacity,
            num_links=len(wiring.rate),
        )

    def arrays(self, start: Floats) -> tuple[NDArray[Any], ...]:
        """The columns, in the order in which engines take them.

        :param start: seconds at which each rank begins, shape (ranks,).
        """
        return (
            *(self.first_row, self.first_step, self.window, self.job_of_rank, self.kind, self.step_of_row),
            *(self.message_of_row, self.operations, self.rank_of_step, self.destination, self.send_step),
            *(self.receive_step, self.first_rank, self.first_message, self.repeat, self.paths, start),
            *(self.amount, self.nbytes, self.latency, self.capacity),
        )

    def link_bytes(self, arrivals: Floats) -> Floats:
        """Bytes on each link of the network, shape (links,).

        :param arrivals: how often each message has arrived, the last one perhaps in part, shape (messages,).
        """
        return self._loads(slice(None), arrivals)[: self.num_links]

    def bounds(self) -> Floats:
        """Seconds that the busiest link of each job needs for the job's bytes, shape (jobs,)."""
        spans = (slice(*span) for span in pairwise(self.first_message.tolist()))
        return np.array([(self._loads(span) / self.capacity).max(initial=0.0) for span in spans])

    def _loads(self, messages: slice, times: Floats | int = 1) -> Floats:
        paths, nbytes = self.paths[messages], self.nbytes[messages] * times
        # What is padded counts for one link more.
        loads = np.zeros(len(self.capacity) + 1)
        for column in paths.T:
            loads += np.bincount(column + 1, nbytes, len(loads))
        return loads[1:]


def _whole(numbers: ArrayLike) -> Integers:
    return np.ascontiguousarray(numbers, dtype=np.int32)


def _paths(
    wiring: Wiring | Tables,
    hosts: NDArray[np.int64],
    source: NDArray[np.int64],
    destination: NDArray[np.int64],
    copy_rate: float,
) -> tuple[Integers, Floats]:
    """Links of messages between ranks, and the capacities of all links; each rank has one more, for copies."""
    found = wiring.paths(hosts[source], hosts[destination])
    if not found.shape[1]:
        found = np.full((len(found), 1), -1, dtype=np.int32)
    inside = hosts[source] == hosts[destination]
    found[inside, 0] = len(wiring.rate) + destination[inside]
    return _whole(found), np.append(wiring.rate, np.full(len(hosts), copy_rate)).astype(np.float64)
