"""The compact form of an alltoall: which host sends to which in which step, and the rule that makes ranks of hosts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..schedule import COPY, INPUT, OUTPUT, Schedule

__all__ = ["HostSchedule", "inside_first"]

Integers = NDArray[np.int64]
Column = NDArray[np.int32]
Rows = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class HostSchedule:
    """An alltoall as exchanges between hosts; a row with source == destination is the exchange inside a host.

    A row of hosts i, j with k_i, k_j ranks stands for k_i * k_j messages in max(k_i, k_j) rounds: in round t the a-th
    rank of host i sends to the b-th rank of host j where b - a = t modulo max(k_i, k_j). So in each round a rank
    sends at most one message of the row and receives at most one. Step s of the hosts becomes ``rounds[s]`` steps of
    the ranks.

    :param algorithm: the generator's name, for people.
    :param rank_host: host of each rank, shape (p,).
    :param step: host-level step of each row, shape (rows,); likewise ``source`` and ``destination``, hosts.
    :param rounds: steps of the ranks that each step of the hosts takes, shape (steps,).
    :param blocks: blocks of one message.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; None where alike.
    :param window: steps of the ranks in flight at most, as in ``Schedule``.
    :raises ValueError: for columns of unlike length, or a step without its rounds.
    Memory: O(rows + p), and O(p^2) only with ``counts``.
    """

    algorithm: str
    rank_host: Integers
    step: Rows
    source: Rows
    destination: Rows
    rounds: Integers
    blocks: int = 1
    counts: Integers | None = None
    window: int = 1

    def __post_init__(self) -> None:
        for name in ("step", "source", "destination"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.int32))
            getattr(self, name).setflags(write=False)
        if not len(self.step) == len(self.source) == len(self.destination):
            raise ValueError("expecting columns of one length")
        if len(self.step) and not 0 <= self.step.min() <= self.step.max() < len(self.rounds):
            raise ValueError(f"expecting steps in range({len(self.rounds)}), got {self.step.min()}..{self.step.max()}")

    @classmethod
    def of_rows(
        cls,
        algorithm: str,
        rank_host: Integers,
        rows: Integers,
        *,
        blocks: int = 1,
        counts: Integers | None = None,
        window: int = 1,
    ) -> HostSchedule:
        """A schedule from rows (step, source host, destination host) in any order, shape (rows, 3), each step with as
        many rounds as its widest row needs."""
        order = np.argsort(rows[:, 0], kind="stable")
        step, source, destination = rows[order].T.reshape(3, -1)
        ranks = np.bincount(rank_host)
        rounds = np.zeros(int(step.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(rounds, step, np.maximum(ranks[source], ranks[destination]))
        return cls(algorithm, rank_host, step, source, destination, rounds, blocks, counts, window)

    @property
    def num_host_steps(self) -> int:
        """Number of steps of the hosts."""
        return len(self.rounds)

    @property
    def num_steps(self) -> int:
        """Number of steps of the ranks."""
        return int(self.rounds.sum())

    @property
    def size(self) -> int:
        """Number of ranks, p."""
        return len(self.rank_host)

    def expand(self) -> Schedule:
        """The schedule of all ranks: p * p rows, for checking and simulating."""
        rows = np.arange(len(self.step))
        inner = self._ranks[self.destination]
        row, place = _repeat(rows, self._ranks[self.source] * inner)
        columns = self._columns(row, place // inner[row], place % inner[row])
        return Schedule(
            "alltoall",
            self.size,
            self.algorithm,
            root=None,
            blocks=self.blocks,
            counts=self.counts,
            independent=True,
            window=self.window,
            **columns,
        )

    def rows_of(self, rank: int) -> Integers:
        """The rows of ``expand()`` that a rank takes part in, in their order, shape (rows, 9), without making the
        others'.

        :raises ValueError: for a rank that there is not.
        Cost: O(host-level rows + p).
        """
        if not 0 <= rank < self.size:
            raise ValueError(f"expecting rank in range({self.size}), got {rank}")
        host = self.rank_host[rank]
        me = int(np.flatnonzero(self._order == rank)[0] - self._first[host])
        sent = np.flatnonzero(self.source == host)
        sent, peer = _repeat(sent, self._ranks[self.destination[sent]])
        received = np.flatnonzero(self.destination == host)
        received, other = _repeat(received, self._ranks[self.source[received]])
        new = (self.source[received] != host) | (other != me)  # the local move stands among the sent ones already
        received, other = received[new], other[new]
        row = np.concatenate((sent, received))
        sender = np.concatenate((np.full(len(sent), me), other))
        receiver = np.concatenate((peer, np.full(len(received), me)))
        return np.stack(list(self._columns(row, sender, receiver).values()), axis=1).astype(np.int64)

    @cached_property
    def _ranks(self) -> Integers:
        """Ranks of each host."""
        hosts = 1 + max(int(self.source.max(initial=0)), int(self.destination.max(initial=0)))
        return np.bincount(self.rank_host, minlength=hosts)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The ranks by host, ascending."""
        return np.argsort(self.rank_host, kind="stable")

    @cached_property
    def _first(self) -> Integers:
        """Where each host's ranks begin in ``_order``; likewise, of steps, ``_start``."""
        return np.cumsum(self._ranks) - self._ranks

    @cached_property
    def _start(self) -> Integers:
        return np.cumsum(self.rounds) - self.rounds

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        """Where the block of each pair begins in the sender's input and in the receiver's output, each (p, p)."""
        counts = np.asarray(self.counts, dtype=np.int64)
        return np.cumsum(counts, axis=1) - counts, np.cumsum(counts, axis=0) - counts

    def _columns(self, row: Integers, sender: Integers, receiver: Integers) -> dict[str, Column]:
        """The columns of messages, given by host-level row and places within the two hosts, in the order of steps."""
        step, source, destination = self._messages(row, sender, receiver)
        if self.counts is None:
            begin, end, count = destination * self.blocks, source * self.blocks, np.full_like(source, self.blocks)
        else:
            counts = np.asarray(self.counts, dtype=np.int64)
            carried = np.flatnonzero(counts[source, destination])
            step, source, destination = step[carried], source[carried], destination[carried]
            tables = (*self._places, counts)
            begin, end, count = (table[source, destination].astype(np.int32) for table in tables)
        return {
            "step": step,
            "source": source,
            "destination": destination,
            "source_buffer": np.full_like(source, INPUT),
            "source_block": begin,
            "destination_buffer": np.full_like(source, OUTPUT),
            "destination_block": end,
            "count": count,
            "operation": np.full_like(source, COPY),
        }

    def _messages(self, row: Integers, sender: Integers, receiver: Integers) -> tuple[Column, Column, Column]:
        """Step, source and destination of messages between ranks, sorted by these."""
        source, destination = self.source[row], self.destination[row]
        turns = np.maximum(self._ranks[source], self._ranks[destination])
        step = self._start[self.step[row]] + (receiver - sender) % turns
        source = self._order[self._first[source] + sender]
        destination = self._order[self._first[destination] + receiver]
        order = np.argsort((step * self.size + source) * self.size + destination, kind="stable")
        return step[order].astype(np.int32), source[order].astype(np.int32), destination[order].astype(np.int32)


def inside_first(rows: Integers, num_hosts: int) -> Integers:
    """Rows (step, source host, destination host) with the exchange inside the hosts as step 0, all else one later."""
    hosts = np.arange(num_hosts)
    return np.concatenate((np.column_stack((0 * hosts, hosts, hosts)), rows + np.array([1, 0, 0])))


def _repeat(values: Integers, times: Integers) -> tuple[Integers, Integers]:
    """Each value so many times, and the number of the repetition, from 0."""
    start = np.cumsum(times) - times
    return np.repeat(values, times), np.arange(int(times.sum())) - np.repeat(start, times)
