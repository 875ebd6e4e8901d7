"""Ranks that execute their programs, for the flow model without its C extension."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .program import BACKGROUND, COMPUTE, ONCE, REPEATS, SEND, UNTIL_ALL_RAN
from .session import END

__all__ = ["COMPUTED", "DEPART", "IN_BACKGROUND", "RECEIVED", "TIMER", "Ranks"]

Floats = NDArray[np.float64]

# Kinds of events. Events of one instant are processed in this order, so that a rank continues (TIMER) only after all
# operations that end at this instant have ended.
COMPUTED, RECEIVED, DEPART, START, TIMER = range(5)
RUNS_ONCE, UNTIL_OTHERS_RAN, IN_BACKGROUND = map(REPEATS.index, (ONCE, UNTIL_ALL_RAN, BACKGROUND))
# Columns in the order of ``Tape.arrays``, each with two words: its items (a column of "ranks" has one item per rank),
# and the things that its values index (ranks, rows, steps, ...; None for other values). A column of "ends" has
# the index of each job's or rank's first item and, last, the number of all items.
COLUMNS = {
    "window": ("ranks", None),
    "job_of_rank": ("ranks", "jobs"),
    "start": ("ranks", None),
    "first_row": ("ends", "rows"),
    "first_step": ("ends", "steps"),
    "kind": ("rows", None),
    "amount": ("rows", None),
    "step_of_row": ("rows", "steps"),
    "message_of_row": ("rows", "messages"),
    "after": ("rows", "steps"),
    "operations": ("steps", None),
    "rank_of_step": ("steps", "ranks"),
    "mark_of_step": ("steps", "marks"),
    "destination": ("messages", "ranks"),
    "nbytes": ("messages", None),
    "latency": ("messages", None),
    "send_step": ("messages", "steps"),
    "receive_step": ("messages", "steps"),
    "paths": ("messages", None),
    "repeat": ("jobs", None),
    "first_rank": ("ends", "ranks"),
    "first_message": ("ends", "messages"),
    "first_mark": ("ends", "marks"),
    "mark_size": ("marks", None),
}
COUNTED = {
    "ranks": "window",
    "rows": "kind",
    "steps": "operations",
    "messages": "nbytes",
    "jobs": "repeat",
    "marks": "mark_size",
}


class Ranks:
    """The programs of all jobs as arrays ("columns"), and the progress of their ranks.

    :param capacity: capacity of each link of the network in bytes/s, shape (links,).
    :param copy_rate: rate in bytes/s at which a rank receives all messages from ranks on its own host together.
    :param send_overhead: time of the sender's processor per message, in seconds.
    :param receive_overhead: time of the receiver's processor per message, in seconds.
    :param eager: size in bytes up to which a send does not wait for its receiver.
    """

    def __init__(
        self, capacity: Floats, copy_rate: float, send_overhead: float, receive_overhead: float, eager: float
    ) -> None:
        self.capacity, self.copy_rate, self.num_links = capacity, copy_rate, len(capacity)
        self.send_overhead, self.receive_overhead, self.most_eager = send_overhead, receive_overhead, eager
        self.now, self.waiting = 0.0, 0
        self.events: list[tuple[float, int, int]] = []
        self.idle = self.ended = False
        self.noted: list[tuple[float, int, int]] = []
        self.columns: dict[str, NDArray[Any]] = {}
        whole, real, none = np.empty(0, dtype=np.int32), np.empty(0), np.empty(0, dtype=bool)
        self.row, self.oldest, self.pending, self.left, self.mark_left = whole, whole, whole, whole, whole
        self.end, self.processor, self.began, self.arrivals, self.least = real, real, real, real, real
        self.sent, self.posted, self.here, self.eager, self.over = none, none, none, none, none

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A column; columns exist once a program is added."""

    def add(self, arrays: tuple[NDArray[Any], ...], /) -> None:
        """Add jobs.

        :param arrays: columns of the jobs, from ``Tape.arrays``.
        """
        had = {group: len(self.columns[column]) if self.columns else 0 for group, column in COUNTED.items()}
        new = dict(zip(COLUMNS, arrays, strict=True))
        self._append(new, had)
        ranks, jobs = had["ranks"], had["jobs"]
        rates = np.append(self.capacity, np.inf)  # the last item is the rate of padding, -1
        least = new["nbytes"] / rates[self.columns["paths"][had["messages"] :]].min(axis=1, initial=np.inf)
        none = np.zeros(len(new["nbytes"]), dtype=bool)
        for name, more in {
            "row": self.first_row[ranks:-1],
            "oldest": self.first_step[ranks:-1],
            "pending": new["operations"],
            "left": np.diff(new["first_rank"]),
            "began": np.full(len(new["repeat"]), -1.0),
            "mark_left": new["mark_size"],
            "end": np.full(len(new["window"]), np.nan),
            "processor": np.maximum(new["start"], self.now),
            "arrivals": np.zeros(len(none)),
            "least": least,
            "sent": none,
            "posted": none,
            "here": none,
            "eager": new["nbytes"] <= self.most_eager,
            "over": np.diff(new["first_rank"]) == 0,
        }.items():
            setattr(self, name, np.concatenate((getattr(self, name), more)))
        self.waiting += int(np.count_nonzero((self.repeat[jobs:] != IN_BACKGROUND) & (self.left[jobs:] > 0)))
        for rank, time in enumerate(self.processor[ranks:].tolist(), ranks):
            heapq.heappush(self.events, (time, TIMER, rank))

    def _append(self, new: dict[str, NDArray[Any]], had: dict[str, int]) -> None:
        """Append columns of new jobs to the existing columns; ranks, steps and messages are renumbered to follow these.

        :param new: columns of the new jobs, by name.
        :param had: number of existing ranks, rows, steps, messages, jobs and marks, by these words.
        """
        new["paths"] = np.where(new["paths"] < self.num_links, new["paths"], new["paths"] + had["ranks"])
        if self.columns:
            longest = max(one["paths"].shape[1] for one in (self.columns, new))
            for one in (self.columns, new):
                short = longest - one["paths"].shape[1]
                one["paths"] = np.pad(one["paths"], ((0, 0), (0, short)), constant_values=-1)
        for name, (group, numbers) in COLUMNS.items():
            more = new[name] if numbers is None else np.where(new[name] < 0, -1, new[name] + had[numbers])
            before = self.columns.get(name, more[:0])
            self.columns[name] = np.concatenate((before[:-1] if group == "ends" else before, more))
            setattr(self, name, self.columns[name])
        self.capacity = np.append(self.capacity, np.full(len(new["window"]), self.copy_rate))

    def _job_of(self, kind: int, number: int) -> int:
        """The job to which an event belongs.

        :param kind: kind of the event, for example ``TIMER``.
        :param number: number of the event's operation, message or rank, according to its kind.
        """
        if kind == COMPUTED:
            number = self.rank_of_step[self.step_of_row[number]]
        elif kind != TIMER:
            number = self.destination[number]
        return int(self.job_of_rank[number])

    def records(self) -> list[tuple[float, int, int]]:
        """The records since the last call, sorted by time.

        A record is (time in seconds, job, number of the completed named step), or has -1 as its number if a run ended.
        """
        noted, self.noted = self.noted, []
        return noted

    def _go_on(self, rank: int) -> None:
        """Start a rank's next operations, as many as its processor and its window of steps allow now."""
        last, steps = self.first_row[rank + 1], self.first_step[rank + 1]
        while self.row[rank] < last:
            row, window = int(self.row[rank]), self.window[rank]
            if window and self.step_of_row[row] - self.oldest[rank] >= window:
                return  # because the window is full; `_complete` schedules the rank again
            if self.after[row] >= 0 and self.pending[self.after[row]]:
                return
            if self.processor[rank] > self.now:
                heapq.heappush(self.events, (float(self.processor[rank]), TIMER, rank))
                return
            self.row[rank] += 1
            self._begin(rank, row)
        if self.oldest[rank] == steps:
            self.oldest[rank] += 1  # so that the rank finishes only once
            self._finish(rank)

    def _finish(self, rank: int) -> None:
        job = int(self.job_of_rank[rank])
        if np.isnan(self.end[rank]):
            self.end[rank] = self.now
            self.waiting -= int(self.left[job] == 1 and self.repeat[job] != IN_BACKGROUND)
        self.left[job] -= 1
        if self.left[job]:
            return
        self.noted.append((self.now, job, END))
        self.ended = True
        if self.repeat[job] == RUNS_ONCE or (self.repeat[job] == UNTIL_OTHERS_RAN and not self.waiting):
            self.over[job] = True
        elif self.now <= self.began[job]:
            self.idle = True
        else:
            self.began[job] = self.now
            self._again(job)

    def _again(self, job: int) -> None:
        """Begin the next run of a job that repeats."""
        ranks = slice(*self.first_rank[job : job + 2])
        messages = slice(*self.first_message[job : job + 2])
        steps = slice(self.first_step[ranks.start], self.first_step[ranks.stop])
        self.left[job] = ranks.stop - ranks.start
        self.sent[messages] = self.posted[messages] = self.here[messages] = False
        self.row[ranks], self.oldest[ranks] = self.first_row[:-1][ranks], self.first_step[:-1][ranks]
        self.pending[steps] = self.operations[steps]
        marks = slice(*self.first_mark[job : job + 2])
        self.mark_left[marks] = self.mark_size[marks]
        for rank in range(ranks.start, ranks.stop):
            heapq.heappush(self.events, (self.now, TIMER, rank))

    def _begin(self, rank: int, row: int) -> None:
        """Start one operation of a rank with a free processor."""
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
        """Occupy a rank's processor for some time, and schedule the event at the end of this time.

        :param rank: number of the rank.
        :param seconds: the time in seconds.
        :param kind: kind of the event.
        :param number: number of the event's operation or message.
        """
        self.processor[rank] = max(float(self.processor[rank]), self.now) + seconds
        heapq.heappush(self.events, (float(self.processor[rank]), kind, number))

    def _start(self, message: int, ready: bool) -> None:
        """Schedule the start of a message after its links' latencies if it is ready; otherwise do nothing.

        :param message: number of the message.
        :param ready: True if the message has been sent and, unless it is eager, its receive has been posted.
        """
        if ready:
            heapq.heappush(self.events, (self.now + float(self.latency[message]), START, message))

    def _arrive(self, message: int) -> None:
        """Record that the last byte of a message has arrived at its receiver."""
        self.here[message] = True
        self.arrivals[message] += 1
        if self.posted[message]:
            self._work(int(self.destination[message]), self.receive_overhead, RECEIVED, message)
        if not self.eager[message]:
            self._complete(int(self.send_step[message]))

    def _complete(self, step: int) -> None:
        """Record that one operation of a step is complete, which may complete the step and unblock the rank."""
        self.pending[step] -= 1
        if self.pending[step]:
            return
        rank, mark = int(self.rank_of_step[step]), int(self.mark_of_step[step])
        if mark >= 0:
            self.mark_left[mark] -= 1
            if not self.mark_left[mark]:
                self.noted.append((self.now, int(self.job_of_rank[rank]), mark))
        while self.oldest[rank] < self.first_step[rank + 1] and not self.pending[self.oldest[rank]]:
            self.oldest[rank] += 1
        heapq.heappush(self.events, (self.now, TIMER, rank))
