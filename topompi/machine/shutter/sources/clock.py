"""CPU time of a process as its progress: always available, but blind to caches and memory bandwidth."""

from __future__ import annotations

import signal
import time

from ..holds import Process
from .base import Reading, UnavailableError

__all__ = ["Clock"]


class Clock:
    """The source of CPU time, which falls only if processes share cores."""

    name, unit = "clock", "nanoseconds of CPU time"
    warning = "CPU time is blind to interference in caches and memory: it shows shared cores alone"

    def check(self) -> None:
        """Do nothing, because every kernel counts CPU time."""

    def open(self, process: Process) -> _ClockReader:
        """Start to read a process's CPU time.

        :param process: the process.
        :raises UnavailableError: if the process has ended.
        """
        reader = _ClockReader(process)
        try:
            reader.read()
        except OSError as error:
            raise UnavailableError(str(error)) from None
        return reader


class _ClockReader:
    """A reader of the CPU clock of all threads of a process, which clock_gettime(2) knows by the pid.

    :param process: the process.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._clock = ~process.pid << 3 | 2  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel

    def read(self) -> Reading:
        """Return the CPU time in nanoseconds.

        :raises OSError: if the process has ended.
        """
        spent = time.clock_gettime_ns(self._clock)
        signal.pidfd_send_signal(self._process.fd, 0)  # fails if the process ended, so the pid was not another's
        return spent, None

    def close(self) -> None:
        """Do nothing: there is no descriptor."""
