"""The processes of a job as users name them by numbers: process groups, sessions and trees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...inputs.kernel import kernel_bytes
from .errors import ShutterError
from .holds import Process
from .published import start_of

__all__ = ["Groups", "Newest", "ProcessGroup", "ProcessTree", "processes_by_group", "start_of_process"]

# The numbers of the node's processes by process group ("pgid", number), session ("sid", number) and parent
# ("ppid", number).
Groups = Mapping[tuple[str, int], Sequence[int]]


class ProcessGroup:
    """A process group or a session: its processes are stopped one by one.

    :param number: number of the group or session, which is the pid of its first process.
    :param kind: ``pgid`` for a process group, ``sid`` for a session.
    """

    def __init__(self, number: int, kind: str = "pgid") -> None:
        if number < 2 or number == (os.getpgrp() if kind == "pgid" else os.getsid(0)):
            raise ShutterError(f"expecting the process group or session of a job, got {kind}:{number}")
        self.number, self.kind = number, kind

    def pids(self, groups: Groups) -> Iterable[int]:
        """Return the numbers of the group's processes.

        :param groups: processes of each group of the node.
        """
        return groups.get((self.kind, self.number), ())

    def has(self, process: Process) -> bool:
        """Return whether a process belongs to the group.

        :param process: a process.
        :raises OSError: if the process has ended.
        """
        status = process.status()
        return self.number == (status.group if self.kind == "pgid" else status.session)

    def freezer(self) -> None:
        """Return None: a process group has no freezer."""


class ProcessTree:
    """A process and all its descendants, which stay in the job when their parent ends.

    :param pid: number of the first process.
    :raises ShutterError: if there is no such process.
    """

    def __init__(self, pid: int) -> None:
        start = start_of_process(pid)
        if pid < 2 or start is None:
            raise ShutterError(f"expecting the number of a process, got tree:{pid}")
        self.roots = [pid]
        self._members = {(pid, start)}

    def pids(self, groups: Groups) -> Iterator[int]:
        """Yield the numbers of the processes, parents before their children.

        :param groups: processes of each parent of the node.
        """
        waiting = list(self.roots)
        while waiting:
            pid = waiting.pop()
            yield pid
            waiting += groups.get(("ppid", pid), ())

    def has(self, process: Process) -> bool:
        """Return whether a process is the first one, or a child of one that belongs to the tree.

        :param process: a process.
        :raises OSError: if the process has ended.
        """
        status = process.status()
        known = (process.pid, status.start) in self._members
        if not known and (status.parent, start_of_process(status.parent)) in self._members:
            self._members.add((process.pid, status.start))
            known = True
        return known

    def freezer(self) -> None:
        """Return None: a tree has no freezer."""


def start_of_process(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot; None if it has ended.

    :param pid: number of the process.
    """
    line = kernel_bytes(f"/proc/{pid}/stat")
    return start_of(line) if line else None


def processes_by_group() -> dict[tuple[str, int], list[int]]:
    """Return this node's processes by process group, session and parent. Cost: a file read per process."""
    found: dict[tuple[str, int], list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        if line := kernel_bytes(f"/proc/{name}/stat"):
            fields = line.rpartition(b")")[2].split(None, 4)
            for key in (("ppid", int(fields[1])), ("pgid", int(fields[2])), ("sid", int(fields[3]))):
                found.setdefault(key, []).append(int(name))
    return found


class Newest:
    """The number of the newest thread or process of the node, which changes whenever one starts; a call reads it."""

    def __init__(self) -> None:
        self._fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self) -> bytes:
        """Return the number as text."""
        return os.pread(self._fd, 200, 0).split()[-1]

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)
