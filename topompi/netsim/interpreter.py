"""The flow model in Python and numpy, used if its C extension is missing; events have the same order in both."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from .ranks import COMPUTED, DEPART, IN_BACKGROUND, RECEIVED, TIMER, Ranks
from .session import ENDLESS, NO_TIME, OVER

__all__ = ["Interpreter", "max_min"]

Floats = NDArray[np.float64]

TIE, CLOCK = 1e-12, 1e-15  # largest relative rounding errors of a duration and of a time
FULL = 1e-12  # relative difference up to which links count as full at the same time


class Interpreter(Ranks):
    """The ranks of all programs, and the flows (messages under way) between them; it implements ``Engine``.

    :param capacity: capacity of each link of the network in bytes/s, shape (links,).
    :param copy_rate: rate in bytes/s at which a rank receives all messages from ranks on its own host together.
    :param send_overhead: time of the sender's processor per message, in seconds.
    :param receive_overhead: time of the receiver's processor per message, in seconds.
    :param eager: size in bytes up to which a send does not wait for its receiver.
    :param tolerance: largest relative delay of a message.
    """

    def __init__(
        self,
        capacity: Floats,
        copy_rate: float,
        send_overhead: float,
        receive_overhead: float,
        eager: float,
        tolerance: float,
    ) -> None:
        super().__init__(capacity, copy_rate, send_overhead, receive_overhead, eager)
        self.tolerance, self.due = tolerance, np.inf
        self.flowing, self.rate = np.empty(0, dtype=np.int64), np.empty(0)
        self.remaining, self.updated, self.finish, self.starts = (np.empty(0) for _ in range(4))
        self.held = np.empty(0, dtype=bool)
        self.fresh: list[int] = []  # flows that begin when rates are next computed

    def remove(self, job: int, /) -> None:
        """Stop a job's ranks and remove its messages.

        :param job: number of the job, in the order in which jobs were added.
        """
        if self.over[job]:
            return
        self.over[job] = True
        first, last = self.first_message[job : job + 2]
        ranks = slice(*self.first_rank[job : job + 2])
        self.events = [event for event in self.events if self._job_of(*event[1:]) != job]
        heapq.heapify(self.events)
        self.waiting -= int(np.isnan(self.end[ranks]).any() and self.repeat[job] != IN_BACKGROUND)
        self.fresh = [one for one in self.fresh if not first <= one < last]
        gone = (self.flowing >= first) & (self.flowing < last)
        self.arrivals[self.flowing[gone]] += self._parts()[gone]
        if gone.any():
            self._keep(~gone)
            self.due = self.now

    def advance(self, until: float, to_end: bool, /) -> int:
        """Advance the time, and return the reason of the stop; see ``Engine``.

        :param until: time in seconds to advance to; ignored if ``to_end`` is True.
        :param to_end: whether to advance to the next end of a run.
        """
        limit = np.inf if to_end else until * (1 + 4 * CLOCK)
        self.ended, found = False, -1
        while found < 0 and not self.idle and not (to_end and self.ended):
            found = self._proceed(limit)
        if not to_end and not self.idle:
            self.now = max(self.now, until)
        return NO_TIME if self.idle else max(found, OVER)

    def read(self, ends: Floats, arrivals: Floats, /) -> None:
        """Write to ``ends`` when each rank ended its program's first run, to ``arrivals`` how often messages arrived.

        :param ends: array that receives the times in seconds, shape (ranks,); NaN for a rank still in its first run.
        :param arrivals: array that receives the number of times that each message arrived, plus the fraction of the
            message that has flowed if it is under way, shape (messages,).
        """
        ends[:], arrivals[:] = self.end, self.arrivals
        arrivals[self.flowing] += self._parts()

    def flows(self) -> list[tuple[int, float]]:
        """The messages that flow now, each with its rate in bytes/s."""
        here = self.finish > self.now
        return list(zip(self.flowing[here].tolist(), self.rate[here].tolist(), strict=True))

    def _proceed(self, limit: float) -> int:
        """Process the next event and return -1; return OVER if it is due after ``limit``, ENDLESS if there is none."""
        ends = self.finish[~self.held].min(initial=np.inf)
        event = self.events[0][0] if self.events else np.inf
        following = min(ends, event, self.due)
        if following > limit or following == np.inf:
            return ENDLESS if following == np.inf else OVER
        self.now = max(self.now, float(following))
        if ends <= self.now:
            self._hold()
        elif self.held.any() and self.due <= self.now:
            self._release()
        elif event <= self.now:
            self._handle(*heapq.heappop(self.events)[1:])
        else:
            self._share()
        return -1

    def _parts(self) -> Floats:
        """The fraction of each message under way that has flowed, shape (flows,)."""
        left = np.maximum(self.remaining - self.rate * (self.now - self.updated), 0.0)
        parts: Floats = 1 - left / self.nbytes[self.flowing]
        return parts

    def _hold(self) -> None:
        """Stop the flows that finish now, and keep their messages until they are due for delivery."""
        finished = ~self.held & (self.finish <= self.now)
        self.held |= finished
        finish = self.finish[finished]
        due = finish + (self.tolerance / 2 + TIE) * (finish - self.starts[finished]) + CLOCK * finish
        self.due = min(self.due, float(due.min()))

    def _release(self) -> None:
        """Deliver all messages that ``_hold`` kept."""
        arrived = np.sort(self.flowing[self.held])
        self._keep(~self.held)
        for message in arrived.tolist():
            self._arrive(message)

    def _keep(self, flows: NDArray[np.bool_]) -> None:
        for name in ("flowing", "rate", "remaining", "finish", "starts", "held", "updated"):
            setattr(self, name, getattr(self, name)[flows])

    def _share(self) -> None:
        """Compute the rates of the current flows."""
        fresh = np.array(self.fresh, dtype=np.int64)
        self.fresh, self.due = [], np.inf
        now, none = np.full(len(fresh), self.now), np.zeros(len(fresh))
        before = np.concatenate((self.rate, none))
        self.flowing = np.concatenate((self.flowing, fresh))
        self.remaining = np.concatenate((self.remaining, self.nbytes[fresh]))
        self.updated, self.starts = np.concatenate((self.updated, now)), np.concatenate((self.starts, now))
        self.held = np.concatenate((self.held, none > 0))
        self.rate = max_min(self.paths[self.flowing], self.capacity)
        change = self.rate != before
        left = self.remaining - before * (self.now - self.updated)
        self.remaining = np.where(change, np.maximum(left, 0.0), self.remaining)
        self.updated = np.where(change, self.now, self.updated)
        self.finish = np.concatenate((self.finish, none))
        self.finish = np.where(change, self.now + self.remaining / self.rate, self.finish)

    def _handle(self, kind: int, number: int) -> None:
        if kind == TIMER:
            self._go_on(number)
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


def max_min(paths: NDArray[np.integer], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rate of each flow in bytes/s, by progressive filling.

    The rates of all flows grow equally until a link is full; its flows keep their rate, and the others continue to grow
    (D. Bertsekas and R. Gallager, Data Networks, 2nd edition, 1992, 6.5.2).

    :param paths: links of each flow, shape (flows, longest), padded with -1; the rate of a flow without a link of
        finite capacity is infinite.
    :param capacity: capacity of each link in bytes/s, shape (links,).
    Cost: for each different rate, one pass over the links of the flows that still grow.
    """
    rate = np.full(len(paths), np.inf)
    flow, place = np.nonzero((paths >= 0) & np.isfinite(capacity)[paths])
    link = paths[flow, place]
    left = capacity.astype(np.float64)
    while len(flow):
        count = np.bincount(link, minlength=len(left))
        share = np.full(len(left), np.inf)
        np.divide(left, count, out=share, where=count > 0)
        level = share.min()
        stays = np.zeros(len(rate), dtype=bool)
        stays[flow[(share <= level * (1 + FULL))[link]]] = True
        rate[stays] = level
        fixed = stays[flow]
        left = np.maximum(left - level * np.bincount(link[fixed], minlength=len(left)), 0.0)
        flow, link = flow[~fixed], link[~fixed]
    return rate
