"""The daemon's loop: it looks for jobs, asks ``decide``, opens shutters, and writes what it measures."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from .decide import JobState, NodeSnapshot, Shutter, ShutterSettings, decide, pause_of
from .errors import ShutterError
from .holds import Hold
from .jobs import RegisteredJob
from .log import Log, Moment, Readings
from .sources import Reader, Source
from .targets import Groups, Newest, processes_by_group
from .wanted import JobTargets, Target
from .watchdog import Watchdog

__all__ = ["Shutters"]

_LOOK = 1.0  # seconds between searches for jobs and processes, which read the state of every process of the node
_SCAN = 10  # looks after which the node's processes are listed even if none has started: they may change their group
_SPIN = 100e-6  # seconds for which a stop is awaited without sleep: on cores of their own processes stop in this time
_GUARD = 20e-6  # seconds between later looks at processes that are stopping; they may need this process's core to stop
_LATE = 0.5  # seconds by which a shutter may be late before the watchdog ends it
_logger = logging.getLogger("topompi.machine.shutter")


class Shutters:
    """The shutter of one node.

    :param settings: parameters and limits.
    :param wanted: the target of each job, by the job's name.
    :param target: function that finds the processes of a target.
    :param log: log for the measurements.
    :param sources: sources of progress of this machine, the best first.
    :param users: numbers of the users whose processes may be stopped.
    :param generator: generator of the pauses between shutters.
    """

    def __init__(
        self,
        settings: ShutterSettings,
        wanted: JobTargets,
        target: Callable[[str], Target],
        log: Log,
        sources: Sequence[Source],
        users: frozenset[int],
        generator: random.Random,
    ) -> None:
        self.settings, self._wanted, self._target, self._log = settings, wanted, target, log
        self._sources, self._users, self._generator = list(sources), users, generator
        self.jobs: dict[str, RegisteredJob] = {}
        self._over: dict[str, str] = {}  # targets of jobs that ended or were refused, by name
        self._refused: set[str] = set()  # malformed lines that the log names already
        self._next, self._last = 0, -1
        self.watchdog = Watchdog(_LATE + settings.patience + 3 * settings.region + settings.warm)
        self._newest = Newest()
        self._warmed = time.monotonic()
        self._end_shutter()
        self._groups: Groups = {}
        self._named: Mapping[str, str] = {}  # targets of jobs by name, as of the last look
        self._looks, self._scanned = 0, b""  # newest process of the node before its processes were listed last
        self._cores = self._present = frozenset(os.sched_getaffinity(0))  # all that may be used, and those in use
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
        self._newest.close()
        self._log.close()

    def _end_shutter(self) -> None:
        """Draw the pause until the next shutter, which begins now."""
        self._pause = pause_of(self._generator.random(), self.settings)
        self._ended = time.monotonic()

    def snapshot(self) -> NodeSnapshot:
        """Return the state on which the next decision depends: without jobs before a shutter is due."""
        now = time.monotonic()
        jobs = self.jobs.values() if now >= self._ended + self._pause else ()
        states = tuple(JobState(job.number, job.is_running(), job.stopped) for job in jobs)
        return NodeSnapshot(now, self._ended, self._pause, self._last, self._warmed, states)

    def look(self) -> None:
        """Register new jobs, drop those that ended or are no longer wanted, and find the processes of all."""
        wanted = self._wanted()
        for line in self._wanted.refused.keys() - self._refused:
            self._note("refused", line=line, reason=self._wanted.refused[line])
        self._refused = set(self._wanted.refused)
        self._over = {name: target for name, target in self._over.items() if wanted.get(name) == target}
        for name in [name for name in self.jobs if name not in wanted]:
            self._drop(name, "withdrawn")
        newest = self._newest()
        if newest != self._scanned or self._looks % _SCAN == 0:
            self._scanned, self._groups = newest, processes_by_group()
        self._looks += 1
        self._named = wanted
        for name, target in wanted.items():
            if name not in self._over:
                self._look_at(name, target, self._groups)

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
                job = self.jobs[name] = RegisteredJob(name, self._next, self._target(target), self._users, own)
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
        except (ShutterError, OSError) as error:  # what cannot be read may not be stopped
            self._refuse(name, target, error)

    def _refuse(self, name: str, target: str, error: Exception) -> None:
        """Forget a job for as long as its target is named."""
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

    def _note(self, event: str, **fields: object) -> None:
        self._log.note(event=event, time=time.monotonic(), **fields)
        _logger.info(event, extra={"fields": fields})

    def open(self, shutter: Shutter) -> None:
        """Measure all jobs, one job alone, and all jobs again.

        :param shutter: the job that runs alone and the jobs that pause.
        """
        by_number = {job.number: job for job in self.jobs.values()}
        alone, paused = by_number[shutter.alone], [by_number[number] for number in shutter.paused]
        newest = self._newest()
        if not self._may_stop([alone, *paused], is_new=newest != self._listed):
            self._end_shutter()
            return
        self._listed = newest
        self._move_to(alone)
        holds = [hold for job in paused for hold in job.holds()]
        self.watchdog.announce(holds)  # before the first region, because the watchdog's waking would disturb the second
        readings = self._measure("before", [alone, *paused])
        during = self._measure_alone(alone, paused, holds, newest, is_long=shutter.is_long)
        if during:
            readings += during + self._measure("after", [alone, *paused])
        self.watchdog.resumed()
        if during:
            self._log.write(readings)
        self._last = shutter.alone
        if shutter.is_long and during:
            self._warmed = time.monotonic()
        self._end_shutter()

    def _may_stop(self, jobs: Sequence[RegisteredJob], *, is_new: bool) -> bool:
        """Check all processes of jobs again; refuse the jobs with one that may not be stopped, and return False.

        :param jobs: the jobs of a shutter.
        :param is_new: whether processes may have started since the jobs' were last listed.
        """
        sound = True
        for job in jobs:
            try:
                if is_new:
                    _newborn([job])
                job.require_stoppable()
            except (ShutterError, OSError) as error:
                self._refuse(job.name, self._named[job.name], error)
                sound = False
        return sound

    def _move_to(self, alone: RegisteredJob) -> None:
        """Run on cores that no job uses, else on those of the job that is measured alone.

        The time that this process takes there is missing before and after the others stop, so it falls out of the ratio
        of the rates. On a core of another job, it would make this job a milder neighbour before the stop alone.

        :param alone: the job.
        """
        used = frozenset().union(*(job.cores for job in self.jobs.values()))
        cores = self._cores - used or self._cores & alone.cores
        if cores and cores != self._present:
            with suppress(OSError):  # an administrator has taken these cores away meanwhile
                os.sched_setaffinity(0, cores)
                self._present = cores

    def _measure_alone(
        self, alone: RegisteredJob, paused: Sequence[RegisteredJob], holds: list[Hold], newest: bytes, *, is_long: bool
    ) -> list[Readings]:
        """Measure a job while others pause; return no reading if they did not stop in time or did not stay stopped.

        :param alone: the job that runs.
        :param paused: the jobs to stop.
        :param holds: what has to be stopped; receives what the jobs start meanwhile.
        :param newest: newest process of the node before the jobs' processes were last listed.
        :param is_long: whether the job's caches become warm.
        """
        began = time.monotonic()
        still: list[bool] = []
        try:
            if not self._stop(paused, holds, newest):
                wanted = f"stopped processes of their users within {self.settings.patience} s"
                self._note("given up", job=alone.name, reason=f"expecting {wanted}, got others")
                return []
            readings = self._measure("during", [alone])
            if is_long:
                time.sleep(max(0.0, self.settings.warm - self.settings.region))
                readings += self._measure("warm", [alone])  # windows of S again: what reading takes is then equal
        finally:
            still.extend([hold.resume() for hold in holds])
            for job in paused:
                job.stopped += time.monotonic() - began
        if not all(still) or not alone.is_running():
            self._note("given up", job=alone.name, reason="a signal from elsewhere stopped or resumed a process")
            return []
        return readings

    def _stop(self, paused: Sequence[RegisteredJob], holds: list[Hold], newest: bytes) -> bool:
        """Stop jobs and the children that they start meanwhile; return whether all threads have stopped in time.

        :param paused: the jobs.
        :param holds: what has to be stopped, announced to the watchdog; receives each child before it is stopped.
        :param newest: newest process of the node before the jobs' processes were last listed.
        """
        limit = time.monotonic() + self.settings.patience
        new = holds
        while new:
            refused = [hold for hold in new if not hold.stop()]
            for hold in refused:
                holds.remove(hold)  # it may be another user's by now, and is not resumed either
            if refused or not _await_stop(new, limit):
                return False
            before, newest = newest, self._newest()
            if newest == before:
                return True
            try:
                new = _newborn(paused)
            except ShutterError:
                return False  # the next check before a shutter refuses the job, and says why
            self.watchdog.announce(new)
            holds += new
        return True

    def _measure(self, region: str, jobs: Sequence[RegisteredJob]) -> list[Readings]:
        """Read the progress of jobs between windows of equal length, the first and the last one included.

        The end of each window is a time fixed beforehand, so that neither the reading nor a late awakening makes the
        windows longer on average.

        :param region: name of the region.
        :param jobs: the jobs.
        """
        ranks = [(job.name, job.ranks[process], reader) for job in jobs for process, reader in job.readers.items()]
        readers = [reader for _, _, reader in ranks]
        length = self.settings.length
        _read(readers)  # code and pages of reading are cold here, and would make the first window's clock begin early
        rows = [_read(readers)]
        end = time.monotonic()
        for _ in range(self.settings.repeats):
            now = time.monotonic()
            end = max(end + length, now + length / 2)  # later if this process waited for its core
            time.sleep(end - now)
            rows.append(_read(readers))
        moments = list(zip(*rows, strict=True))
        return [Readings(region, name, rank, own) for (name, rank, _), own in zip(ranks, moments, strict=True)]


def _await_stop(holds: list[Hold], limit: float) -> bool:
    """Wait until every thread of holds has stopped or ended; return False if this takes too long.

    :param holds: the holds, to which the signal has been sent.
    :param limit: monotonic time at which the waiting ends.
    """
    soon = time.monotonic() + _SPIN
    while holds := [hold for hold in holds if not hold.is_stopped() and hold.is_alive()]:
        now = time.monotonic()
        if now > limit:
            return False
        if now > soon:  # before this no yield: the job that stays on this core would keep it for milliseconds
            time.sleep(_GUARD)
    return True


def _newborn(jobs: Sequence[RegisteredJob]) -> list[Hold]:
    """Take children that jobs have started lately into them, and return the children.

    :param jobs: the jobs; those with a freezer need no list of processes to be stopped.
    """
    return [process for job in jobs if job.freezer is None for process in job.newborn()]


def _read(readers: Sequence[Reader]) -> list[Moment | None]:
    """Return time, progress and cycles of each reader; None if its process has ended.

    :param readers: the readers.
    """
    found: list[Moment | None] = []
    for reader in readers:
        try:
            found.append((time.monotonic(), *reader.read()))
        except OSError:
            found.append(None)
    return found
