"""Records of the shutter: the progress of each rank in windows before, during and after the other jobs stand still.

A long shutter has a fourth region, "warm": the job has run alone for longer, and its caches are warm.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....inputs.files import read_text
from ....inputs.jsontext import parse_json
from ....inputs.writing import open_output
from ..errors import ColocationError

__all__ = ["REGIONS", "ProgressRates", "Records", "groups_of", "read_records", "write_records"]

REGIONS = ("before", "during", "after", "warm")
VERSION = 1
RESTART = 60.0  # seconds by which a time is before the latest one only if the node's clock began again
HEADER = {"format": "topompi shutter log", "version": VERSION}
_MOST, _MOST_RANKS = 1e18, 1 << 31  # of seconds and counts; of ranks
Reals = NDArray[np.float64]
Row = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Records:
    """Measurements as columns of shape (n,), in any order.

    :param region: index of the region in ``REGIONS``.
    :param job: name of the job.
    :param rank: rank of the process in its job.
    :param start: second at which the window begins (t0).
    :param end: second at which the window ends (t1).
    :param delta: progress in the window: instructions, iterations, or seconds of solo work.
    :param base: cycles in the window; NaN if they were not counted.
    """

    region: NDArray[np.int8]
    job: NDArray[np.generic]
    rank: NDArray[np.int64]
    start: Reals
    end: Reals
    delta: Reals
    base: Reals

    def __len__(self) -> int:
        return len(self.region)

    @cached_property
    def jobs(self) -> list[str]:
        """Names of the jobs, sorted."""
        return [str(name) for name in np.unique(self.job)]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Records:
        """Make records of rows (region, job, rank, t0, t1, delta), or of rows with cycles at their end."""
        filled = ((*row[:6], row[6] if len(row) > 6 else math.nan) for row in rows)
        columns: list[tuple[object, ...]] = list(zip(*filled, strict=True)) or [()] * 7
        kinds = (np.int8, str, np.int64, *[np.float64] * 4)
        columns[0] = tuple(map(REGIONS.index, columns[0]))
        return cls(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))


@dataclass(frozen=True, eq=False)
class ProgressRates:
    """Progress rates of one job around n shutters, in time order, with K windows per region.

    :param rates: rate per region, shutter and window, mean over ranks, shape (3, n, K); NaN for the second region if
        the job itself stood still.
    :param dropped: number of shutters left out because windows are missing.
    :param stopped: share of the time of the records in which the job stood still for the others' shutters, signals
        included.
    :param per_cycle: whether rates are per cycle (IPC), not per second.
    :param warm: rate at the end of each long shutter, shape (n,), NaN for other shutters; None if there are none.
    :param region: seconds of a region.
    :param late: seconds from the stop to the middle of the windows of ``warm``.
    """

    rates: Reals
    dropped: int = 0
    stopped: float = 0.0
    per_cycle: bool = False
    warm: Reals | None = None
    region: float = 0.0032
    late: float = 0.0424

    def only(self, kept: NDArray[np.bool_]) -> ProgressRates:
        """Return some of the shutters.

        :param kept: whether each is kept, shape (n,).
        """
        return replace(self, rates=self.rates[:, kept], warm=None if self.warm is None else self.warm[kept])

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Whether the job ran alone in each shutter, shape (n,)."""
        mine: NDArray[np.bool_] = ~np.isnan(self.rates[1]).any(axis=1)
        return mine


def groups_of(records: Records, job: str) -> ProgressRates:
    """Collect the windows of a job by shutter.

    A shutter begins with the first "before" window that follows a window of another region, so that no order of lines
    is needed. Rates are sums over ranks, divided by the ranks' sums of cycles if all
    records have them, else of seconds. Cost: n log n for n records.
    """
    mine = np.flatnonzero((records.job == job) & (records.end > records.start) & np.isfinite(records.delta))
    mine = mine[np.argsort(records.start[mine], kind="stable")]
    if not len(mine):
        return ProgressRates(np.empty((3, 0, 1)))
    region, rank = records.region[mine], records.rank[mine]
    begins = (region == 0) & np.r_[True, region[:-1] != 0]
    shutter = np.cumsum(begins) - 1
    shutter -= shutter[0]  # windows ahead of the first "before" form an incomplete shutter, which is dropped
    order = np.lexsort((records.start[mine], rank, region, shutter))
    key = np.stack((shutter, region, rank))[:, order]
    first = np.r_[True, (key[:, 1:] != key[:, :-1]).any(axis=0)]
    at = np.arange(len(order))
    window = np.empty_like(at)
    window[order] = at - np.maximum.accumulate(np.where(first, at, 0))
    usual = region < 3
    shape = (3, int(shutter[-1]) + 1, int(window[usual].max(initial=0)) + 1)
    progress, length = np.zeros(shape), np.zeros(shape)
    per_cycle = bool((records.base[mine] > 0).all())
    base = records.base[mine] if per_cycle else (records.end - records.start)[mine]
    delta = records.delta[mine]
    place = (region[usual], shutter[usual], window[usual])
    np.add.at(progress, place, delta[usual])
    np.add.at(length, place, base[usual])
    late = ~usual & (2 * window > window[~usual].max(initial=0))  # the last half of the windows of the fourth region
    warm, since = None, ProgressRates.late
    if late.any():
        since = _since_stop(records.start[mine], records.end[mine], region, shutter, late)
        done, time = (np.bincount(shutter[late], one[late], shape[1]) for one in (delta, base))
        warm = np.where(time > 0, done / np.where(time > 0, time, 1), np.nan)
    found = _complete(progress, length, warm)
    stopped = _stopped(records.start[mine], records.end[mine], region, shutter)
    seconds = float(np.median((records.end - records.start)[mine][usual])) * found.rates.shape[2]
    return replace(found, stopped=stopped, per_cycle=per_cycle, region=seconds, late=since)


