"""Instructions and cycles of a process by perf_event_open(2), through ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from errno import EACCES, ENOENT, EOPNOTSUPP, EPERM, ESRCH
from typing import Final

from ..holds import Process
from .base import Reading, UnavailableError

__all__ = ["CYCLES", "INSTRUCTIONS", "TASK_CLOCK", "Perf", "open_event"]

Event = tuple[int, int]  # type and config of perf_event_attr
CYCLES: Final[Event] = (0, 0)
INSTRUCTIONS: Final[Event] = (0, 1)
TASK_CLOCK: Final[Event] = (1, 1)

_SYSCALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQQ")  # PERF_ATTR_SIZE_VER0
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8


def open_event(event: Event, thread: int, group: int = -1) -> int:
    """Count an event of a thread and of the threads and processes that it starts from now on; return a descriptor.

    :param event: type and config of the event.
    :param thread: number of the thread; 0 for the calling thread.
    :param group: descriptor of the event together with which this one is scheduled, or -1.
    :raises OSError: if the kernel refuses.
    """
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(ENOENT, f"no number of perf_event_open for {platform.machine()}")
    flags = _INHERIT | _NO_KERNEL | _NO_HYPERVISOR
    packed = _ATTRIBUTES.pack(event[0], _ATTRIBUTES.size, event[1], 0, 0, 0, flags, 0, 0, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(packed, len(packed))
    words = [ctypes.c_long(value) for value in (thread, -1, group, _CLOSE_ON_EXEC)]
    fd = int(library.syscall(ctypes.c_long(number), attributes, *words))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


class Perf:
    """The source of hardware counters.

    :param progress: event that is the progress.
    :param base: event that is counted beside it and gives ``base`` of a record, or None.
    """

    name, unit = "perf", "instructions"
    warning = "instructions include those of MPI libraries that poll while they wait"

    def __init__(self, progress: Event = INSTRUCTIONS, base: Event | None = CYCLES) -> None:
        self._events = [progress] if base is None else [progress, base]

    def check(self) -> None:
        """Open the events for this process.

        :raises UnavailableError: if the machine has no such counters or this user may not read them.
        """
        _PerfReader([0], self._events).close()

    def open(self, process: Process) -> _PerfReader:
        """Start to count the events of a process's threads.

        :param process: the process.
        :raises UnavailableError: if the kernel refuses or the process has ended.
        """
        reader = _PerfReader([int(task.split("/")[1]) for task in process.threads()], self._events)
        if not process.is_alive():  # then the threads' numbers may have been another process's
            reader.close()
            raise UnavailableError("the process has ended")
        return reader


class _PerfReader:
    """A reader of the sums of events over threads.

    :param threads: numbers of the threads.
    :param events: the events, the first of which leads the group.
    """

    def __init__(self, threads: list[int], events: list[Event]) -> None:
        self._fds: list[list[int]] = [[] for _ in events]
        try:
            for thread in threads:
                leader = -1
                for event, fds in zip(events, self._fds, strict=True):
                    fds.append(open_event(event, thread, leader))
                    leader = fds[-1] if leader < 0 else leader
        except OSError as error:
            self.close()
            raise UnavailableError(_reason(error)) from None

    def read(self) -> Reading:
        """Return the sum of each event over the threads and what they started."""
        sums = [sum(int.from_bytes(os.read(fd, 8), "little") for fd in fds) for fds in self._fds]
        return sums[0], sums[1] if len(sums) > 1 else None

    def close(self) -> None:
        """Close the descriptors of the events."""
        for fds in self._fds:
            for fd in fds:
                os.close(fd)
            fds.clear()


def _reason(error: OSError) -> str:
    """Say why the kernel refused an event.

    :param error: the error of perf_event_open.
    """
    if error.errno in (ENOENT, EOPNOTSUPP):
        return f"this machine has no hardware counters, as many virtual machines ({error.strerror})"
    if error.errno in (EACCES, EPERM):
        return f"this user may not read counters: see kernel.perf_event_paranoid ({error.strerror})"
    return "the process has ended" if error.errno == ESRCH else str(error)
