"""Runs of programs on their cores: started, pinned, timed, restarted, and ended with this process."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO

from ..errors import ColocationError
from .plan import MeasuredProgram

__all__ = ["Guard", "RunError", "run_segment"]

PR_SET_PDEATHSIG = 1
LINES = 5  # last lines of standard error that an error shows
Record = Callable[[str, float], None]
# A line is a group that begins, a negative number one that has ended, 0 the end of all. At the end of input the rest is
# killed.
GUARD = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    group = int(line)
    groups = groups | {group} if group > 0 else groups - {-group} if group else set()
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class RunError(ColocationError):
    """An error: a program failed or took too long; the message has the last lines of its standard error."""


class Guard:
    """A process that outlives this one, and then kills the process groups of programs that still run.

    It sleeps until then. Use it as a context manager.
    """

    def __init__(self) -> None:
        # This process keeps the end for reading, too, so that a guard that was killed breaks no pipe.
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        words = [sys.executable, "-I", "-S", "-c", GUARD]
        self._process = subprocess.Popen(words, stdin=self._read, start_new_session=True)

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.tell(0)
        os.close(self._write)
        os.close(self._read)
        self._process.wait()

    def tell(self, number: int) -> None:
        """Name a process group that begins, or, as a negative number, one that has ended; 0 if all have."""
        with suppress(BlockingIOError):  # nobody reads, because the guard was killed
            os.write(self._write, f"{number}\n".encode())


class _Running:
    """A run that has begun.

    :param program: the program.
    :param cores: cores on which it may run.
    :param guard: the guard of its process group; None for none.
    """

    def __init__(self, program: MeasuredProgram, cores: Sequence[int], guard: Guard | None) -> None:
        self.program, self._guard = program, guard
        self.began = time.monotonic()  # before the start: this process may wait for a core while the program runs
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by end()
        try:
            self._process = subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
                preexec_fn=lambda: _bind(cores, guard),
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._errors.close()
            raise RunError(f"{program.name}: expecting a program that starts, got {error}") from None
        self.fd = os.pidfd_open(self._process.pid)

    def result(self, now: float) -> float:
        """Return the run time of a process that has ended.

        :param now: monotonic time of its end.
        :raises RunError: if its exit code is not 0.
        """
        code = self._process.wait()
        if code:
            name = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            raise RunError(f"{self.program.name}: expecting exit code 0, got {name}{self._last_lines()}")
        return now - self.began

    def too_long(self, limit: float) -> RunError:
        """Return the error of a run over its limit in seconds."""
        return RunError(f"{self.program.name}: expecting an end within {limit:g} s, got none{self._last_lines()}")

    def _last_lines(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-4096:].decode(errors="replace").split("\n")
        shown = [line for line in lines if line.strip()][-LINES:]
        return "; its last lines: " + " | ".join(shown) if shown else "; it wrote no error"

    def end(self) -> None:
        """End the process and all in its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._guard is not None:
            self._guard.tell(-self._process.pid)
        os.close(self.fd)
        self._errors.close()


def run_segment(
    programs: Sequence[MeasuredProgram],
    cores: Sequence[Sequence[int]],
    limit: float,
    record: Record,
    guard: Guard | None = None,
) -> None:
    """Run programs beside each other until each has ended once; one that ends earlier is restarted meanwhile.

    Each completed run is recorded, because all of the others ran during all of it, but for the milliseconds of
    restarts.

    :param programs: one program, or two.
    :param cores: cores of each.
    :param limit: seconds that a run may take.
    :param record: function that takes the name of the program and the seconds of each completed run.
    :param guard: kills the programs' process groups if this process is killed; None for none.
    :raises RunError: if a program fails or takes too long.
    """
    running: list[_Running] = []
    left = set(range(len(programs)))
    try:
        for one, where in zip(programs, cores, strict=False):
            running.append(_Running(one, where, guard))
        while left:
            for at in _ended(running, limit):
                seconds = running[at].result(time.monotonic())
                record(programs[at].name, seconds)
                left.discard(at)
                running[at].end()
                if left:
                    running[at] = _Running(programs[at], cores[at], guard)
    finally:
        for run in running:
            with suppress(OSError):
                run.end()


def _ended(running: Sequence[_Running], limit: float) -> list[int]:
    """Wait for the end of at least one process, and return the numbers of those that ended."""
    poll = select.poll()
    for one in running:
        poll.register(one.fd, select.POLLIN)
    oldest = min(running, key=lambda one: one.began)
    rest = oldest.began + limit - time.monotonic()
    ready = {fd for fd, _ in poll.poll(max(0.0, rest) * 1e3)}
    if not ready:
        raise oldest.too_long(limit)
    return [at for at, one in enumerate(running) if one.fd in ready]


def _bind(cores: Sequence[int], guard: Guard | None) -> None:
    """In the child: run on some cores only, and die with the parent."""
    if guard is not None:
        guard.tell(os.getpid())  # here, so that no program runs that the guard does not know
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, cores)
