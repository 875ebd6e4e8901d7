"""The programs of all jobs as one set of columns, in which ranks, steps and messages are numbered through all jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..network import link_loads
from .errors import NetsimError
from .program import REPEATS, Program
from .tables import Tables
from .wiring import Wiring

__all__ = ["RecordedTraffic", "Tape", "marks_of", "waits_of"]

Integers = NDArray[np.int32]
Floats = NDArray[np.float64]

MOST = 2**31 - 1  # largest number of items numbered in 32 bits


@dataclass(frozen=True, eq=False)
class RecordedTraffic:
    """The messages of all jobs, with their bytes and links.

    :param paths: links of each message, shape (messages, longest), padded with -1; a message inside a host has one
        link, the receiver's copy link, numbered after the links of the network.
    :param nbytes: bytes of each message, shape (messages,).
    :param first_message: first message of each job, then the number of all messages, shape (jobs + 1,).
    :param rate: rate of the network's links in bytes/s, shape (links,); all programs of a session share the array.
    :param copy_rate: rate of each copy link in bytes/s.
    :param ranks: number of ranks, which is that of the copy links.
    """

    paths: Integers
    nbytes: Floats
    first_message: Integers
    rate: Floats
    copy_rate: float
    ranks: int

    def bounds(self) -> Floats:
        """The seconds that the busiest link of each job needs for the job's bytes, shape (jobs,)."""
        spans = [slice(*span) for span in pairwise(self.first_message.tolist())]
        capacity = np.append(self.rate, np.full(self.ranks, self.copy_rate))
        loads = (link_loads(self.paths[span], self.nbytes[span], len(capacity)) for span in spans)
        return np.array([(load / capacity).max(initial=0.0) for load in loads])


@dataclass(frozen=True, eq=False)
class Tape:
    """The programs of all jobs as columns; ranks, operations (rows), steps and messages are numbered through all jobs.

    :param first_rank: first rank of each job, then the number of all ranks, shape (jobs + 1,).
    :param first_message: first message of each job, then the number of all messages, shape (jobs + 1,).
    :param repeat: index of each job's repetition in ``REPEATS``, shape (jobs,).
    :param job_of_rank: job of each rank, shape (ranks,).
    :param start: time at which the job of each rank begins, in seconds, shape (ranks,).
    :param window: largest number of steps that each rank has in flight, shape (ranks,).
    :param first_row: first operation of each rank, then the number of all operations, shape (ranks + 1,).
    :param first_step: first step of each rank, then the number of all steps, shape (ranks + 1,).
    :param kind: kind of each operation, shape (rows,).
    :param amount: bytes or seconds of each operation, shape (rows,).
    :param step_of_row: step of each operation, shape (rows,).
    :param message_of_row: message of each operation, -1 for a compute burst, shape (rows,).
    :param after: step that must be complete before each operation begins, -1 for none, shape (rows,).
    :param operations: number of operations of each step, shape (steps,).
    :param rank_of_step: rank of each step, shape (steps,).
    :param mark_of_step: number of each step's name among the names of all jobs, -1 without a name, shape (steps,).
    :param first_mark: first name of each job, then the number of all names, shape (jobs + 1,).
    :param mark_size: number of ranks that have the step of each name, shape (names,).
    :param destination: receiving rank of each message, shape (messages,).
    :param latency: latency of each message in seconds, shape (messages,).
    :param send_step: step that sends each message, shape (messages,).
    :param receive_step: step that receives each message, shape (messages,).
    :param traffic: bytes and links of the messages.
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
    after: Integers
    operations: Integers
    rank_of_step: Integers
    mark_of_step: Integers
    first_mark: Integers
    mark_size: Integers
    destination: Integers
    latency: Floats
    send_step: Integers
    receive_step: Integers
    traffic: RecordedTraffic

    @property
    def num_ranks(self) -> int:
        """Number of ranks of all jobs."""
        return len(self.start)

    @classmethod
    def of(
        cls, wiring: Wiring | Tables, programs: Sequence[Program], copy_rate: float, copy_latency: float = 0.0
    ) -> Tape:
        """Make the columns of programs on a network.

        :param wiring: the network.
        :param programs: one program per job.
        :param copy_rate: rate in bytes/s at which a rank receives all messages from ranks on its own host together.
        :param copy_latency: latency of a message inside a host, in seconds.
        :raises NetsimError: if there is no program, a host does not exist, or two hosts have no route.
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
        paths = _paths(wiring, hosts, rank[send], rank[receive])
        if max(paths.size, len(rank)) > MOST:
            raise NetsimError(f"expecting at most {MOST:,} links of all messages together, got {paths.size:,}")
        marks, sizes_of_marks, mark_of_step = marks_of(programs, base, rank_of_step, step[begins])
        first_message = _whole(np.cumsum([0, *(len(one.nbytes) for one in found)]))
        nbytes = np.concatenate([one.nbytes for one in found])
        return cls(
            first_rank=_whole(base),
            first_message=first_message,
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
            after=waits_of(programs),
            operations=_whole(np.bincount(step_of_row, minlength=len(rank_of_step))),
            rank_of_step=_whole(rank_of_step),
            mark_of_step=mark_of_step,
            first_mark=marks,
            mark_size=sizes_of_marks,
            destination=_whole(rank[receive]),
            latency=_latency(paths, wiring.latency, copy_latency),
            send_step=_whole(step_of_row[send]),
            receive_step=_whole(step_of_row[receive]),
            traffic=RecordedTraffic(paths, nbytes, first_message, wiring.rate, copy_rate, len(hosts)),
        )

    def arrays(self, start: Floats) -> tuple[NDArray[np.generic], ...]:
        """The columns in the order in which engines take them.

        :param start: time at which each rank begins, in seconds, shape (ranks,).
        """
        return (
            *(self.window, self.job_of_rank, start, self.first_row, self.first_step),
            *(self.kind, self.amount, self.step_of_row, self.message_of_row, self.after),
            *(self.operations, self.rank_of_step, self.mark_of_step),
            *(
                self.destination,
                self.traffic.nbytes,
                self.latency,
                self.send_step,
                self.receive_step,
                self.traffic.paths,
            ),
            *(self.repeat, self.first_rank, self.first_message, self.first_mark, self.mark_size),
        )


