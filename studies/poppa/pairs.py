"""Real pairs: the shutter's estimate of performance beside the performance measured by solo and shared segments.

The segments alternate every half second, and the shutters fall into the shared ones, so that both see the same machine.
"""

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError
from topompi.machine.colocation import groups_of, read_records
from topompi.machine.colocation.estimates.records import REGIONS, ProgressRates, Records

from .programs import Kernel, compiled, started

__all__ = ["Result", "Rhythm", "Segment", "daemon", "measure", "ratios", "segment"]

Reals = NDArray[np.float64]
SETTLE = 0.1  # seconds after a change that do not count
START = 1.0  # seconds in which the daemon starts


@dataclass(frozen=True)
class Rhythm:
    """The segments of a cycle, and the parameters of the shutter.

    :param cycles: number of cycles: both jobs, the first alone, both jobs, the second alone.
    :param segment: seconds of a segment alone.
    :param watched: seconds of a segment of both jobs.
    :param length: milliseconds of a window.
    :param every: milliseconds between shutters.
    :param repeats: windows per region.
    :param warm: milliseconds by which a long shutter is longer.
    :param warm_every: seconds between long shutters.
    :param core: core of the daemon, None for the daemon's choice.
    """

    cycles: int = 30
    segment: float = 0.2
    watched: float = 0.6
    length: float = 0.32
    every: float = 20.0
    repeats: int = 10
    warm: float = 40.0
    warm_every: float = 0.5
    core: int | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """The two performances of one job of a pair.

    :param job: the kernel.
    :param beside: its neighbour.
    :param ratios: rate beside the neighbour over the rate alone, in seconds on the core, per cycle.
    :param alone: rate alone in steps per second, per cycle.
    :param groups: rates around the shutters.
    :param daemon: share of a core that the daemon used.
    """

    job: str
    beside: str
    ratios: Reals
    alone: Reals
    groups: ProgressRates
    daemon: float


class Segment(NamedTuple):
    """A time in which the same jobs ran.

    :param alone: the job that ran alone, or None if both ran, under the daemon.
    :param start: monotonic time of the start.
    :param end: monotonic time of the end.
    :param steps: steps that each job did.
    :param seconds: seconds that each job was on its core.
    """

    alone: int | None
    start: float
    end: float
    steps: tuple[int, ...]
    seconds: tuple[float, ...]


def segment(kernels: Sequence[Kernel], alone: int | None, seconds: float) -> Segment:
    """Let one kernel run alone, or all, for a time after ``SETTLE`` seconds.

    :param kernels: the kernels.
    :param alone: the kernel that runs alone, or None for all.
    :param seconds: length of the segment.
    """
    others = [one for at, one in enumerate(kernels) if alone not in (None, at)]
    for one in others:
        one.stop()
    try:
        time.sleep(SETTLE)
        start, first = time.monotonic(), [(one.count(), one.cpu()) for one in kernels]
        time.sleep(seconds)
        end, second = time.monotonic(), [(one.count(), one.cpu()) for one in kernels]
    finally:
        for one in others:
            one.go()
    pairs = list(zip(first, second, strict=True))
    return Segment(alone, start, end, tuple(b[0] - a[0] for a, b in pairs), tuple(b[1] - a[1] for a, b in pairs))


def rate_beside(part: Segment, job: int, records: Records) -> float:
    """Return a job's steps per second on its core in a segment of both jobs, without the windows alone.

    Time on the core leaves out what the daemon and other processes of the machine take there. This is no interference
    between the two jobs.

    :param part: the segment.
    :param job: number of the job.
    :param records: the daemon's measurements.
    """
    alone = [REGIONS.index(name) for name in ("during", "warm")]
    mine = (records.job == str(job)) & np.isin(records.region, alone)
    start, end = records.start[mine], records.end[mine]
    inside = np.clip(end, part.start, part.end) - np.clip(start, part.start, part.end)
    steps = (records.delta[mine] * inside / np.maximum(end - start, 1e-12)).sum()
    return float((part.steps[job] - steps) / (part.seconds[job] - inside.sum()))


def ratios(parts: Sequence[Segment], job: int, records: Records) -> tuple[Reals, Reals]:
    """Return the job's rates beside the other over those alone, and those alone, of each segment alone.

    The rate beside the other is the mean of the segments before and after the one alone, so that slow drift cancels.

    :param parts: segments in turn, of which those of both jobs surround each one alone.
    :param job: number of the job.
    :param records: the daemon's measurements.
    """
    at = [place for place, part in enumerate(parts) if part.alone == job]
    alone = np.array([parts[place].steps[job] / parts[place].seconds[job] for place in at])
    sides = [[rate_beside(parts[place + side], job, records) for side in (-1, 1)] for place in at]
    return np.mean(sides, axis=1) / alone, alone


@contextmanager
def daemon(kernels: Sequence[Kernel], log: Path, rhythm: Rhythm) -> Iterator[Callable[[], float]]:
    """Run ``topompi shutter run`` on kernels; the value is a function that returns the CPU seconds it has used.

    :param kernels: the jobs; their names in the log are ``0``, ``1`` ....
    :param log: the log, which is continued.
    :param rhythm: parameters of the shutter.
    """
    words = [f"--every={rhythm.every}", f"--set=warm-every={rhythm.warm_every}"]
    words += [f"--set={name}={getattr(rhythm, name)}" for name in ("length", "repeats", "warm")]
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


def measure(names: tuple[str, str], rhythm: Rhythm, cores: tuple[int, int] = (0, 1)) -> list[Result]:
    """Measure a pair and return a result for each of its two jobs.

    The daemon runs all the time. It opens no shutter while a job is alone, because nothing would pause.

    :param names: names of the two kernels.
    :param rhythm: the segments.
    :param cores: core of each.
    """
    with tempfile.TemporaryDirectory(prefix="topompi-pairs-") as folder, started(names, cores, compiled()) as kernels:
        log = Path(folder) / "shutter.log"
        with daemon(kernels, log, rhythm) as used:
            time.sleep(START)
            began, base = time.monotonic(), used()
            parts = [segment(kernels, None, rhythm.watched)]
            for _ in range(rhythm.cycles):
                for alone in range(len(kernels)):
                    parts += [segment(kernels, alone, rhythm.segment), segment(kernels, None, rhythm.watched)]
            share = (used() - base) / (time.monotonic() - began)
        records = read_records(log)
    found = []
    for at, name in enumerate(names):
        ratio, alone_rates = ratios(parts, at, records)
        found.append(Result(name, names[1 - at], ratio, alone_rates, groups_of(records, str(at)), share))
    return found
