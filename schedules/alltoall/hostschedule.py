"""The compact form of an alltoall: a table of the host pairs that exchange in each step, and its expansion to ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..schedule import Schedule
from .pairs import Messages, PairPhase, Shares, of_pairs

__all__ = ["HostSchedule", "inside_first"]

Integers = NDArray[np.int64]
Rows = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class HostSchedule:
    """An alltoall as a table of exchanges between hosts: each row has a step, a sending host and a receiving host.

    A row with equal hosts is the exchange inside this host.

    A row from host i with k_i ranks to host j with k_j ranks stands for k_i * k_j messages in max(k_i, k_j) rounds: in
    round t the a-th rank of host i sends to the b-th rank of host j if b - a = t modulo max(k_i, k_j). In a round a
    rank thus sends at most one message of the row and receives at most one. Step s of the hosts becomes ``rounds[s]``
    steps of the ranks.

    If rotated, the a-th rank of each host begins at another host step and repeats all host steps in each round: with m
    ranks on the fullest host and S host steps, it begins at step a S / m. The ranks of a host then send to different
    hosts at a time, and a step of the ranks is a mixture of m host steps.

    :param algorithm: name of the generator, for display.
    :param rank_host: host of each rank, shape (p,).
    :param step: host step of each row, shape (rows,).
    :param source: sending host of each row, shape (rows,).
    :param destination: receiving host of each row, shape (rows,).
    :param rounds: number of rank steps of each host step, shape (host steps,).
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; None if all are equal.
    :param window: largest number of rank steps that a rank has in flight; 0 for no limit.
    :param rotated: whether each rank of a host begins with a different host step.
    :raises ValueError: if columns differ in length, or a row's step has no entry in ``rounds``.
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
    rotated: bool = False

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
        rotated: bool = False,
    ) -> HostSchedule:
        """Make a schedule from rows; each step gets as many rounds as the largest host in one of its rows has ranks.

        :param algorithm: name of the algorithm.
        :param rank_host: host of each rank, shape (p,).
        :param rows: step, source host and destination host of each row, shape (rows, 3), in any order.
        :param blocks: number of blocks that each rank sends to each rank.
        :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
        :param window: largest number of rank steps that a rank has in flight; 0 for no limit.
        :param rotated: whether each rank of a host begins with a different host step.
        """
        order = np.argsort(rows[:, 0], kind="stable")
        step, source, destination = rows[order].T.reshape(3, -1)
        ranks = np.bincount(rank_host)
        rounds = np.zeros(int(step.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(rounds, step, np.maximum(ranks[source], ranks[destination]))
        return cls(algorithm, rank_host, step, source, destination, rounds, blocks, counts, window, rotated)

    @property
    def num_host_steps(self) -> int:
        """Number of host steps, the steps of the table of exchanges between hosts."""
        return len(self.rounds)

    @property
    def num_steps(self) -> int:
        """Number of rank steps, the steps of the schedule of all ranks."""
        return self.num_host_steps * self._most if self.rotated else int(self.rounds.sum())

    @property
    def size(self) -> int:
        """Number of ranks, p."""
        return len(self.rank_host)

    def expand(self) -> Schedule:
        """The schedule of all p ranks; its p * p rows are computed when they are first read."""
        return of_pairs(self.algorithm, _BetweenHosts(self.num_steps, share=self._share, hosts=self), self.window)

    def rows_of(self, rank: int) -> Integers:
        """The rows of ``expand()`` that a rank takes part in, in the schedule's order, shape (rows, 9).

        The rows of other ranks are not computed.

        :raises ValueError: if ``rank`` is not in range(p).
        Cost: O(host-level rows + p).
        """
        return self.expand().rows_of(rank)

    @cached_property
    def _share(self) -> Shares:
        return Shares.of(self.size, self.blocks, self.counts)

    @cached_property
    def _ranks(self) -> Integers:
        """The number of ranks on each host."""
        hosts = 1 + max(int(self.source.max(initial=0)), int(self.destination.max(initial=0)))
        return np.bincount(self.rank_host, minlength=hosts)

    @cached_property
    def _most(self) -> int:
        """The number of ranks on the fullest host."""
        return int(self._ranks.max(initial=0))

    @cached_property
    def _ahead(self) -> Integers:
        """The host step with which the ranks at each place of a host begin, if rotated."""
        return np.arange(self._most) * self.num_host_steps // max(self._most, 1)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The ranks sorted by host, ascending within a host."""
        return np.argsort(self.rank_host, kind="stable")

    @cached_property
    def _first(self) -> Integers:
        """The position in ``_order`` of each host's first rank."""
        return np.cumsum(self._ranks) - self._ranks

    @cached_property
    def _start(self) -> Integers:
        return np.cumsum(self.rounds) - self.rounds

    def messages(self, row: Integers, sender: Integers, receiver: Integers) -> Messages:
        """The step, sending rank and receiving rank of messages, from their rows and the ranks' places in their hosts.

        :param row: host-level row of each message, shape (messages,).
        :param sender: place of the sending rank among the ranks of its host, shape (messages,).
        :param receiver: place of the receiving rank among the ranks of its host, shape (messages,).
        """
        source, destination = self.source[row], self.destination[row]
        if self.rotated:
            turn = (receiver - sender) % self._most
            step = turn * self.num_host_steps + (self.step[row] - self._ahead[sender]) % self.num_host_steps
        else:
            turns = np.maximum(self._ranks[source], self._ranks[destination])
            step = self._start[self.step[row]] + (receiver - sender) % turns
        ranks = self._order[self._first[source] + sender], self._order[self._first[destination] + receiver]
        return step, ranks[0].astype(np.int64), ranks[1].astype(np.int64)

    def messages_of(self, rank: int) -> Messages:
        """The messages that a rank sends or receives."""
        host = self.rank_host[rank]
        me = int(np.flatnonzero(self._order == rank)[0] - self._first[host])
        sent = np.flatnonzero(self.source == host)
        sent, peer = _repeat(sent, self._ranks[self.destination[sent]])
        received = np.flatnonzero(self.destination == host)
        received, other = _repeat(received, self._ranks[self.source[received]])
        new = (self.source[received] != host) | (other != me)  # the local move is already among the sent messages
        received, other = received[new], other[new]
        row = np.concatenate((sent, received))
        sender = np.concatenate((np.full(len(sent), me), other))
        receiver = np.concatenate((peer, np.full(len(received), me)))
        return self.messages(row, sender, receiver)

    def messages_at(self, steps: Integers) -> Messages:
        """The messages of the given rank steps."""
        if self.rotated:
            return self._rotated_at(steps)
        of_host = np.searchsorted(self._start, steps, side="right") - 1
        begin, end = (np.searchsorted(self.step, of_host, side=side) for side in ("left", "right"))
        which, place = _repeat(np.arange(len(steps)), end - begin)
        row, turn = begin[which] + place, (steps - self._start[of_host])[which]
        here, there = self._ranks[self.source[row]], self._ranks[self.destination[row]]
        most = np.maximum(here, there)
        row, turn, here, there, most = (column[turn < most] for column in (row, turn, here, there, most))
        # In each round all ranks of the host with fewer ranks have a message, so messages are listed by these ranks.
        which, member = _repeat(np.arange(len(row)), np.minimum(here, there))
        row, turn, most, sends = row[which], turn[which], most[which], (here <= there)[which]
        sender = np.where(sends, member, (member - turn) % most)
        receiver = np.where(sends, (member + turn) % most, member)
        return self.messages(row, sender, receiver)

    def _rotated_at(self, steps: Integers) -> Messages:
        place = np.tile(np.arange(self._most), len(steps))
        turn, step = np.divmod(np.repeat(steps, self._most), self.num_host_steps)
        of_host = (step + self._ahead[place]) % self.num_host_steps
        begin, end = (np.searchsorted(self.step, of_host, side=side) for side in ("left", "right"))
        which, nth = _repeat(np.arange(len(place)), end - begin)
        row, sender = begin[which] + nth, place[which]
        receiver = (sender + turn[which]) % self._most
        there = (sender < self._ranks[self.source[row]]) & (receiver < self._ranks[self.destination[row]])
        return self.messages(row[there], sender[there], receiver[there])


@dataclass(frozen=True, eq=False)
class _BetweenHosts(PairPhase):
    """The messages of a host schedule."""

    hosts: HostSchedule = field(kw_only=True)

    def pairs_of(self, rank: int) -> Messages:
        return self.hosts.messages_of(rank)

    def pairs_at(self, steps: Integers) -> Messages:
        return self.hosts.messages_at(steps)


def inside_first(rows: Integers, num_hosts: int) -> Integers:
    """The rows (step, source host, destination host) one step later, after a step 0 with the exchange inside hosts."""
    hosts = np.arange(num_hosts)
    return np.concatenate((np.column_stack((0 * hosts, hosts, hosts)), rows + np.array([1, 0, 0])))


def _repeat(values: Integers, times: Integers) -> tuple[Integers, Integers]:
    """Repeat each value the given number of times; also return the index of each repetition, from 0."""
    start = np.cumsum(times) - times
    return np.repeat(values, times), np.arange(int(times.sum())) - np.repeat(start, times)
