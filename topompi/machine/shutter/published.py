"""Counters of progress and of MPI calls in shared memory: published by programs, read by the shutter."""

from __future__ import annotations

import mmap
import os
import stat
import struct
import sys
from contextlib import suppress

from ...inputs.kernel import kernel_bytes

__all__ = ["COUNTER_AT", "SIZE", "count_call", "open_folder", "path_of", "progress", "read_counter", "start_of"]

# topompi_progress.h repeats this layout: magic, version, pid, start of the process in clock ticks, counter at byte 64.
_HEADER = struct.Struct("=8sIIQ")
_MAGIC, _VERSION = b"TOPOPROG", 1
COUNTER_AT, SIZE = 64, 4096

_counter: memoryview | None = None
_calls: memoryview | None = None


def path_of(user: int, pid: int, kind: str = "progress") -> str:
    """Return the path of a process's counter.

    :param user: effective user number of the process.
    :param pid: number of the process.
    :param kind: "progress" for the steps that the program counts, or "calls" for its MPI calls.
    """
    return f"/dev/shm/topompi-{user}/{kind}.{pid}"


def open_folder(user: int) -> int:
    """Open the folder of a user's counters, and return its descriptor.

    :param user: number of the user.
    :raises OSError: if there is none, or if anybody else owns it or may write to it: everybody can add to /dev/shm.
    """
    path = os.path.dirname(path_of(user, 0))
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(fd)
    if found.st_uid != user or found.st_mode & 0o077:
        os.close(fd)
        raise PermissionError(f"expecting a folder of user {user} alone, got {path}")
    return fd


def start_of(line: bytes) -> int:
    """Return the start of a process in clock ticks since boot.

    :param line: content of the process's /proc/PID/stat.
    """
    return int(line.rpartition(b")")[2].split()[19])


def progress(steps: int = 1) -> None:
    """Count finished steps of this process, for the shutter to read; the first call makes the counter.

    One thread of a process may count. A fork counts in a counter of its own.

    :param steps: number of steps of equal work since the last call.
    """
    global _counter
    if _counter is None:
        _counter = _publish("progress")
    _counter[0] += steps


def count_call() -> None:
    """Count an MPI call of this process, for the shutter to read; the first call makes the counter."""
    global _calls
    if _calls is None:
        _calls = _publish("calls")
    _calls[0] += 1


def _publish(kind: str) -> memoryview:
    """Make a counter of this process, in a file that only its user can open; if that fails, count in vain.

    The program goes on whatever somebody else has put at the place, and one line on standard error says so.

    :param kind: kind of the counter, as in ``path_of``.
    """
    path = path_of(os.geteuid(), os.getpid(), kind)
    try:
        return _shared(path)
    except OSError as problem:
        with suppress(OSError, ValueError, AttributeError):
            print(f"topompi: the shutter cannot see this process's {kind}: {problem}", file=sys.stderr, flush=True)
        return memoryview(bytearray(8)).cast("Q")


def _shared(path: str) -> memoryview:
    """Make a counter's file.

    :param path: path of the file.
    :raises OSError: if the file cannot be made, or its folder is not this user's alone.
    """
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(path), 0o700)
    folder, name = open_folder(os.geteuid()), os.path.basename(path)
    try:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)  # left by an earlier process of this number
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(name, flags, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        os.ftruncate(fd, SIZE)
        shared = mmap.mmap(fd, SIZE)
    finally:
        os.close(fd)
    start = start_of(kernel_bytes("/proc/self/stat") or b"")
    shared[: _HEADER.size] = _HEADER.pack(_MAGIC, _VERSION, os.getpid(), start)
    _remove_at_exit(path)
    return memoryview(shared)[COUNTER_AT : COUNTER_AT + 8].cast("Q")


def _remove_at_exit(path: str) -> None:
    """Remove the counter's file at the end of this process, but not at that of a fork.

    :param path: path of the file.
    """
    import atexit

    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            with suppress(OSError):
                os.unlink(path)

    atexit.register(remove)


def _forget() -> None:
    """Let a fork make counters of its own at its first step."""
    global _calls, _counter
    _calls = _counter = None


os.register_at_fork(after_in_child=_forget)


def read_counter(fd: int, pid: int, start: int) -> int | None:
    """Read a counter, or return None if the file is not that of this process.

    The counter is read by pread, not mapped: a user who shortens the file cannot end the reader by SIGBUS.

    :param fd: descriptor of the counter's file.
    :param pid: number of the process.
    :param start: start of the process in clock ticks since boot, which tells it from an earlier process of its number.
    """
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return None
    text = os.pread(fd, COUNTER_AT + 8, 0)  # at once, because the user may shorten the file meanwhile
    if len(text) < COUNTER_AT + 8 or _HEADER.unpack_from(text) != (_MAGIC, _VERSION, pid, start):
        return None
    return int.from_bytes(text[COUNTER_AT:], "little")
