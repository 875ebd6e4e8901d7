"""Processes and control groups that can be stopped and resumed, each by a descriptor that stays its own."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Freezer", "Hold", "Process", "Status", "hold_of"]

# Signals that stop a process and that SIGCONT removes while they wait.
_STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


@dataclass(frozen=True)
class Status:
    """A process's state letter, group, session, number of threads, and start in clock ticks since boot."""

    state: str
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

    def stop(self) -> None:
        """Ask the kernel to stop the processes; they may run on for some microseconds."""
        raise NotImplementedError

    def is_stopped(self) -> bool:
        """Return whether every thread has stopped, whoever stopped it. Processes that have ended are not stopped."""
        raise NotImplementedError

    def is_alive(self) -> bool:
        """Return whether there is still a process."""
        raise NotImplementedError

    def resume(self) -> None:
        """Let the processes run, except if their user has stopped them since ``stop``."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)


class Process(Hold):
    """A process, held by its directory in /proc: the kernel never gives this descriptor to a later process of the pid.

    pidfd_send_signal(2) takes the descriptor, and reads relative to it fail with ESRCH once the process has ended.

    :param fd: descriptor of /proc/PID.
    :param pid: number of the process, for messages.
    """

    kind = "process"

    def __init__(self, fd: int, pid: int = 0) -> None:
        super().__init__(fd)
        self.pid = pid
        self._stat = -1

    @classmethod
    def open(cls, pid: int) -> Process:
        """Hold a process.

        :param pid: number of the process.
        :raises OSError: if there is no such process.
        """
        return cls(os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), pid)

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
        if task:
            line = self.read(f"{task}stat")
        else:  # read often, so its file stays open
            if self._stat < 0:
                self._stat = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
            line = os.pread(self._stat, 4096, 0)
        fields = line.rpartition(b")")[2].split()
        return Status(fields[0].decode(), int(fields[2]), int(fields[3]), int(fields[17]), int(fields[19]))

    def user(self) -> set[int]:
        """Return the real, effective, saved and file-system user numbers of the process; empty if it has ended."""
        with suppress(OSError):
            for line in self.read("status").splitlines():
                if line.startswith(b"Uid:"):
                    return {int(word) for word in line.split()[1:]}
        return set()

    def catches(self, number: int) -> bool:
        """Return whether the process has a handler for a signal.

        :param number: number of the signal.
        """
        with suppress(OSError):
            return bool(int(self.read("status").partition(b"\nSigCgt:")[2].split(None, 1)[0], 16) >> (number - 1) & 1)
        return False

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
            status = self.status()
        except OSError:
            return False
        return status.state not in "ZX" or status.threads > 1

    def is_stopped(self) -> bool:
        """Return whether every thread is in state T, whoever stopped it."""
        try:
            status = self.status()
            if status.threads <= 1:
                return status.state == "T"
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

    def stop(self) -> None:
        """Send SIGSTOP."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT, unless a second SIGSTOP waits: the first was the shutter's, so the second is the user's.

        SIGCONT removes waiting SIGTSTP, SIGTTIN and SIGTTOU; they are sent again, so that the process still gets them.
        """
        waiting = self._waiting()
        if waiting >> (signal.SIGSTOP - 1) & 1:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, signal.SIGCONT)
            for number in _STOPS:
                if waiting >> (number - 1) & 1:
                    signal.pidfd_send_signal(self.fd, number)

    def is_stopping(self) -> bool:
        """Return whether a SIGSTOP waits for the process, for example until a core is free for it."""
        with suppress(OSError):
            waiting = int(self.read("status").partition(b"\nShdPnd:")[2].split(None, 1)[0], 16)
            return bool(waiting >> (signal.SIGSTOP - 1) & 1)
        return False

    def _waiting(self) -> int:
        """Return the signals that wait for the process, bit N - 1 for signal N; 0 if it has not stopped yet."""
        with suppress(OSError):
            text = self.read("status")
            if b"\nState:\tT" in text:
                return int(text.partition(b"\nShdPnd:")[2].split(None, 1)[0], 16)
        return 0

    def close(self) -> None:
        """Close both descriptors."""
        super().close()
        if self._stat >= 0:
            os.close(self._stat)


class Freezer(Hold):
    """A control group (version 2), held by its file cgroup.freeze. Its processes see neither SIGSTOP nor SIGCONT.

    :param fd: descriptor of cgroup.freeze, open for reading and writing.
    :param path: path of the group, for messages and for the file cgroup.events.
    """

    kind = "freezer"

    def __init__(self, fd: int, path: str = "") -> None:
        super().__init__(fd)
        self.path = path
        self._events = os.open(f"{path}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC) if path else -1

    @classmethod
    def open(cls, path: str) -> Freezer:
        """Hold a control group.

        :param path: directory of the group.
        :raises OSError: if the group is not there or not delegated to this user.
        """
        return cls(os.open(f"{path}/cgroup.freeze", os.O_RDWR | os.O_CLOEXEC), path)

    def _event(self, name: bytes) -> bool:
        try:
            return name + b" 1" in os.pread(self._events, 4096, 0)
        except OSError:
            return False

    def is_alive(self) -> bool:
        """Return whether the group or one below it has a process."""
        return self._event(b"populated")

    def is_stopped(self) -> bool:
        """Return whether all processes are frozen, whoever froze them."""
        return self._event(b"frozen")

    def stop(self) -> None:
        """Freeze the group."""
        with suppress(OSError):
            os.pwrite(self.fd, b"1", 0)

    def resume(self) -> None:
        """Thaw the group; a process that its user has stopped by a signal stays stopped."""
        with suppress(OSError):
            os.pwrite(self.fd, b"0", 0)

    def close(self) -> None:
        """Close both descriptors."""
        super().close()
        if self._events >= 0:
            os.close(self._events)


def hold_of(kind: str, fd: int) -> Hold:
    """Make a hold of a descriptor that came from another process; it can only be resumed and closed.

    :param kind: ``kind`` of the hold's class.
    :param fd: the descriptor.
    """
    return Freezer(fd) if kind == Freezer.kind else Process(fd)
