"""Sessions: simulations of a network whose time the caller advances, and whose programs start and stop at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError
from .program import BACKGROUND, ONCE, Program

__all__ = ["END", "ENDLESS", "NO_TIME", "OVER", "Engine", "Programs", "Rates", "Runs", "Session"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Reasons why an engine stopped: the time is over; nothing more can happen; no memory; a repeated program takes no time.
OVER, ENDLESS, _NO_MEMORY, NO_TIME = range(4)
END = -1  # third entry of a record of an engine if a run ended; else the entry is the number of a named step


@dataclass(frozen=True, eq=False)
class Runs:
    """The times of a program's runs; each run begins when the one before it ends.

    :param begin: time at which the first run begins, in seconds.
    :param ends: time at which each run ended, in seconds, shape (runs,).
    :param steps: for each name in ``Program.named``, the time in seconds at which the last rank completed the step in
        each run, including the current run if it has completed the step.
    """

    begin: float
    ends: Floats
    steps: dict[str, Floats]

    @property
    def seconds(self) -> Floats:
        """The duration of each run in seconds, shape (runs,)."""
        return np.diff(self.ends, prepend=self.begin)


@dataclass(frozen=True, eq=False)
class Rates:
    """The rates of the messages that flow at one instant, one entry per message.

    :param handle: handle of each message's program, shape (flows,).
    :param message: index of each message in ``Program.messages``, shape (flows,).
    :param rate: rate of each message in bytes/s, shape (flows,).
    """

    handle: Integers
    message: Integers
    rate: Floats


class Session(Protocol):
    """An interface for simulated networks to which programs are added, and from which they are removed, at any time.

    Times are seconds from the beginning of the session. Each added program has a handle, which identifies it in all
    other methods, also after it has ended or was removed.
    """

    @property
    def now(self) -> float:
        """The current time in seconds."""

    @property
    def waiting(self) -> int:
        """Number of programs outside the background that have not ended their first run."""

    def add(self, program: Program, at: float | None = None) -> int:
        """Add a program, and return its handle.

        :param program: program to add. With ``BACKGROUND`` it repeats until it is removed, with ``UNTIL_ALL_RAN`` until
            every present program without ``BACKGROUND`` has run once.
        :param at: time at which it begins, in seconds, not in the past; by default ``Program.start``, or now if that is
            past.
        :raises NetsimError: if the time is past, or the program does not fit the network.
        """

    def remove(self, handle: int) -> None:
        """Remove a program: its ranks stop, and its messages leave the network. Ended programs need no removal.

        :param handle: handle from ``add``.
        :raises NetsimError: if the handle is unknown, or the program is removed already.
        """

    def advance(self, until: float | None = None) -> list[int]:
        """Advance the time, and return the handles of the programs that ended a run, in the order of these ends.

        :param until: time in seconds to advance to, including all events at this time; by default the time of the next
            end of a run, before any further event at that time.
        :raises NetsimError: if the time is past, programs wait forever, a repeated program takes no time, or, without
            ``until``, no program runs.
        """

    def runs(self, handle: int) -> Runs:
        """The times of a program's runs.

        :param handle: handle from ``add``.
        """

    def rates(self) -> Rates:
        """The messages that flow now, and their rates."""

    def loads(self) -> Floats:
        """The rate in bytes/s at which bytes cross each link now, shape (links,)."""

    def link_bytes(self) -> Floats:
        """The bytes that have crossed each link so far, shape (links,)."""


class Engine(Protocol):
    """An interface for a network model's simulation of events, on which `Programs` builds a session.

    Jobs are numbered in the order in which they are added. `Programs` checks the arguments, and knows the names of
    jobs and steps.
    """

    @property
    def now(self) -> float:
        """The current time in seconds."""

    @property
    def waiting(self) -> int:
        """Number of jobs outside the background that have not ended their first run."""

    def advance(self, until: float, to_end: bool, /) -> int:
        """Advance the time, and return the reason of the stop.

        :param until: time in seconds to advance to; ignored if ``to_end`` is True.
        :param to_end: whether to advance to the next end of a run.
        :returns: ``OVER`` at the wanted time, ``ENDLESS`` if no event is left, ``NO_TIME`` if a repeated program takes
            no time.
        """

    def remove(self, job: int, /) -> None:
        """Stop a job's ranks and remove its messages.

        :param job: number of the job.
        """

    def records(self) -> list[tuple[float, int, int]]:
        """The records since the last call, sorted by time.

        A record is (time in seconds, job, number). The number is ``END`` if the job ended a run; else the job completed
        a named step (a step in the job's ``Program.named``), and it is the number of this step, counted from 0 through
        the named steps of all jobs.
        """


@dataclass(eq=False)
class _Entry:
    """A program of a session, with the times of its runs and named steps so far.

    Named steps (those in ``Program.named``) are numbered through all programs of the session.

    :param program: the program.
    :param begin: time at which the first run begins, in seconds.
    :param first_mark: number of the program's first named step.
    :param ends: time at which each run ended, in seconds.
    :param marks: times at which each named step was complete, in seconds, by its index among the program's named steps.
    :param removed: whether the program was removed.
    """

    program: Program
    begin: float
    first_mark: int
    ends: list[float] = field(default_factory=list)
    marks: dict[int, list[float]] = field(default_factory=dict)
    removed: bool = False


class Programs:
    """The base class of sessions of flows and of packets: programs by handle, and the times of their runs.

    :param model: name of the network model, for errors.
    :param engine: simulation of the model's events.
    """

    def __init__(self, model: str, engine: Engine) -> None:
        self._model, self._events = model, engine
        self._now = 0.0
        self._entries: list[_Entry] = []
        self._first_rank = self._first_message = np.zeros(1, dtype=np.int64)  # of each program, then the total
        self._marks = 0

    @property
    def now(self) -> float:
        """The current time in seconds."""
        return self._now

    @property
    def waiting(self) -> int:
        """Number of programs outside the background that have not ended their first run."""
        return self._events.waiting

    def add(self, program: Program, at: float | None = None) -> int:
        """Add a program, and return its handle; see ``Session``.

        :param program: the job.
        :param at: time at which the program begins, in seconds; by default ``Program.start``, or now if that is past.
        """
        begin = max(program.start, self._now) if at is None else float(at)
        if not (np.isfinite(begin) and begin >= self._now):
            raise NetsimError(
                f"{self._model}: {program.name}: expecting a begin from {self._now:g} s on, got {begin:g}"
            )
        self._enter([program], np.array([begin]))
        return len(self._entries) - 1

    def _enter(self, programs: Sequence[Program], begins: Floats) -> None:
        """Add several programs at once; a model extends this by adding them to its engine."""
        for program, begin in zip(programs, begins.tolist(), strict=True):
            self._entries.append(_Entry(program, begin, self._marks))
            self._marks += len(program.marks)
        self._first_rank = _counted_on(self._first_rank, [one.num_ranks for one in programs])
        self._first_message = _counted_on(self._first_message, [len(one.messages.nbytes) for one in programs])

    def _rates(self, message: Integers, rate: Floats) -> Rates:
        """Convert message numbers to programs and the programs' own message numbers.

        :param message: number of each message, counted through all programs.
        :param rate: rate of each message in bytes/s.
        """
        handle = np.searchsorted(self._first_message, message, "right") - 1
        return Rates(handle, message - self._first_message[handle], rate)

    def remove(self, handle: int) -> None:
        """Remove a program; see ``Session``.

        :param handle: handle from ``add``.
        """
        entry = self._entry(handle)
        if entry.removed:
            raise NetsimError(
                f"{self._model}: {entry.program.name}: expecting a program that is there, got one removed"
            )
        entry.removed = True
        self._events.remove(handle)

    def advance(self, until: float | None = None) -> list[int]:
        """Advance the time, and return the handles of the programs that ended a run; see ``Session``.

        :param until: time in seconds to advance to; by default the time of the next end of a run.
        """
        if until is not None and not (np.isfinite(until) and until >= self._now):
            raise NetsimError(f"{self._model}: expecting a time from {self._now:g} s on, got {until:g}")
        state = self._events.advance(0.0 if until is None else float(until), until is None)
        self._now = self._events.now if until is None else float(until)
        ended = self._note()
        if state == ENDLESS and self.waiting:
            raise self._stuck()
        if state == ENDLESS and until is None:
            raise NetsimError(f"{self._model}: expecting a program that runs, got none of {len(self._entries)}")
        if state == NO_TIME:
            names = ", ".join(one.program.name for one in self._entries if one.program.repeat != ONCE)
            raise NetsimError(
                f"{self._model}: {names}: expecting programs that repeat to take time, got one that takes none"
            )
        return ended

    def _note(self) -> list[int]:
        """Copy the times in the engine's new records into the entries, and return the jobs that ended a run."""
        ended: dict[int, None] = {}
        for seconds, job, mark in self._events.records():
            entry = self._entries[job]
            if mark == END:
                entry.ends.append(seconds)
                ended[job] = None
            else:
                entry.marks.setdefault(mark - entry.first_mark, []).append(seconds)
        return list(ended)

    def _stuck(self) -> NetsimError:
        """The error for programs that wait forever."""
        raise NotImplementedError

    def _waits_for_ever(self, unfinished: NDArray[np.bool_]) -> NetsimError:
        """The error for the first rank that waits forever.

        :param unfinished: whether each rank of all programs is still in its first run, shape (ranks,).
        """
        counts = [one.program.repeat != BACKGROUND and not one.removed for one in self._entries]
        rank = int(np.flatnonzero(unfinished & np.repeat(counts, np.diff(self._first_rank)))[0])
        job = int(np.searchsorted(self._first_rank, rank, "right")) - 1
        text = f"{self._model}: {self._entries[job].program.name}: rank {rank - self._first_rank[job]}"
        return NetsimError(f"{text}: expecting an end of its program, got a step that waits for ever")

    def runs(self, handle: int) -> Runs:
        """The times of a program's runs.

        :param handle: handle from ``add``.
        """
        entry = self._entry(handle)
        places = {name: entry.program.marks.index(step) for name, step in entry.program.named.items()}
        steps = {name: np.array(entry.marks.get(place, ())) for name, place in places.items()}
        return Runs(entry.begin, np.array(entry.ends), steps)

    def _entry(self, handle: int) -> _Entry:
        if not 0 <= handle < len(self._entries):
            raise NetsimError(f"{self._model}: expecting a handle in range({len(self._entries)}), got {handle}")
        return self._entries[handle]


def _counted_on(first: Integers, counts: Sequence[int]) -> Integers:
    return np.concatenate((first, first[-1] + np.cumsum(counts, dtype=np.int64)))
