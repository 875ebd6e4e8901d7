"""The overhead of ``topompi shutter run`` for two jobs: ``python -m benchmarks.shutter``, as a user or as root.

A triad and a busy loop (NULL), each pinned to a core, run in alternating blocks with and without the shutter. The rate
of a block is the median over slices of half a second. Each block with the shutter is compared with the mean of the two
blocks around it; the overhead is the median over blocks, with a bootstrap interval of 95 %. Equations 9 and 10 of POPPA
stand beside it. Then the costs of one shutter are measured: 8 processes that sleep are stopped beside a busy loop.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.poppa.dilation import asleep, dilated
from topompi.machine.colocation.estimates.records import REGIONS, Records, read_records
from topompi.machine.shutter.decide import ShutterSettings
from topompi.machine.shutter.holds import Process
from topompi.machine.shutter.published import path_of
from topompi.machine.shutter.sources import SOURCES

ROOT = Path(__file__).parents[1]
SLICE = 0.5  # seconds
SETTINGS = ShutterSettings()
BEFORE, DURING, AFTER = map(REGIONS.index, ("before", "during", "after"))


def main() -> None:
    """Print the overhead with its interval, the daemon's share of a core, and the costs of a shutter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=8, help="blocks with the shutter, each between two without")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of a block")
    parser.add_argument("--stopped", type=int, default=8, help="processes that are stopped when costs are measured")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        kernels = build(Path(folder))
        overhead(kernels, Path(folder), asked.blocks, asked.seconds)
        jobs = [stack.enter_context(running(kernels, "null", 1))]
        for _ in range(asked.stopped):
            jobs.append(stack.enter_context(running(kernels, "asleep", 0, jobs[1].pid if len(jobs) > 1 else 0)))
        costs(jobs, Path(folder) / "costs.log", asked.seconds)


def build(folder: Path) -> Path:
    """Compile the kernels, and return the program."""
    program = folder / "kernels"
    words = ["cc", "-O2", "-I", str(ROOT / "topompi/machine/shutter"), "-o", str(program)]
    subprocess.run([*words, str(ROOT / "benchmarks" / "shutter_kernels.c")], check=True)
    return program


