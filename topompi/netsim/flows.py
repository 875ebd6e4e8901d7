"""Messages as fluids that share links max-min fairly, event by event."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError
from .fairness import max_min
from .program import COMPUTE, SEND, Program
from .tape import Tape
from .wiring import Wiring

__all__ = ["Hosts", "Outcome", "run"]

Floats = NDArray[np.float64]

ROUNDING = 1e-9  # relative: sums of rates, and of bytes over rates
# Kinds of events; at one instant ranks go on after all that ends.
COMPUTED, RECEIVED, DEPART, START, TIMER = range(5)


@dataclass(frozen=True)
class Hosts:
    """What hosts add to the network; by default nothing.

    :param send_overhead: seconds of the sender's processor for each message; likewise ``receive_overhead``.
    :param copy_rate: bytes/s at which a rank receives from its own host, all its messages together.
    :param eager: bytes up to which a send is complete once it has been handed over; others wait for their receiver.
    :param skew: seconds within which the ranks of a job start, at random.
    """

    send_overhead: float = 0.0
    receive_overhead: float = 0.0
    copy_rate: float = np.inf
    eager: float = 0.0
    skew: float = 0.0

    def __post_init__(self) -> None:
        for name in ("send_overhead", "receive_overhead", "eager", "skew"):
            if not getattr(self, name) >= 0:
                raise NetsimError(f"hosts: {name}: expecting at least 0, got {getattr(self, name)}")
        if not self.copy_rate > 0:
            raise NetsimError(f"hosts: copy_rate: expecting more than 0 bytes/s, got {self.copy_rate}")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What programs took.

    :param job_seconds: from each job's start until its last rank is through, shape (jobs,).
    :param rank_seconds: when each rank of all jobs is through, from the start of its job, shape (ranks,).
    :param link_bytes: bytes that crossed each link, shape (links,).
    :param bounds: least seconds of each job for the bytes it has on its busiest link, shape (jobs,).
    """

    job_seconds: Floats
    rank_seconds: Floats
    link_bytes: Floats
    bounds: Floats


def run(
    wiring: Wiring, programs: Sequence[Program], *, hosts: Hosts | None = None, seed: int = 0, tolerance: float = 0.0
) -> Outcome:
    """The times of jobs that share a network.

    A message flows once its sender has handed it over and, unless eager, its receiver has posted it; after the
    latencies of its links it takes its max-min fair share of them.

    :param wiring: the network.
    :param programs: one a job.
    :param hosts: what the hosts add.
    :param seed: of the skew.
    :param tolerance: completions are taken together where none becomes later by more than this part of its flow's own
        time; no message is ever early. 0 is exact.
    :raises NetsimError: for programs that wait for ever, and for a time below a job's bound.
    Cost: Python for each message, and max-min fair rates of all flows at each instant at which one begins or ends.
    """
    if not tolerance >= 0:
        raise NetsimError(f"flows: expecting a tolerance of at least 0, got {tolerance}")
    hosts = hosts or Hosts()
    tape = Tape.of(wiring, programs, hosts.copy_rate)
    skew = np.random.default_rng(seed).uniform(0.0, 1.0, tape.num_ranks) * hosts.skew
    ends = _Run(tape, hosts, tape.start + skew, tolerance).ends() - tape.start
    jobs = np.array([ends[span].max(initial=0.0) for span in tape.spans])
    bounds = tape.bounds()
    for program, seconds, bound in zip(programs, jobs, bounds, strict=True):
        if seconds < bound * (1 - ROUNDING):
            raise NetsimError(f"flows: {program.name}: expecting at least {bound:g} s, got {seconds:g}")
    return Outcome(jobs, ends, tape.link_bytes(), bounds)


