"""The processes of a job as users name them: process groups and control groups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from .errors import ShutterError
from .holds import Freezer, Process

__all__ = [
    "ControlGroup",
    "Group",
    "Groups",
    "Target",
    "newest_pid",
    "parse_job",
    "processes_by_group",
    "target_of",
]

Groups = Mapping[int, Sequence[int]]  # the numbers of the processes of each process group of the node
_NAME = re.compile(r"[\w.:@-]{1,200}")


class Group:
    """A process group: its processes are stopped one by one.

    :param number: number of the group, which is the pid of its first process.
    """

    def __init__(self, number: int) -> None:
        if number < 2 or number == os.getpgrp():
            raise ShutterError(f"expecting the process group of a job, got {number}")
        self.number = number

    def pids(self, groups: Groups) -> Iterable[int]:
        """Return the numbers of the group's processes.

        :param groups: processes of each group of the node.
        """
        return groups.get(self.number, ())

    def has(self, process: Process) -> bool:
        """Return whether a process belongs to the group.

        :param process: a process.
        :raises OSError: if the process has ended.
        """
        return process.status().group == self.number

    def freezer(self) -> Freezer | None:
        """Return None: a process group has no freezer."""
        return None


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


Target = Group | ControlGroup


def processes_by_group() -> dict[int, list[int]]:
    """Return the numbers of the processes of each process group of the node. Cost: a file read per process."""
    found: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                fields = os.read(fd, 4096).rpartition(b")")[2].split(None, 3)
            finally:
                os.close(fd)
            found.setdefault(int(fields[2]), []).append(int(name))
    return found


def newest_pid() -> bytes:
    """Return the number of the newest thread or process of the node, which changes whenever one starts."""
    fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 200).split()[-1]
    finally:
        os.close(fd)


def target_of(words: str) -> Target:
    """Read the processes of a job, ``pgid:NUMBER`` or ``cgroup:PATH``.

    :param words: the text.
    :raises ShutterError: if the text has another form.
    """
    kind, _, value = words.partition(":")
    if kind == "pgid" and value.isdecimal():
        return Group(int(value))
    if kind == "cgroup" and value.startswith("/"):
        return ControlGroup(value.rstrip("/"))
    raise ShutterError(f"expecting pgid:NUMBER or cgroup:/PATH, got {words}")


def parse_job(words: str) -> tuple[str, str]:
    """Split ``NAME=TARGET``; the target is checked when the job is registered.

    :param words: the text.
    :raises ShutterError: if the text has another form.
    """
    name, equal, target = words.partition("=")
    if not equal or not _NAME.fullmatch(name):
        raise ShutterError(f"expecting NAME=pgid:NUMBER or NAME=cgroup:/PATH, got {words}")
    return name, target
