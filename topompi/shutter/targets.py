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

# The numbers of the processes of each process group ("pgid", number) and session ("sid", number) of the node.
Groups = Mapping[tuple[str, int], Sequence[int]]
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


def processes_by_group() -> dict[tuple[str, int], list[int]]:
    """Return the processes of each process group and session of the node. Cost: a file read per process."""
    found: dict[tuple[str, int], list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                fields = os.read(fd, 4096).rpartition(b")")[2].split(None, 4)
            finally:
                os.close(fd)
            for key in (("pgid", int(fields[2])), ("sid", int(fields[3]))):
                found.setdefault(key, []).append(int(name))
    return found


def newest_pid() -> bytes:
    """Return the number of the newest thread or process of the node, which changes whenever one starts."""
    fd = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 200).split()[-1]
    finally:
        os.close(fd)


def target_of(words: str) -> Target:
    """Read the processes of a job, ``pgid:NUMBER``, ``sid:NUMBER`` or ``cgroup:PATH``.

    :param words: the text.
    :raises ShutterError: if the text has another form.
    """
    kind, _, value = words.partition(":")
    if kind in ("pgid", "sid") and value.isdecimal():
        return Group(int(value), kind)
    if kind == "cgroup" and value.startswith("/"):
        return ControlGroup(value.rstrip("/"))
    raise ShutterError(f"expecting pgid:NUMBER, sid:NUMBER or cgroup:/PATH, got {words}")


def parse_job(words: str) -> tuple[str, str]:
    """Split ``NAME=TARGET``; the target is checked when the job is registered.

    :param words: the text.
    :raises ShutterError: if the text has another form.
    """
    name, equal, target = words.partition("=")
    if not equal or not _NAME.fullmatch(name):
        raise ShutterError(f"expecting NAME=pgid:NUMBER, NAME=sid:NUMBER or NAME=cgroup:/PATH, got {words}")
    return name, target