class _Run:
    """One run: ranks that work through their steps, and the flows between them."""

    def __init__(self, tape: Tape, hosts: Hosts, start: Floats, tolerance: float) -> None:
        self.tape, self.hosts, self.tolerance = tape, hosts, tolerance
        self.now = 0.0
        self.events: list[tuple[float, int, int]] = [(time, TIMER, rank) for rank, time in enumerate(start.tolist())]
        heapq.heapify(self.events)
        self.processor = start.copy()
        self.row = tape.first_row[:-1].copy()  # next operation of each rank
        self.oldest = tape.first_step[:-1].copy()  # first step that is incomplete
        self.pending = tape.operations.copy()  # of each step
        self.end = np.full(tape.num_ranks, np.nan)
        self.sent = np.zeros(len(tape.nbytes), dtype=bool)
        self.posted = np.zeros(len(tape.nbytes), dtype=bool)
        self.eager = tape.nbytes <= hosts.eager
        self.arrived = np.zeros(len(tape.nbytes), dtype=bool)
        self.remaining = tape.nbytes.copy()
        self.began = np.zeros(len(tape.nbytes))
        self.flows = np.empty(0, dtype=np.int64)
        self.rate = np.empty(0)
        self.fresh: list[int] = []  # flows that begin now

    def ends(self) -> Floats:
        """Seconds at which each rank is through."""
        while self.events or len(self.flows):
            done = self._completions()
            ahead = self.events[0][0] if self.events else np.inf
            self._flow_until(min(done, ahead))
            while self.events and self.events[0][0] <= self.now:
                self._handle(*heapq.heappop(self.events)[1:])
            self._share()
        if np.isnan(self.end).any():
            rank = int(np.flatnonzero(np.isnan(self.end))[0])
            raise NetsimError(f"flows: rank {rank}: expecting an end of its program, got a step that waits for ever")
        return self.end

    def _completions(self) -> float:
        """When the flows that end next have all ended."""
        if not len(self.flows):
            return np.inf
        finish = self.now + self.remaining[self.flows] / self.rate
        late = finish + self.tolerance * (finish - self.began[self.flows])
        return float(finish[finish <= late.min()].max())

    def _flow_until(self, time: float) -> None:
        self.remaining[self.flows] -= self.rate * (time - self.now) if time > self.now else 0.0
        self.now = time
        # Less than what a flow sends in the resolution of the clock is nothing.
        least = ROUNDING * self.tape.nbytes[self.flows] * 1e-3 + self.rate * 4 * np.spacing(time)
        done = self.remaining[self.flows] <= least
        ended = self.flows[done]
        self.flows, self.rate = self.flows[~done], self.rate[~done]
        for message in ended.tolist():
            self._arrive(message)

    def _share(self) -> None:
        """Rates for the flows that are there now."""
        self.flows = np.concatenate((self.flows, np.array(self.fresh, dtype=np.int64)))
        self.fresh = []
        self.rate = max_min(self.tape.paths[self.flows], self.tape.capacity)

    def _handle(self, kind: int, number: int) -> None:
        if kind == TIMER:
            self._advance(number)
        elif kind == COMPUTED:
            self._complete(int(self.tape.step_of_row[number]))
        elif kind == RECEIVED:
            self._complete(int(self.tape.receive_step[number]))
        elif kind == DEPART:
            self.sent[number] = True
            self._start(number, bool(self.eager[number] or self.posted[number]))
            if self.eager[number]:
                self._complete(int(self.tape.send_step[number]))
        elif self.remaining[number] > 0:
            self.began[number] = self.now
            self.fresh.append(number)
        else:
            self._arrive(number)

    def _advance(self, rank: int) -> None:
        """Let a rank do what its processor, its window and its program allow now."""
        tape, last = self.tape, self.tape.first_row[rank + 1]
        while self.row[rank] < last:
            row, window = int(self.row[rank]), tape.window[rank]
            if window and tape.step_of_row[row] - self.oldest[rank] >= window:
                return  # until a step is complete
            if self.processor[rank] > self.now:
                heapq.heappush(self.events, (float(self.processor[rank]), TIMER, rank))
                return
            self.row[rank] += 1
            self._begin(rank, row)
        if self.oldest[rank] == tape.first_step[rank + 1] and np.isnan(self.end[rank]):
            self.end[rank] = self.now

    def _begin(self, rank: int, row: int) -> None:
        """Start one operation of a rank whose processor is free."""
        kind, message = self.tape.kind[row], int(self.tape.message_of_row[row])
        if kind == COMPUTE:
            self._work(rank, float(self.tape.amount[row]), COMPUTED, row)
        elif kind == SEND:
            self._work(rank, self.hosts.send_overhead, DEPART, message)
        else:
            self.posted[message] = True
            self._start(message, bool(self.sent[message] and not self.eager[message]))
            if self.arrived[message]:
                self._work(rank, self.hosts.receive_overhead, RECEIVED, message)

    def _work(self, rank: int, seconds: float, kind: int, number: int) -> None:
        """Keep a rank's processor busy, and note an event for its end."""
        self.processor[rank] = max(float(self.processor[rank]), self.now) + seconds
        heapq.heappush(self.events, (float(self.processor[rank]), kind, number))

    def _start(self, message: int, ready: bool) -> None:
        """Let a message go, after its latencies, if all is ready that it waits for."""
        if ready:
            heapq.heappush(self.events, (self.now + float(self.tape.latency[message]), START, message))

    def _arrive(self, message: int) -> None:
        """The last byte of a message is at its receiver."""
        self.arrived[message] = True
        if self.posted[message]:
            self._work(int(self.tape.destination[message]), self.hosts.receive_overhead, RECEIVED, message)
        if not self.eager[message]:
            self._complete(int(self.tape.send_step[message]))

    def _complete(self, step: int) -> None:
        """One operation of a step is complete; so may be the step, and those before which it waited for."""
        self.pending[step] -= 1
        if self.pending[step]:
            return
        rank = int(self.tape.rank_of_step[step])
        while self.oldest[rank] < self.tape.first_step[rank + 1] and not self.pending[self.oldest[rank]]:
            self.oldest[rank] += 1
        heapq.heappush(self.events, (self.now, TIMER, rank))
