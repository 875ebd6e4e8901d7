"""The flow model without its extension in C: the same events in the same order, and rates of all flows by numpy."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fairness import max_min
from .program import BACKGROUND, COMPUTE, ONCE, REPEATS, SEND

__all__ = ["ENDLESS", "NO_TIME", "interpret"]

Integers = NDArray[np.int32]
Floats = NDArray[np.float64]

TIE, CLOCK = 1e-12, 1e-15  # relative, of a duration and of a time
# Kinds of events; at one instant ranks go on after all that ends.
COMPUTED, RECEIVED, DEPART, START, TIMER = range(5)
RUNS_ONCE, IN_BACKGROUND = REPEATS.index(ONCE), REPEATS.index(BACKGROUND)
OVER, ENDLESS, _NO_MEMORY, NO_TIME = range(4)


def interpret(
    arrays: tuple[NDArray[Any], ...], send_overhead: float, receive_overhead: float, eager: float, tolerance: float
) -> int:
    """Run the programs of a tape.

    :param arrays: ``Tape.arrays``, and two to fill in: seconds at which each rank is through, shape (ranks,), and how
        often each message has arrived, the last one perhaps in part, shape (messages,).
    :param send_overhead: seconds; likewise ``receive_overhead``.
    :param eager: bytes up to which a send does not wait for its receiver.
    :param tolerance: part of its own time by which a message may be late.
    :returns: ``OVER``, ``ENDLESS`` or ``NO_TIME``.
    """
    run = _Run(arrays, send_overhead, receive_overhead, eager, tolerance)
    while run.waiting and not run.idle:
        if not run.proceed():
            return ENDLESS
    run.count_parts()
    return NO_TIME if run.idle else OVER


class _Run:
    """Ranks that work through their steps, and the flows between them."""

    def __init__(
        self,
        arrays: tuple[NDArray[Any], ...],
        send_overhead: float,
        receive_overhead: float,
        eager: float,
        tolerance: float,
    ) -> None:
        (self.first_row, self.first_step, self.window, self.job_of_rank, self.kind, self.step_of_row) = arrays[:6]
        (self.message_of_row, self.operations, self.rank_of_step, self.destination, self.send_step) = arrays[6:11]
        (self.receive_step, self.first_rank, self.first_message, self.repeat, self.paths, start) = arrays[11:17]
        (self.amount, self.nbytes, self.latency, self.capacity, self.end, self.arrivals) = arrays[17:]
        self.send_overhead, self.receive_overhead, self.tolerance = send_overhead, receive_overhead, tolerance
        self.now, self.due = 0.0, np.inf
        self.events: list[tuple[float, int, int]] = [(time, TIMER, rank) for rank, time in enumerate(start.tolist())]
        heapq.heapify(self.events)
        self.processor = start.copy()
        self.row = self.first_row[:-1].copy()  # next operation of each rank
        self.oldest = self.first_step[:-1].copy()  # first step that is incomplete
        self.pending = self.operations.copy()
        self.left = np.diff(self.first_rank)  # ranks of each job that are not through
        self.began = np.full(len(self.left), -1.0)
        self.waiting = int(np.count_nonzero((self.repeat != IN_BACKGROUND) & (self.left > 0)))
        self.idle = False
        self.sent, self.posted, self.here = (np.zeros(len(self.nbytes), dtype=bool) for _ in range(3))
        self.eager = self.nbytes <= eager
        rates = np.append(self.capacity, np.inf)  # -1 is the last
        self.least = self.nbytes / rates[self.paths].min(axis=1, initial=np.inf)
        self.flows, self.rate = np.empty(0, dtype=np.int64), np.empty(0)
        self.remaining, self.updated, self.finish, self.starts = (np.empty(0) for _ in range(4))
        self.held = np.empty(0, dtype=bool)
        self.fresh: list[int] = []  # flows that begin when rates are next found

    def proceed(self) -> bool:
        """One thing that happens next; False if nothing does."""
        ends = self.finish[~self.held].min(initial=np.inf)
        event = self.events[0][0] if self.events else np.inf
        following = min(ends, event, self.due)
        if following == np.inf:
            return False
        self.now = max(self.now, float(following))
        if ends <= self.now:
            self._hold()
        elif self.held.any() and self.due <= self.now:
            self._release()
        elif event <= self.now:
            self._handle(*heapq.heappop(self.events)[1:])
        else:
            self._share()
        return True

    def count_parts(self) -> None:
        """Add the parts of messages that have flowed when all is over."""
        left = np.maximum(self.remaining - self.rate * (self.now - self.updated), 0.0)
        self.arrivals[self.flows] += 1 - left / self.nbytes[self.flows]

    def _hold(self) -> None:
        """Hold the flows that finish now, until they are due."""
        finished = ~self.held & (self.finish <= self.now)
        self.held |= finished
        finish = self.finish[finished]
        due = finish + (self.tolerance / 2 + TIE) * (finish - self.starts[finished]) + CLOCK * finish
        self.due = min(self.due, float(due.min()))

    def _release(self) -> None:
        """Let all arrive that is held."""
        arrived = np.sort(self.flows[self.held])
        self._keep(~self.held)
        for message in arrived.tolist():
            self._arrive(message)

    def _keep(self, flows: NDArray[np.bool_]) -> None:
        for name in ("flows", "rate", "remaining", "finish", "starts", "held", "updated"):
            setattr(self, name, getattr(self, name)[flows])

    def _share(self) -> None:
        """Rates for the flows that are there now."""
        fresh = np.array(self.fresh, dtype=np.int64)
        self.fresh, self.due = [], np.inf
        now, none = np.full(len(fresh), self.now), np.zeros(len(fresh))
        before = np.concatenate((self.rate, none))
        self.flows = np.concatenate((self.flows, fresh))
        self.remaining = np.concatenate((self.remaining, self.nbytes[fresh]))
        self.updated, self.starts = np.concatenate((self.updated, now)), np.concatenate((self.starts, now))
        self.held = np.concatenate((self.held, none > 0))
        self.rate = max_min(self.paths[self.flows], self.capacity)
        change = self.rate != before
        left = self.remaining - before * (self.now - self.updated)
        self.remaining = np.where(change, np.maximum(left, 0.0), self.remaining)
        self.updated = np.where(change, self.now, self.updated)
        self.finish = np.concatenate((self.finish, none))
        self.finish = np.where(change, self.now + self.remaining / self.rate, self.finish)

    def _handle(self, kind: int, number: int) -> None:
        if kind == TIMER:
            self._advance(number)
        elif kind == COMPUTED:
            self._complete(int(self.step_of_row[number]))
        elif kind == RECEIVED:
            self._complete(int(self.receive_step[number]))
        elif kind == DEPART:
            self.sent[number] = True
            self._start(number, bool(self.eager[number] or self.posted[number]))
            if self.eager[number]:
                self._complete(int(self.send_step[number]))
        elif self.least[number] == 0:
            self._arrive(number)
        else:
            self.fresh.append(number)
            late = self.tolerance / 2 * float(self.least[number]) + CLOCK * self.now
            self.due = min(self.due, self.now + late)

    def _advance(self, rank: int) -> None:
        """Let a rank do what its processor, its window and its program allow now."""
        last, steps = self.first_row[rank + 1], self.first_step[rank + 1]
        while self.row[rank] < last:
            row, window = int(self.row[rank]), self.window[rank]
            if window and self.step_of_row[row] - self.oldest[rank] >= window:
                return  # until a step is complete
            if self.processor[rank] > self.now:
                heapq.heappush(self.events, (float(self.processor[rank]), TIMER, rank))
                return
            self.row[rank] += 1
            self._begin(rank, row)
        if self.oldest[rank] == steps:
            self.oldest[rank] += 1  # it is through only once
            self._finish(rank)

    def _finish(self, rank: int) -> None:
        job = int(self.job_of_rank[rank])
        if np.isnan(self.end[rank]):
            self.end[rank] = self.now
            self.waiting -= int(self.left[job] == 1 and self.repeat[job] != IN_BACKGROUND)
        self.left[job] -= 1
        if self.left[job] or self.repeat[job] == RUNS_ONCE or not self.waiting:
            return
        if self.now <= self.began[job]:
            self.idle = True
            return
        self.began[job] = self.now
        self._again(job)

    def _again(self, job: int) -> None:
        """Set a job to its beginning."""
        ranks = slice(*self.first_rank[job : job + 2])
        messages = slice(*self.first_message[job : job + 2])
        steps = slice(self.first_step[ranks.start], self.first_step[ranks.stop])
        self.left[job] = ranks.stop - ranks.start
        self.sent[messages] = self.posted[messages] = self.here[messages] = False
        self.row[ranks], self.oldest[ranks] = self.first_row[:-1][ranks], self.first_step[:-1][ranks]
        self.pending[steps] = self.operations[steps]
        for rank in range(ranks.start, ranks.stop):
            heapq.heappush(self.events, (self.now, TIMER, rank))

    def _begin(self, rank: int, row: int) -> None:
        """Start one operation of a rank whose processor is free."""
        kind, message = self.kind[row], int(self.message_of_row[row])
        if kind == COMPUTE:
            self._work(rank, float(self.amount[row]), COMPUTED, row)
        elif kind == SEND:
            self._work(rank, self.send_overhead, DEPART, message)
        else:
            self.posted[message] = True
            self._start(message, bool(self.sent[message] and not self.eager[message]))
            if self.here[message]:
                self._work(rank, self.receive_overhead, RECEIVED, message)

    def _work(self, rank: int, seconds: float, kind: int, number: int) -> None:
        """Keep a rank's processor busy, and note an event for its end."""
        self.processor[rank] = max(float(self.processor[rank]), self.now) + seconds
        heapq.heappush(self.events, (float(self.processor[rank]), kind, number))

    def _start(self, message: int, ready: bool) -> None:
        """Let a message go, after its latencies, if all is ready that it waits for."""
        if ready:
            heapq.heappush(self.events, (self.now + float(self.latency[message]), START, message))

    def _arrive(self, message: int) -> None:
        """The last byte of a message is at its receiver."""
        self.here[message] = True
        self.arrivals[message] += 1
        if self.posted[message]:
            self._work(int(self.destination[message]), self.receive_overhead, RECEIVED, message)
        if not self.eager[message]:
            self._complete(int(self.send_step[message]))

    def _complete(self, step: int) -> None:
        """One operation of a step is complete; so may be the step, and those before which it waited for."""
        self.pending[step] -= 1
        if self.pending[step]:
            return
        rank = int(self.rank_of_step[step])
        while self.oldest[rank] < self.first_step[rank + 1] and not self.pending[self.oldest[rank]]:
            self.oldest[rank] += 1
        heapq.heappush(self.events, (self.now, TIMER, rank))
