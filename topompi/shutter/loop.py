"""The daemon's loop: it looks for jobs, asks ``decide``, opens shutters, and writes what it measures."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .decide import JobState, Settings, Shutter, Snapshot, decide
from .errors import ShutterError
from .holds import Hold
from .jobs import Job
from .log import Log, Record
from .sources import Source
from .targets import Groups, newest_pid, processes_by_group, target_of
from .watchdog import Watchdog

__all__ = ["Shutters"]

_LOOK = 1.0  # seconds between searches for jobs and processes, which read the state of every process of the node
_GUARD = 20e-6  # seconds between looks at processes that are stopping; they may need this process's core to stop
_LATE = 0.5  # seconds by which a shutter may be late before the watchdog ends it
_logger = logging.getLogger("topompi.shutter")


class Shutters:
    """The shutter of one node.

    :param settings: parameters and limits.
    :param wanted: function that returns the target of each job, by the job's name.
    :param log: log for the measurements.
    :param sources: sources of progress of this machine, the best first.
    :param users: numbers of the users whose processes may be stopped.
    """

    def __init__(
        self,
        settings: Settings,
        wanted: Callable[[], Mapping[str, str]],
        log: Log,
        sources: Sequence[Source],
        users: frozenset[int],
    ) -> None:
        self.settings, self._wanted, self._log = settings, wanted, log
        self._sources, self._users = list(sources), users
        self.jobs: dict[str, Job] = {}
        self._over: dict[str, str] = {}  # targets of jobs that ended or were refused, by name
        self._next, self._last = 0, -1
        self.watchdog = Watchdog(_LATE + settings.patience + settings.length * settings.repeats)
        self._ended = time.monotonic()
        self._listed = b""  # newest process of the node before the children of jobs were listed last

    def run(self, stop: threading.Event) -> None:
        """Open shutters until the event is set; then let everything run and end the watchdog.

        :param stop: the event, which signal handlers may set.
        :raises ShutterError: if the watchdog has ended.
        """
        look = time.monotonic()
        try:
            while not stop.is_set():
                now = time.monotonic()
                if now >= look:
                    self.look()
                    look = now + _LOOK
                decision = decide(self.snapshot(), self.settings)
                if decision.shutter is not None:
                    self.open(decision.shutter)
                else:
                    stop.wait(max(0.0, min(decision.wait, look - time.monotonic())))
        finally:
            self.close()

    def close(self) -> None:
        """End the watchdog and close all descriptors."""
        self.watchdog.close()
        for job in self.jobs.values():
            job.close(lambda _: None)
        self.jobs.clear()
        self._log.close()

    def snapshot(self) -> Snapshot:
        """Return the state on which the next decision depends."""
        jobs = tuple(JobState(job.number, job.is_running(), job.stopped) for job in self.jobs.values())
        return Snapshot(time.monotonic(), self._ended, self._last, jobs)

    def look(self) -> None:
        """Register new jobs, drop those that ended or are no longer wanted, and find the processes of all."""
        wanted = self._wanted()
        self._over = {name: target for name, target in self._over.items() if wanted.get(name) == target}
        for name in [name for name in self.jobs if name not in wanted]:
            self._drop(name, "withdrawn")
        groups = processes_by_group()
        for name, target in wanted.items():
            if name not in self._over:
                self._look_at(name, target, groups)

    def _look_at(self, name: str, target: str, groups: Groups) -> None:
        """Register a job if it is new, and find its processes and its source.

        :param name: name of the job.
        :param target: its target as text.
        :param groups: processes of each process group of the node.
        """
        try:
            job = self.jobs.get(name)
            if job is None:
                own = frozenset({os.getpid(), self.watchdog.pid})
                job = self.jobs[name] = Job(name, self._next, target_of(target), self._users, own)
                self._next += 1
            before, launchers = job.source, len(job.launchers)
            if not job.refresh(self._sources, self.watchdog.forget, groups):
                self._over[name] = target
                self._drop(name, "ended")
                return
            if job.freezer is None and len(job.launchers) > launchers:
                pids = sorted(process.pid for process in job.launchers)
                self._note("left running", job=name, pids=pids, reason="they handle SIGCONT, as launchers do")
            if job.source is not None and job.source is not before:
                source = job.source
                self._note("source", job=name, source=source.name, unit=source.unit, warning=source.warning)
        except ShutterError as error:
            self._over[name] = target
            self._drop(name, f"refused: {error}")

    def _drop(self, name: str, reason: str) -> None:
        """Forget a job.

        :param name: name of the job.
        :param reason: reason for the log.
        """
        job = self.jobs.pop(name, None)
        self._note("gone", job=name, reason=reason, stopped=job.stopped if job else 0.0)
        if job is not None:
            job.close(self.watchdog.forget)

    def _note(self, event: str, **fields: Any) -> None:
        self._log.note(event=event, time=time.monotonic(), **fields)
        _logger.info(event, extra={"fields": fields})

    def open(self, shutter: Shutter) -> None:
        """Measure all jobs, one job alone, and all jobs again.

        :param shutter: the job that runs alone and the jobs that pause.
        """
        by_number = {job.number: job for job in self.jobs.values()}
        alone, paused = by_number[shutter.alone], [by_number[number] for number in shutter.paused]
        newest = newest_pid()
        if newest != self._listed:
            _newborn([alone, *paused])
            self._listed = newest
        records = self._measure("before", [alone, *paused])
        during = self._measure_alone(alone, paused, newest)
        if during:
            self._log.write([*records, *during, *self._measure("after", [alone, *paused])])
        self._last, self._ended = shutter.alone, time.monotonic()

    def _measure_alone(self, alone: Job, paused: Sequence[Job], newest: bytes) -> list[Record]:
        """Measure a job while others pause; return no record if they did not stop in time or did not stay stopped.

        :param alone: the job that runs.
        :param paused: the jobs to stop.
        :param newest: newest process of the node before the jobs' processes were last listed.
        """
        stopped: list[Hold] = []
        began = time.monotonic()
        try:
            if not self._stop(paused, stopped, newest):
                self._note("given up", job=alone.name, reason=f"not stopped within {self.settings.patience} s")
                return []
            records = self._measure("during", [alone])
            if any(hold.is_alive() and not hold.is_stopped() for hold in stopped) or not alone.is_running():
                self._note("given up", job=alone.name, reason="a signal from elsewhere stopped or resumed a process")
                return []
            return records
        finally:
            for hold in stopped:
                hold.resume()
            self.watchdog.resumed()
            for job in paused:
                job.stopped += time.monotonic() - began

    def _stop(self, paused: Sequence[Job], stopped: list[Hold], newest: bytes) -> bool:
        """Stop jobs and the children that they start meanwhile; return whether all threads have stopped in time.

        :param paused: the jobs.
        :param stopped: receives each hold before it is stopped.
        :param newest: newest process of the node before the jobs' processes were last listed.
        """
        limit = time.monotonic() + self.settings.patience
        holds = [hold for job in paused for hold in job.holds()]
        while holds:
            self.watchdog.announce(holds)
            for hold in holds:
                stopped.append(hold)
                hold.stop()
            while any(not hold.is_stopped() and hold.is_alive() for hold in holds):
                if time.monotonic() > limit:
                    return False
                time.sleep(_GUARD)
            before, newest = newest, newest_pid()
            holds = [] if newest == before else _newborn(paused)
        return True

    def _measure(self, region: str, jobs: Sequence[Job]) -> list[Record]:
        """Read the progress of jobs, sleep once for all, and read it again, as often as the settings demand.

        :param region: region of the records.
        :param jobs: the jobs.
        """
        records = []
        _read(jobs)  # code and pages of reading are cold here, and would make the first window's clock begin early
        for _ in range(self.settings.repeats):
            first = _read(jobs)
            time.sleep(self.settings.length)
            second = _read(jobs)
            for key in first.keys() & second.keys():
                (t0, start, base), (t1, end, later) = first[key], second[key]
                cycles = None if base is None or later is None else later - base
                records.append(Record(region, *key, t0, t1, end - start, cycles))
        return sorted(records, key=lambda record: (record.job, record.rank, record.t0))


def _newborn(jobs: Sequence[Job]) -> list[Hold]:
    """Take children that jobs have started lately into them, and return the children.

    :param jobs: the jobs; those with a freezer need no list of processes to be stopped.
    """
    return [process for job in jobs if job.freezer is None for process in job.newborn()]


def _read(jobs: Sequence[Job]) -> dict[tuple[str, int], tuple[float, int, int | None]]:
    """Read time, progress and cycles of each process of jobs that still runs, by job and rank.

    :param jobs: the jobs.
    """
    found = {}
    for job in jobs:
        for process, reader in job.readers.items():
            try:
                found[job.name, job.ranks[process]] = (time.monotonic(), *reader.read())
            except OSError:
                continue
    return found
