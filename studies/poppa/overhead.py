"""The cost of the shutter to busy loops, over the length of its windows, beside POPPA's equations 9 and 10."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topompi.machine.colocation import read_records

from .pairs import SETTLE, START, Rhythm, daemon
from .programs import Kernel, started

__all__ = ["LENGTHS", "measure_overhead"]

LENGTHS = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6)  # milliseconds, of the source
PAUSE = 200.0  # milliseconds
SEGMENT = 2.0  # seconds


def measure_overhead(length: float, cycles: int, cores: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """Measure two busy loops with and without the shutter, in turn (ABAB).

    :param length: milliseconds of a window; a region has one.
    :param cycles: number of pairs of segments.
    :param cores: core of each loop.
    :returns: run time with the shutter over that without, per cycle and job; the share of time stopped by the log; and
        the share of a core that the daemon used.
    """
    rhythm, ratios, used = Rhythm(length=length, every=PAUSE, repeats=1, warm=0), [], []
    with tempfile.TemporaryDirectory() as folder, started(("null", "null"), cores) as kernels:
        log = Path(folder) / "shutter.log"
        for _ in range(cycles):
            time.sleep(SETTLE)
            without = _rates(kernels)
            with daemon(kernels, log, rhythm) as cpu:
                time.sleep(START)
                began, base = time.monotonic(), cpu()
                beside = _rates(kernels)
                used.append((cpu() - base) / (time.monotonic() - began))
            ratios.append((np.array(without) / np.array(beside)).tolist())
        records = read_records(log)
    return {"ratios": ratios, "stopped": _stopped(records, length), "daemon": float(np.mean(used))}


def _rates(kernels: Sequence[Kernel]) -> list[float]:
    """Return the steps per second of wall time, in which time stopped and time of the daemon count."""
    first = [(time.monotonic(), one.count()) for one in kernels]
    time.sleep(SEGMENT)
    second = [(time.monotonic(), one.count()) for one in kernels]
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(first, second, strict=True)]


def _stopped(records: Any, length: float) -> float:
    """Return the share of a round of the shutter in which a job stands still, mean over both jobs.

    The time between the rounds is that of the setting, because the log spans several runs of the daemon.
    """
    begins = records.start[(records.region == 0) & (records.job == "0")]
    rounds = np.diff(np.sort(begins))
    usual = rounds[rounds < 2 * np.median(rounds)].mean()
    shares = []
    for job in ("0", "1"):
        other = "1" if job == "0" else "0"
        mine = (records.job == other) & (records.region == 1)
        before = np.sort(records.end[(records.job == job) & (records.region == 0)])
        after = np.sort(records.start[(records.job == job) & (records.region == 2)])
        at = records.start[mine]
        asleep = after[np.searchsorted(after, at)] - before[np.searchsorted(before, at) - 1]
        shares.append(asleep.mean() / (2 * usual))
    return float(np.mean(shares))