def _since_stop(
    start: Reals, end: Reals, region: NDArray[np.int8], shutter: NDArray[np.int64], late: NDArray[np.bool_]
) -> float:
    """Return the median seconds from the first window alone of a shutter to the middle of its late windows."""
    stop = np.full(int(shutter[-1]) + 1, np.inf)
    np.minimum.at(stop, shutter[region == 1], start[region == 1])
    since = ((start + end) / 2)[late] - stop[shutter[late]]
    since = since[np.isfinite(since)]
    return float(np.median(since)) if len(since) else ProgressRates.late


def _stopped(start: Reals, end: Reals, region: NDArray[np.int8], shutter: NDArray[np.int64]) -> float:
    """Return the share of time between the last "before" and the first "after" window of shutters of other jobs."""
    count = int(shutter[-1]) + 1
    asleep, awake = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(asleep, shutter[region == 0], end[region == 0])
    np.minimum.at(awake, shutter[region == 2], start[region == 2])
    awake[shutter[region == 1]] = np.inf
    both = np.isfinite(awake) & np.isfinite(asleep)
    return float((awake[both] - asleep[both]).clip(min=0).sum() / (end.max() - start.min()))


def _complete(progress: Reals, length: Reals, warm: Reals | None) -> ProgressRates:
    """Return the shutters whose regions have as many windows as most "before" regions; "during" may be absent.

    :param progress: progress in each window, shape (3, n, K).
    :param length: cycles or seconds of each window, shape (3, n, K).
    :param warm: rate at the end of each long shutter, shape (n,).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = progress / length
    counts = (length > 0).sum(axis=2)
    most = max(1, int(np.bincount(counts[0]).argmax()))
    whole = (counts[0] == most) & (counts[2] == most) & np.isin(counts[1], (0, most))
    found = ProgressRates(rates[:, :, :most], int((~whole).sum()), warm=warm)
    return found.only(whole)


def write_records(path: str | os.PathLike[str], records: Records) -> None:
    """Write a log: a line with the version, and a JSON list (region, job, rank, t0, t1, delta, cycles) per record."""
    order = np.argsort(records.start, kind="stable")
    with open_output(path) as stream:
        stream.write(json.dumps(HEADER) + "\n")
        columns = (records.job, records.rank, records.start, records.end, records.delta, records.base)
        for region, *more in zip(
            records.region[order].tolist(), *(one[order].tolist() for one in columns), strict=True
        ):
            more = more if more[-1] > 0 else more[:-1]
            stream.write(json.dumps([REGIONS[region], *more]) + "\n")


def read_records(path: str | os.PathLike[str]) -> Records:
    """Read a log of the shutter; a last line without an end, which a crash leaves, is ignored.

    Lines that are objects are events of the daemon, not measurements.

    :raises ColocationError: if a line is malformed, because a log without it may bill its job as undisturbed; the
        message names file and line.
    """
    text = read_text(path, ColocationError, "a log of the shutter")
    lines = text.split("\n")[:-1]
    head = parse_json(lines[0], f"{path}", ColocationError) if lines else None
    if not isinstance(head, dict) or not HEADER.items() <= head.items():
        raise ColocationError(f"{path}:1: expecting {json.dumps(HEADER)}, got {(lines or [''])[0][:60]!r}")
    return Records.of(_in_one_time(_rows(path, lines)))


def _rows(path: str | os.PathLike[str], lines: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines[1:], 2):
        found = parse_json(line, f"{path}", ColocationError, line=number)
        if isinstance(found, dict) and "event" in found:
            continue
        if wrong := _fault(found):
            raise ColocationError(f"{path}:{number}: {wrong}")
        yield tuple(found)


def _fault(row: Any) -> str:
    """Return the error message of a measurement; empty if it is right."""
    if not isinstance(row, list) or len(row) not in (6, 7):
        return f"expecting [region, job, rank, t0, t1, delta], got {row!r:.60}"
    region, job, rank, start, end, *progress = row
    if region not in REGIONS:
        return f"region: expecting one of {', '.join(REGIONS)}, got {region!r:.60}"
    if not isinstance(job, str) or not job:
        return f"job: expecting a name, got {job!r:.60}"
    if type(rank) is not int or not 0 <= rank < _MOST_RANKS:
        return f"rank: expecting a whole number from 0, got {rank!r:.60}"
    for name, value in zip(("t0", "t1", "delta", "cycles"), (start, end, *progress), strict=False):
        if type(value) not in (int, float) or not abs(value) < _MOST:  # false for NaN, too
            return f"{name}: expecting a number, got {value!r:.60}"
    return "" if start < end else f"t1: expecting a time after {start}, got {end}"


def _in_one_time(rows: Iterable[Row]) -> Iterator[Row]:
    """Shift the times of a log that was continued after the node's start, because monotonic clocks begin at 0 there."""
    latest, shift = -math.inf, 0.0
    for region, job, rank, start, end, *more in rows:
        if start + shift < latest - RESTART:
            shift = latest - start + 1
        latest = max(latest, end + shift)
        yield region, job, rank, start + shift, end + shift, *more