def marks_of(
    programs: Sequence[Program], base: NDArray[np.int64], rank_of_step: NDArray[np.int64], step: NDArray[np.int64]
) -> tuple[Integers, Integers, Integers]:
    """The named steps of all jobs: first name of each job, number of ranks per name, and name of each step (or -1).

    :param programs: the jobs.
    :param base: first rank of each job, then the number of all ranks, shape (jobs + 1,).
    :param rank_of_step: rank of each step, ascending, shape (steps,).
    :param step: number of each step in its program, shape (steps,).
    """
    first = np.cumsum([0, *(len(one.marks) for one in programs)])
    mark_of_step = np.full(len(step), -1)
    for job, program in enumerate(programs):
        if program.named:
            here = slice(*np.searchsorted(rank_of_step, base[job : job + 2]))
            places = {one: place for place, one in enumerate(program.marks, int(first[job]))}
            mark_of_step[here] = [places.get(one, -1) for one in step[here].tolist()]
    sizes = np.bincount(mark_of_step[mark_of_step >= 0], minlength=int(first[-1]))
    return _whole(first), _whole(sizes), _whole(mark_of_step)


def waits_of(programs: Sequence[Program]) -> Integers:
    """The step that must be complete before each operation begins, through all jobs, -1 for none, shape (rows,).

    :param programs: the jobs.
    """
    found, first = [], 0
    for program in programs:
        steps, after = program.waits
        found.append(np.where(after < 0, -1, after + first))
        first += steps
    return _whole(np.concatenate([np.empty(0), *found]))


def _whole(numbers: ArrayLike) -> Integers:
    return np.ascontiguousarray(numbers, dtype=np.int32)


def _latency(paths: Integers, latency: Floats, copy_latency: float) -> Floats:
    """The sum of the latencies of each message's links in seconds, shape (messages,).

    The links' latencies are not copied, because a session would do so for each of its programs.
    """
    total = np.zeros(len(paths))
    for column in paths.T:
        of_link = latency[np.minimum(column, len(latency) - 1)] if len(latency) else np.zeros(len(column))
        total += np.where(column < 0, 0.0, np.where(column < len(latency), of_link, copy_latency))
    return total


def _paths(
    wiring: Wiring | Tables, hosts: NDArray[np.int64], source: NDArray[np.int64], destination: NDArray[np.int64]
) -> Integers:
    """The links of messages between ranks; the copy links of the ranks follow those of the network."""
    found = wiring.paths(hosts[source], hosts[destination])
    if not found.shape[1]:
        found = np.full((len(found), 1), -1, dtype=np.int32)
    inside = hosts[source] == hosts[destination]
    found[inside, 0] = len(wiring.rate) + destination[inside]
    return _whole(found)
