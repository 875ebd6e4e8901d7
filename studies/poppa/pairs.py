"""Real pairs: the shutter's estimate of performance beside the performance measured by solo and shared segments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.colocation import groups_of, read_records
from topompi.colocation.estimates.records import Groups
from topompi.errors import BenchmarkError

from .programs import Kernel, compiled, started

__all__ = ["Result", "Rhythm", "daemon", "measure", "rates"]

Reals = NDArray[np.float64]
SETTLE = 0.1  # seconds after a change that do not count


@dataclass(frozen=True)
class Rhythm:
    """The segments of a cycle, and the parameters of the shutter.

    :param cycles: number of cycles.
    :param segment: seconds of each segment without the daemon.
    :param watched: seconds under the daemon in each cycle, its start included.
    :param length: milliseconds of a window.
    :param every: milliseconds between shutters.
    :param repeats: windows per region.
    :param core: core of the daemon, None for any.
    """

    cycles: int = 6
    segment: float = 0.3
    watched: float = 5.5
    length: float = 0.2
    every: float = 20.0
    repeats: int = 16
    core: int | None = 0


@dataclass(frozen=True, eq=False)
class Result:
    """The two performances of one job of a pair.

    :param job: the kernel.
    :param beside: its neighbour.
    :param ratios: rate beside the neighbour over the rate alone, per cycle.
    :param alone: rate alone in steps per second, per cycle.
    :param groups: rates around the shutters.
    :param daemon: share of a core that the daemon used.
    """

    job: str
    beside: str
    ratios: Reals
    alone: Reals
    groups: Groups
    daemon: float


def rates(kernels: Sequence[Kernel], seconds: float) -> list[float]:
    """Return the steps per second of each kernel, in seconds on its core.

    Other processes of the machine run on the free core while a kernel is alone, and beside the kernels otherwise. This
    is no interference between the two, so their time is left out.

    :param kernels: the kernels.
    :param seconds: length of the measurement.
    """
    first = [(one.cpu(), one.count()) for one in kernels]
    time.sleep(seconds)
    second = [(one.cpu(), one.count()) for one in kernels]
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(first, second, strict=True)]


def _alone(kernels: Sequence[Kernel], which: int, seconds: float) -> float:
    others = [one for at, one in enumerate(kernels) if at != which]
    for one in others:
        one.stop()
    try:
        time.sleep(SETTLE)
        return rates([kernels[which]], seconds)[0]
    finally:
        for one in others:
            one.go()


def _segments(kernels: Sequence[Kernel], seconds: float) -> tuple[list[float], list[float]]:
    """Return mean rates alone and shared, from alternating segments (ABABA), so that slow drift cancels."""
    alone, shared = [], []
    for _ in range(2):
        time.sleep(SETTLE)
        shared.append(rates(kernels, seconds))
        alone.append([_alone(kernels, which, seconds) for which in range(len(kernels))])
    time.sleep(SETTLE)
    shared.append(rates(kernels, seconds))
    return np.mean(alone, axis=0).tolist(), np.average(shared, axis=0, weights=(1, 2, 1)).tolist()


@contextmanager
def daemon(kernels: Sequence[Kernel], log: Path, rhythm: Rhythm) -> Iterator[Callable[[], float]]:
    """Run ``topompi shutter run`` on kernels; the value is a function that returns the CPU seconds it has used.

    :param kernels: the jobs; their names in the log are ``0``, ``1`` ....
    :param log: the log, which is continued.
    :param rhythm: parameters of the shutter.
    """
    words = [f"--{name}={getattr(rhythm, name)}" for name in ("length", "every", "repeats")]
    words += [f"--job={at}=pgid:{one.pid}" for at, one in enumerate(kernels)]
    words += [f"--core={rhythm.core}"] if rhythm.core is not None else []
    words += [f"--user={os.geteuid()}"] if os.geteuid() == 0 else []
    command = [sys.executable, "-m", "topompi", "shutter", "run", f"--log={log}", "--source=counter", *words]
    errors = log.with_suffix(".messages")
    with errors.open("ab") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
    try:
        yield lambda: _used(process.pid)
        if process.poll() is not None:
            raise BenchmarkError(f"expecting the daemon to run, got {errors.read_text()[-300:]}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _watched(kernels: Sequence[Kernel], log: Path, rhythm: Rhythm) -> float:
    """Run the daemon for one cycle's seconds; return the share of a core that it used after its start."""
    with daemon(kernels, log, rhythm) as used:
        time.sleep(1.0)
        began, base = time.monotonic(), used()
        time.sleep(max(0.0, rhythm.watched - 1.0))
        return (used() - base) / max(time.monotonic() - began, 1e-9)


def measure(names: tuple[str, str], rhythm: Rhythm, cores: tuple[int, int] = (0, 1)) -> list[Result]:
    """Measure a pair and return a result for each of its two jobs.

    :param names: names of the two kernels.
    :param rhythm: the segments.
    :param cores: core of each.
    """
    alone, shared, used = list[list[float]](), list[list[float]](), list[float]()
    with tempfile.TemporaryDirectory(prefix="topompi-pairs-") as folder, started(names, cores, compiled()) as kernels:
        log = Path(folder) / "shutter.log"
        for _ in range(rhythm.cycles):
            for found, kept in zip(_segments(kernels, rhythm.segment), (alone, shared), strict=True):
                kept.append(found)
            used.append(_watched(kernels, log, rhythm))
        records = read_records(log)
    solo, both = np.array(alone), np.array(shared)
    return [
        Result(
            name,
            names[1 - at],
            both[:, at] / solo[:, at],
            solo[:, at],
            groups_of(records, str(at)),
            float(np.mean(used)),
        )
        for at, name in enumerate(names)
    ]
