"""Processes that can be stopped and resumed, each by a descriptor that stays its own."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Hold", "Process", "Status"]

# Signals that stop a process and that SIGCONT removes while they wait.
_STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


@dataclass(frozen=True)
class Status:
    """A process's state letter, parent, group, session, number of threads, and start in clock ticks since boot."""

    state: str
    parent: int
    group: int
    session: int
    threads: int
    start: int


class Hold:
    """Base of what the shutter stops: it owns one descriptor, which the watchdog can hold, too.

    :param fd: the descriptor; ``close`` closes it.
    """

    kind = ""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def stop(self) -> bool:
        """Ask the kernel to stop the processes; they may run on for some microseconds.

        Return False, and stop nothing, if a process may not be stopped, or if this cannot be found out.
        """
        raise NotImplementedError

    def is_stopped(self) -> bool:
        """Return whether every thread has stopped, whoever stopped it. Processes that have ended are not stopped."""
        raise NotImplementedError

    def is_free(self) -> bool:
        """Return whether nobody has stopped the processes or is stopping them."""
        return not self.is_stopped()

    def is_alive(self) -> bool:
        """Return whether there is still a process."""
        raise NotImplementedError

    def resume(self) -> bool:
        """Let the processes run, except if their user has stopped them since ``stop``.

        Return False if a signal from elsewhere had resumed them already.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)


class Process(Hold):
    """A process, held by its directory in /proc: the kernel never gives this descriptor to a later process of the pid.

    pidfd_send_signal(2) takes the descriptor, and reads relative to it fail with ESRCH once the process has ended.

    :param fd: descriptor of /proc/PID.
    :param pid: number of the process, for messages.
    :param users: user numbers of which the process must have no other when it is stopped.
    """

    kind = "process"

    def __init__(self, fd: int, pid: int = 0, users: frozenset[int] = frozenset()) -> None:
        super().__init__(fd)
        self.pid, self.allowed = pid, users
        self._files: dict[str, int] = {}

    @classmethod
    def open(cls, pid: int, users: frozenset[int] = frozenset()) -> Process:
        """Hold a process.

        :param pid: number of the process.
        :param users: user numbers of which the process must have no other when it is stopped.
        :raises OSError: if there is no such process.
        """
        return cls(os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), pid, users)

    def read(self, name: str) -> bytes:
        """Read a file of the process's directory in /proc.

        :param name: name of the file, relative to the directory.
        :raises OSError: if the process has ended.
        """
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            return os.read(fd, 65536)
        finally:
            os.close(fd)

    def status(self, task: str = "") -> Status:
        """Read the state of the process or of one of its threads.

        :param task: path of the thread's directory with a final slash, or "" for the process.
        :raises OSError: if it has ended.
        """
        line = self.read(f"{task}stat") if task else self._reread("stat")
        fields = line.rpartition(b")")[2].split()
        numbers = (int(fields[place]) for place in (1, 2, 3, 17, 19))
        return Status(fields[0].decode(), *numbers)

    def _reread(self, name: str) -> bytes:
        """Read a file that is read in every shutter and therefore stays open.

        :param name: name of the file, relative to the process's directory.
        :raises OSError: if the process has ended.
        """
        fd = self._files.get(name)
        if fd is None:
            fd = self._files[name] = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        return os.pread(fd, 65536, 0)

    def _threads_in(self) -> tuple[bytes, int]:
        """Return the state letter of the first thread and the number of threads.

        :raises OSError: if the process has ended.
        """
        fields = self._reread("stat").rpartition(b")")[2].split(None, 18)
        return fields[0], int(fields[17])

    def users(self) -> frozenset[int]:
        """Return the real, effective, saved and file-system user numbers of the process.

        :raises OSError: if they cannot be read; ProcessLookupError if the process has ended.
        """
        text = self._reread("status")
        words = text[text.find(b"\nUid:\t") + 6 :].split(b"\n", 1)[0].split()
        if b"\nUid:\t" not in text or len(words) != 4:
            raise OSError(f"expecting four users in the status of process {self.pid}")
        return frozenset(map(int, words))

    def cores(self) -> set[int]:
        """Return the cores on which threads of the process may run; empty if it has ended."""
        found: set[int] = set()
        for task in self.threads():
            with suppress(OSError):  # it has ended
                found |= os.sched_getaffinity(int(task.split("/")[1]))
        return found

    def catches(self, number: int) -> bool:
        """Return whether the process has a handler for a signal, or whether this cannot be read.

        :param number: number of the signal.
        """
        try:
            handled = self._reread("status").partition(b"\nSigCgt:")[2].split(None, 1)[0]
        except (OSError, IndexError):
            return True
        return bool(int(handled, 16) >> (number - 1) & 1)

    def threads(self) -> list[str]:
        """Return the directories of the process's threads, relative to its own, each with a final slash."""
        try:
            fd = os.open("task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        except OSError:
            return []
        try:
            return [f"task/{name}/" for name in os.listdir(fd)]
        except OSError:
            return []
        finally:
            os.close(fd)

    def children(self) -> set[int]:
        """Return the pids of the process's children; empty if the kernel does not list them."""
        found: set[int] = set()
        for task in self.threads():
            with suppress(OSError):
                found.update(map(int, self.read(f"{task}children").split()))
        return found

    def is_alive(self) -> bool:
        """Return whether a thread of the process still runs or can run."""
        try:
            state, threads = self._threads_in()
        except OSError:
            return False
        return state not in b"ZX" or threads > 1

    def is_stopped(self) -> bool:
        """Return whether every thread is in state T, whoever stopped it."""
        try:
            state, threads = self._threads_in()
            if threads <= 1:
                return state == b"T"
            states = [self._state(task) for task in self.threads()]
        except OSError:
            return False
        return "T" in states and set(states) <= set("TZX")

    def _state(self, task: str) -> str:
        """Return the state letter of a thread; X if it has ended."""
        try:
            return self.status(task).state
        except OSError:
            return "X"

    def stop(self) -> bool:
        """Send SIGSTOP, unless the process has, or has had, the rights of another user."""
        try:
            if not self.users() <= self.allowed:
                return False
            signal.pidfd_send_signal(self.fd, signal.SIGSTOP)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return True

    def resume(self) -> bool:
        """Send SIGCONT, unless a second SIGSTOP waits: the first was the shutter's, so the second is the user's.

        SIGCONT removes waiting SIGTSTP, SIGTTIN and SIGTTOU; they are sent again, so that the process still gets them.
        Return False if a signal from elsewhere had resumed the process already.
        """
        waiting = 0
        try:
            state, found = self._signals()
            still = state in b"TZX" and (state == b"T" or not self.is_alive() or self.is_stopped())
            waiting = found if state == b"T" else 0
        except OSError:
            still = True
        if waiting >> (signal.SIGSTOP - 1) & 1:
            return still
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, signal.SIGCONT)
            for number in _STOPS if waiting else ():
                if waiting >> (number - 1) & 1:
                    signal.pidfd_send_signal(self.fd, number)
        return still

    def is_free(self) -> bool:
        """Return whether the process has not stopped and no SIGSTOP waits, for example until a core is free for it."""
        try:
            state, waiting = self._signals()
        except OSError:
            return False
        return not (waiting >> (signal.SIGSTOP - 1) & 1 or (state in b"TZX" and self.is_stopped()))

    def _signals(self) -> tuple[bytes, int]:
        """Return the state letter of the first thread and the signals that wait, bit N - 1 for signal N.

        :raises OSError: if the process has ended.
        """
        text = self._reread("status")
        at, pending = text.find(b"\nState:\t"), text.find(b"\nShdPnd:\t")
        if at < 0 or pending < 0:
            raise OSError(f"expecting a state and signals in the status of process {self.pid}")
        return text[at + 8 : at + 9], int(text[pending + 9 : pending + 25], 16)

    def close(self) -> None:
        """Close all descriptors."""
        super().close()
        self.close_files()

    def close_files(self) -> None:
        """Close the files that stay open between readings; the next reading opens them again."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()
