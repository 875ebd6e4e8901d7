"""Runs of programs on their cores: started, pinned, timed, restarted, and ended with this process."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from ..errors import ColocationError
from .plan import Program

__all__ = ["RunError", "run_segment"]

PR_SET_PDEATHSIG = 1
LINES = 5  # last lines of standard error that an error shows
Record = Callable[[str, float], None]


class RunError(ColocationError):
    """An error: a program failed or took too long; the message has the last lines of its standard error."""


class _Running:
    """A run that has begun.

    :param program: the program.
    :param cores: cores on which it may run.
    """

    def __init__(self, program: Program, cores: Sequence[int]) -> None:
        self.program = program
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by end()
        try:
            self._process = subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
                preexec_fn=lambda: _bind(cores),
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._errors.close()
            raise RunError(f"{program.name}: expecting a program that starts, got {error}") from None
        self.began = time.monotonic()
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
        os.close(self.fd)
        self._errors.close()


def run_segment(programs: Sequence[Program], cores: Sequence[Sequence[int]], limit: float, record: Record) -> None:
    """Run programs beside each other until each has ended once; one that ends earlier is restarted meanwhile.

    Each completed run is recorded, because all of the others ran during all of it, but for the milliseconds of
    restarts.

    :param programs: one program, or two.
    :param cores: cores of each.
    :param limit: seconds that a run may take.
    :param record: function that takes the name of the program and the seconds of each completed run.
    :raises RunError: if a program fails or takes too long.
    """
    running: list[_Running] = []
    left = set(range(len(programs)))
    try:
        for one, where in zip(programs, cores, strict=False):
            running.append(_Running(one, where))
        while left:
            for at in _ended(running, limit):
                seconds = running[at].result(time.monotonic())
                record(programs[at].name, seconds)
                left.discard(at)
                running[at].end()
                if left:
                    running[at] = _Running(programs[at], cores[at])
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


def _bind(cores: Sequence[int]) -> None:
    """In the child: run on some cores only, and die with the parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, cores)
