"""The processes of a job as users name them: process groups, trees, steps of a Slurm job, and control groups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from .errors import ShutterError
from .freezer import Freezer
from .holds import Process
from .published import start_of

__all__ = [
    "ControlGroup",
    "Group",
    "Groups",
    "Newest",
    "SlurmJob",
    "Target",
    "Tree",
    "parse_job",
    "processes_by_group",
    "target_of",
]

# The numbers of the node's processes by process group ("pgid", number), session ("sid", number) and parent
# ("ppid", number), and those of the daemons of Slurm's job steps ("slurmstepd", 0).
Groups = Mapping[tuple[str, int], Sequence[int]]
FORMS = "pgid:NUMBER, sid:NUMBER, tree:PID, slurm:JOBID or cgroup:/PATH"
_NAME = re.compile(r"[\w.:@-]{1,200}")


class Group:
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

    def freezer(self) -> Freezer | None:
        """Return None: a process group has no freezer."""
        return None


class Tree:
    """A process and all its descendants, which stay in the job when their parent ends.

    :param pid: number of the first process.
    :raises ShutterError: if there is no such process.
    """

    def __init__(self, pid: int) -> None:
        start = _start(pid)
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
        if not known and (status.parent, _start(status.parent)) in self._members:
            self._members.add((process.pid, status.start))
            known = True
        return known

    def freezer(self) -> Freezer | None:
        """Return None: a tree has no freezer."""
        return None


class SlurmJob(Tree):
    """The processes of a Slurm job on this node: all descendants of its steps' ``slurmstepd``, which run as root.

    :param number: number of the job.
    """

    def __init__(self, number: int) -> None:
        self.roots, self._members, self._number = [], set(), number

    def pids(self, groups: Groups) -> Iterator[int]:
        """Yield the numbers of the processes, without ``slurmstepd`` itself.

        :param groups: processes of each parent of the node, and the node's ``slurmstepd``.
        """
        self.roots = []
        for pid in groups.get(("slurmstepd", 0), ()):
            start = _start(pid)
            if start is not None and _is_step(pid, self._number):
                self.roots.append(pid)
                self._members.add((pid, start))
        return (pid for pid in super().pids(groups) if pid not in self.roots)


def _start(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot; None if it has ended.

    :param pid: number of the process.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return start_of(file.read())
    except OSError:
        return None


def _is_step(pid: int, job: int) -> bool:
    """Return whether a process of root calls itself a step of a Slurm job.

    :param pid: number of the process.
    :param job: number of the job.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fstat(file.fileno()).st_uid == 0 and file.read(200).startswith(b"slurmstepd: [%d." % job)
    except OSError:
        return False


class ControlGroup:
    """A control group of version 2: it is frozen as a whole if this user may write cgroup.freeze.

    :param path: directory of the group.
    """

    def __init__(self, path: str) -> None:
        if not os.path.exists(f"{path}/cgroup.events"):
            raise ShutterError(f"expecting the directory of a control group (version 2), not the root, got {path}")
        self.path = path

    def pids(self, groups: Groups | None = None) -> Iterator[int]:
        """Yield the numbers of the processes of the control group and of those below it.

        :param groups: processes of each process group; not used.
        """
        for folder, _, _ in os.walk(self.path):
            with suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as file:
                yield from map(int, file.read().split())

    def has(self, process: Process) -> bool:
        """Return whether a process is still there after ``pids`` has listed its number.

        :param process: a process.
        :raises OSError: if the process has ended.
        """
        process.status()
        return process.pid in set(self.pids())

    def freezer(self) -> Freezer | None:
        """Return the group's freezer; None if it is not delegated to this user."""
        try:
            return Freezer.open(self.path)
        except OSError:
            return None


Target = Group | Tree | ControlGroup


def processes_by_group() -> dict[tuple[str, int], list[int]]:
    """Return the processes of each process group, session and parent of the node. Cost: a file read per process."""
    found: dict[tuple[str, int], list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                line = os.read(fd, 4096)
            finally:
                os.close(fd)
            fields = line.rpartition(b")")[2].split(None, 4)
            for key in (("ppid", int(fields[1])), ("pgid", int(fields[2])), ("sid", int(fields[3]))):
                found.setdefault(key, []).append(int(name))
            if b"(slurmstepd)" in line:
                found.setdefault(("slurmstepd", 0), []).append(int(name))
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


def target_of(words: str) -> Target:
    """Read the processes of a job, for example ``pgid:NUMBER`` or ``cgroup:/PATH``.

    :param words: the text.
    :raises ShutterError: if the text has another form.
    """
    kind, _, value = words.partition(":")
    if kind in ("pgid", "sid") and value.isdecimal():
        return Group(int(value), kind)
    if kind == "tree" and value.isdecimal():
        return Tree(int(value))
    if kind == "slurm" and value.isdecimal():
        return SlurmJob(int(value))
    if kind == "cgroup" and value.startswith("/"):
        return ControlGroup(value.rstrip("/"))
    raise ShutterError(f"expecting {FORMS}, got {words}")


def parse_job(words: str) -> tuple[str, str]:
    """Split ``NAME=TARGET``; the target is checked when the job is registered.

    :param words: the text.
    :raises ShutterError: if the text has another form.
    """
    name, equal, target = words.partition("=")
    if not equal or not _NAME.fullmatch(name):
        raise ShutterError(f"expecting NAME=TARGET, where TARGET is {FORMS}, got {words}")
    return name, target
