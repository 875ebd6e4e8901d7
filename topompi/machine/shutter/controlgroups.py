"""Control groups of version 2: as jobs, and as what can be stopped and resumed as a whole.

The path of a group may come from a user. Its folder is opened without following links, and must lie on a file system of
control groups, which the kernel alone fills.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress

from .errors import ShutterError
from .holds import Hold, Process

__all__ = ["ControlGroup", "Freezer", "hold_of", "is_group", "open_group"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENODEV)  # of a group that was removed while its files were read


def open_group(path: str) -> int:
    """Open the folder of a control group (version 2), and return its descriptor.

    :param path: absolute path of the folder.
    :raises ShutterError: if the path has links or "..", or if it names no folder of a control group.
    :raises OSError: if the folder cannot be opened.
    """
    fd = os.open("/", _FOLDER)
    try:
        for name in path.strip("/").split("/"):
            if name in ("", ".", ".."):
                raise ShutterError(f"expecting the absolute path of a control group without . and .., got {path}")
            below = os.open(name, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        if os.fstat(fd).st_dev not in _devices():
            raise ShutterError(f"expecting the folder of a control group (version 2), got {path}")
    except BaseException:
        os.close(fd)
        raise
    return fd


def is_group(path: str) -> bool:
    """Return whether a path is the folder of a control group (version 2)."""
    try:
        os.close(open_group(path))
    except (OSError, ShutterError):
        return False
    return True


def _devices() -> set[int]:
    """Return the device numbers of the mounted file systems of control groups, as the kernel tells them."""
    fd = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as stream:
        lines = [line.split() for line in stream]
    found = (line[2].split(b":") for line in lines if line[line.index(b"-") + 1] == b"cgroup2")
    return {os.makedev(int(major), int(minor)) for major, minor in found}


class ControlGroup:
    """A control group: it is frozen as a whole if this user may write cgroup.freeze.

    :param path: absolute path of the group's folder.
    :param waits: True if the folder may be made later: until then the job has no processes.
    :raises ShutterError: if the path names no control group, or the root of all, which cannot be stopped.
    """

    def __init__(self, path: str, *, waits: bool = False) -> None:
        self.path = path
        if waits:
            return
        try:
            fd = open_group(path)
        except OSError as problem:
            raise ShutterError(f"expecting the folder of a control group, got {path}: {problem.strerror}") from None
        try:
            os.stat("cgroup.events", dir_fd=fd, follow_symlinks=False)
        except OSError:
            raise ShutterError(f"expecting a control group (version 2) other than the root, got {path}") from None
        finally:
            os.close(fd)

    def pids(self, groups: object = None) -> Iterator[int]:
        """Yield the numbers of the processes of the control group and of those below it.

        :param groups: processes of each process group; not used.
        :raises OSError: if the list of a group cannot be read.
        """
        try:
            fd = open_group(self.path)
        except OSError as problem:
            if problem.errno in _GONE:
                return
            raise
        try:
            for _, _, _, folder in os.fwalk(".", dir_fd=fd, onerror=_raise):
                yield from _listed(folder)
        finally:
            os.close(fd)

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


def _raise(problem: OSError) -> None:
    if problem.errno not in _GONE:
        raise problem


def _listed(folder: int) -> list[int]:
    """The numbers of the processes of one group.

    :param folder: descriptor of the group's folder.
    """
    try:
        with os.fdopen(os.open("cgroup.procs", os.O_RDONLY | _FILE, dir_fd=folder), "rb") as stream:
            return list(map(int, stream.read().split()))
    except OSError as problem:
        _raise(problem)
        return []


class Freezer(Hold):
    """A control group, held by its file cgroup.freeze. Its processes see neither SIGSTOP nor SIGCONT.

    :param fd: descriptor of cgroup.freeze, open for reading and writing.
    :param events: descriptor of cgroup.events; -1 for a freezer that is only resumed.
    """

    kind = "freezer"

    def __init__(self, fd: int, events: int = -1) -> None:
        super().__init__(fd)
        self._events = events

    @classmethod
    def open(cls, path: str) -> Freezer:
        """Hold a control group.

        :param path: absolute path of the group's folder.
        :raises OSError: if the group is not there or not delegated to this user.
        """
        folder = open_group(path)
        try:
            events = os.open("cgroup.events", os.O_RDONLY | _FILE, dir_fd=folder)
            try:
                return cls(os.open("cgroup.freeze", os.O_RDWR | _FILE, dir_fd=folder), events)
            except OSError:
                os.close(events)
                raise
        finally:
            os.close(folder)

    def _event(self, name: bytes) -> bool | None:
        """Whether an event of the group is on; None if this cannot be read."""
        try:
            return name + b" 1" in os.pread(self._events, 4096, 0)
        except OSError:
            return None

    def is_alive(self) -> bool:
        """Return whether the group or one below it has a process."""
        return bool(self._event(b"populated"))

    def is_stopped(self) -> bool:
        """Return whether all processes are frozen, whoever froze them."""
        return bool(self._event(b"frozen"))

    def is_free(self) -> bool:
        """Return whether the group is known not to be frozen."""
        return self._event(b"frozen") is False

    def stop(self) -> bool:
        """Freeze the group."""
        try:
            os.pwrite(self.fd, b"1", 0)
        except OSError:
            return False
        return True

    def resume(self) -> bool:
        """Thaw the group; a process that its user has stopped by a signal stays stopped.

        Return False if somebody else had thawed it already.
        """
        still = self.is_stopped() or not self.is_alive()
        with suppress(OSError):
            os.pwrite(self.fd, b"0", 0)
        return still

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