@contextmanager
def running(program: Path, kernel: str, core: int, group: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """Run a kernel on a core, in a process group of its own or in one that exists.

    :param program: the program of the kernels.
    :param kernel: name of the kernel.
    :param core: number of the core.
    :param group: number of the process group, or 0.
    """
    made = subprocess.Popen([str(program), kernel], process_group=group)
    try:
        os.sched_setaffinity(made.pid, {core})
        yield made
    finally:
        made.kill()
        made.wait()
        Path(path_of(os.geteuid(), made.pid)).unlink(missing_ok=True)


@contextmanager
def shutters(log: Path, groups: Sequence[int]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon with its defaults, from its first record on.

    :param log: path of the log.
    :param groups: numbers of the jobs' process groups.
    """
    words = ["--user", "root"] if os.geteuid() == 0 else []
    jobs = [word for name, group in zip("ab", groups, strict=True) for word in ("--job", f"{name}=pgid:{group}")]
    command = [sys.executable, "-m", "topompi", "shutter", "run", "--log", str(log), *words, *jobs]
    made = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        while not (log.exists() and b'\n["' in log.read_bytes()):
            if made.poll() is not None:
                raise SystemExit("expecting a daemon that runs, but it has ended")
            time.sleep(0.01)
        yield made
    finally:
        made.send_signal(signal.SIGTERM)
        made.wait()


def overhead(program: Path, folder: Path, blocks: int, seconds: float) -> None:
    """Print by how much the shutter slows a triad and a busy loop.

    :param program: the program of the kernels.
    :param folder: directory for logs.
    :param blocks: number of blocks with the shutter, and of those without.
    :param seconds: seconds of a block.
    """
    rates: tuple[list[list[float]], list[list[float]]] = ([], [])
    shares = []
    with running(program, "triad", 0) as triad, running(program, "null", 1) as null:
        time.sleep(1)
        jobs = [triad, null]
        rates[1].append(rates_of(jobs, seconds))
        for block in range(blocks):
            with shutters(folder / f"{block}.log", [job.pid for job in jobs]) as daemon:
                began, spent = time.monotonic(), cpu_seconds(daemon.pid)
                rates[0].append(rates_of(jobs, seconds))
                shares.append((cpu_seconds(daemon.pid) - spent) / (time.monotonic() - began))
            rates[1].append(rates_of(jobs, seconds))
    on, off = np.array(rates[0]).T, np.array(rates[1]).T
    lost = 1 - on / ((off[:, :-1] + off[:, 1:]) / 2)
    print(f"{blocks} blocks of {seconds:g} s with the shutter, between {blocks + 1} without")
    for name, shares_lost, plain in zip(("triad", "null"), lost, off, strict=True):
        low, high = interval(shares_lost)
        print(f"{name:6} loses {np.median(shares_lost):6.2%}, interval of 95 % from {low:.2%} to {high:.2%};", end=" ")
        print(f"successive blocks without it differ by {np.median(abs(np.diff(plain) / plain[1:])):.2%}")
    window, pause = SETTINGS.region, SETTINGS.every
    print(f"equation 9: {asleep(window, pause):.2%} asleep; equation 10: run time x {dilated(1, window, pause):.4f}")
    print(f"daemon: {np.median(shares):.2%} of a core (from {min(shares):.2%} to {max(shares):.2%})")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process in seconds."""
    return time.clock_gettime(~pid << 3 | 2)


def rates_of(jobs: Sequence[subprocess.Popen[bytes]], seconds: float) -> list[float]:
    """Return the median progress per second of each job over slices of a block.

    :param jobs: the jobs.
    :param seconds: seconds of the block.
    """
    holds = [Process.open(job.pid, frozenset({os.geteuid()})) for job in jobs]
    readers = [SOURCES["counter"].open(hold) for hold in holds]
    rows = []
    for _ in range(max(1, round(seconds / SLICE)) + 1):
        rows.append([(time.monotonic(), reader.read()[0]) for reader in readers])
        time.sleep(SLICE)
    for reader, hold in zip(readers, holds, strict=True):
        reader.close()
        hold.close()
    steps = np.diff(np.array(rows), axis=0)
    return [float(one) for one in np.median(steps[..., 1] / steps[..., 0], axis=0)]


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the interval of 95 % of the median, by resampling.

    :param values: a value per block.
    """
    drawn = np.random.default_rng(0).integers(len(values), size=(4000, len(values)))
    low, high = np.quantile(np.median(values[drawn], axis=1), (0.025, 0.975))
    return float(low), float(high)


def costs(jobs: Sequence[subprocess.Popen[bytes]], log: Path, seconds: float) -> None:
    """Print the time between the windows of a shutter, in which processes are stopped and resumed.

    :param jobs: a busy process, and the processes of the other job, which are stopped while the first runs alone.
    :param log: path for the log.
    :param seconds: seconds to measure.
    """
    time.sleep(0.2)
    with shutters(log, [jobs[0].pid, jobs[1].pid]) as daemon:
        began, spent = time.monotonic(), cpu_seconds(daemon.pid)
        time.sleep(seconds)
        share = (cpu_seconds(daemon.pid) - spent) / (time.monotonic() - began)
    found = [gaps(one) for one in by_shutter(read_records(log)) if "a" in one.job[one.region == DURING]]
    for name, values in zip(("stopped", "resumed"), np.array(found).T * 1e6, strict=True):
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
        print(f"{len(jobs) - 1} processes {name} in {middle:.0f} us (from {low:.0f} to {high:.0f} in 8 of 10)")
    print(f"daemon, with {len(jobs)} processes: {share:.2%} of a core")


def by_shutter(records: Records) -> Iterator[Records]:
    """Yield the records of each shutter: a "before" that follows an "after" begins one."""
    begins = np.flatnonzero((records.region[1:] == BEFORE) & (records.region[:-1] == AFTER)) + 1
    for rows in np.split(np.arange(len(records)), begins):
        yield Records(*(getattr(records, column.name)[rows] for column in fields(Records)))


def gaps(one: Records) -> tuple[float, float]:
    """Return the seconds between the first and the second region of a shutter, and between the second and the third."""
    first = {region: one.start[one.region == region].min() for region in (DURING, AFTER)}
    last = {region: one.end[one.region == region].max() for region in (BEFORE, DURING)}
    return first[DURING] - last[BEFORE], first[AFTER] - last[DURING]


if __name__ == "__main__":
    main()
