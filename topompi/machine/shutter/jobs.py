"""Registered jobs: their processes, what has to be stopped for them to pause, and the readers of their progress."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .controlgroups import Freezer
from .errors import ShutterError
from .holds import Hold, Process
from .sources import Reader, Source, choose
from .targets import Groups
from .wanted import Target

__all__ = ["RegisteredJob"]


@dataclass
class RegisteredJob:
    """A registered job.

    :ivar name: name of the job in the log.
    :ivar number: serial number of its registration.
    :ivar target: its processes.
    :ivar users: user numbers whose processes may be stopped.
    :ivar own: pids of the daemon and its watchdog, which no job may contain, because nobody would resume them.
    :ivar stopped: seconds that the shutter has stopped the job.
    :ivar source: the source of its progress; None before the first process is seen.
    :ivar ranks: number of each process in the job.
    :ivar launchers: processes that are neither stopped by signals nor measured, because they handle SIGCONT: launchers
        of MPI programs forward it to all ranks, and some print a line each time.
    :ivar readers: reader of each process that the source measures.
    :ivar cores: cores on which its processes may run.
    """

    name: str
    number: int
    target: Target
    users: frozenset[int]
    own: frozenset[int] = field(default_factory=lambda: frozenset({os.getpid()}))
    stopped: float = 0.0
    source: Source | None = None
    ranks: dict[Process, int] = field(default_factory=dict)
    launchers: set[Process] = field(default_factory=set)
    readers: dict[Process, Reader] = field(default_factory=dict)
    cores: frozenset[int] = frozenset()
    freezer: Freezer | None = None
    _known: dict[int, Process] = field(default_factory=dict)
    _next: int = 0

    def refresh(self, sources: list[Source], forget: Callable[[Hold], None], groups: Groups) -> bool:
        """Find the job's processes and the best source again; return False if the job has ended.

        A job has ended when every process that was known has gone: its group's number may then be another group's.

        :param sources: the sources of this machine, the best first.
        :param forget: function that is called with each hold before it is closed.
        :param groups: processes of each process group of the node.
        :raises ShutterError: if a process belongs to a user who is not named, or is the daemon or its watchdog.
        """
        for process in [one for one in self.ranks if not self._belongs(one)]:
            self._drop(process, forget)
        self.require_stoppable()
        known = list(self.ranks)
        if self._next and not known:
            return False
        self.add(pid for pid in self.target.pids(groups) if pid not in self._known)
        if known and not any(map(self._belongs, known)):
            return False
        if self.freezer is None:
            self.freezer = self.target.freezer()
        if self.freezer is None:
            self.launchers = {process for process in self.ranks if process.catches(signal.SIGCONT)}
        self.cores = frozenset().union(*(process.cores() for process in self._workers()))
        self._choose_source(sources)
        return True

    def _choose_source(self, sources: list[Source]) -> None:
        """Take a better source than the present one if there is one now; else measure new processes by the present one.

        :param sources: the sources of this machine, the best first.
        """
        better = sources if self.source is None else sources[: sources.index(self.source)]
        source, readers = choose(self._workers(), better)
        if source is not None:
            for reader in self.readers.values():
                reader.close()
            self.source, self.readers = source, readers
        elif self.source is not None:
            self.readers |= choose([one for one in self._workers() if one not in self.readers], [self.source])[1]

    def add(self, pids: Iterable[int]) -> list[Process]:
        """Take processes that belong to the job into it, and return them.

        :param pids: numbers of processes.
        :raises ShutterError: if a process belongs to a user who is not named, or is the daemon or its watchdog.
        """
        added = []
        for pid in pids:
            process = self._open(pid)
            if process is not None:
                self._known[pid] = process
                self.ranks[process] = self._next
                self._next += 1
                added.append(process)
        return added

    def _open(self, pid: int) -> Process | None:
        """Hold a process of the job; return None if it does not belong to it.

        :param pid: number of the process.
        """
        try:
            process = Process.open(pid, self.users)
        except OSError:
            return None
        try:
            if self.target.has(process) and process.is_alive():
                self._require_stoppable(process)
                return process
        except OSError:
            pass
        except ShutterError:
            process.close()
            raise
        process.close()
        return None

    def require_stoppable(self) -> None:
        """Check again that every process of the job may be stopped: a process can become another user's.

        Of a control group that is frozen as a whole, the processes are listed again first.

        :raises ShutterError: if a process may not be stopped, or if this cannot be found out.
        """
        if self.freezer is not None:
            try:
                self.add(pid for pid in self.target.pids({}) if pid not in self._known)
            except OSError as problem:
                raise ShutterError(f"job {self.name}: expecting the list of its processes, got {problem}") from None
        for process in self.ranks:
            self._require_stoppable(process)

    def _require_stoppable(self, process: Process) -> None:
        """Check that a process is not the daemon's own and belongs to a user whose processes may be stopped.

        :param process: the process.
        :raises ShutterError: if it may not be stopped, or if its users cannot be read.
        """
        if process.pid in self.own:
            raise ShutterError(f"job {self.name}: expecting processes of a job, got the shutter's own, {process.pid}")
        try:
            found = process.users()
        except ProcessLookupError:
            return  # it has ended
        except OSError as problem:
            raise ShutterError(f"job {self.name}: expecting the user of process {process.pid}, got {problem}") from None
        if not found <= self.users:
            strangers = ", ".join(map(str, sorted(found - self.users)))
            raise ShutterError(
                f"job {self.name}: expecting processes of user {', '.join(map(str, sorted(self.users)))}, "
                f"got process {process.pid} of user {strangers}"
            )

    def _belongs(self, process: Process) -> bool:
        try:
            return process.is_alive() and self.target.has(process)
        except OSError:
            return False

    def _drop(self, process: Process, forget: Callable[[Hold], None]) -> None:
        """Close a process that has left the job.

        :param process: the process.
        :param forget: function that is called with the process first.
        """
        if process in self.readers:
            self.readers.pop(process).close()
        del self.ranks[process]
        self.launchers.discard(process)
        self._known.pop(process.pid, None)
        forget(process)
        process.close()

    def newborn(self) -> list[Process]:
        """Take in the children that the job has started since the last ``refresh``, and return those to stop."""
        pids = {pid for process in self.ranks for pid in process.children()}
        added = self.add(sorted(pids - self._known.keys()))
        self.launchers.update(process for process in added if process.catches(signal.SIGCONT))
        return [process for process in added if process not in self.launchers]

    def _workers(self) -> list[Process]:
        """Return the job's processes without launchers."""
        return [process for process in self.ranks if process not in self.launchers]

    def holds(self) -> list[Hold]:
        """Return what has to be stopped for the job to pause, without what somebody else has stopped."""
        own: list[Hold] = list(self._workers()) if self.freezer is None else [self.freezer]
        return [hold for hold in own if hold.is_free()]

    def is_running(self) -> bool:
        """Return whether a process of the job is neither stopped nor ended."""
        frozen = self.freezer is not None and self.freezer.is_stopped()
        return not frozen and any(one.is_alive() and not one.is_stopped() for one in self._workers())

    def close(self, forget: Callable[[Hold], None]) -> None:
        """Close the holds and readers of the job.

        :param forget: function that is called with each hold before it is closed.
        """
        for process in list(self.ranks):
            self._drop(process, forget)
        if self.freezer is not None:
            forget(self.freezer)
            self.freezer.close()
            self.freezer = None
