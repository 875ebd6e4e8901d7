"""Counters of collective calls by operation, size class and algorithm: calls, bytes, durations, reason of choice."""

from __future__ import annotations

import atexit
import os
import sys
from collections import deque
from dataclasses import dataclass, field
from textwrap import wrap
from threading import Lock

import numpy as np

from ..prediction.words import footnotes

__all__ = ["CallCounters", "CountedRow", "counters"]

COLUMNS = ("operation", "bytes each", "calls", "bytes", "algorithm", "predicted", "measured", "why")
WIDTH = 100  # columns of a terminal, which no line of the table exceeds
LATEST = 1000  # maximum number of durations that a row holds, the latest ones, which bounds its memory


@dataclass
class CountedRow:
    """The calls of one operation and size class that one algorithm ran on this rank.

    :param reason: reason why the algorithm was chosen for the latest call, in words.
    :param predicted: seconds that the cost model predicts for the latest call; None if there is no prediction.
    :param calls: number of calls.
    :param bytes: bytes of all calls together.
    :param seconds: durations of the latest timed calls, in seconds.
    """

    reason: str = ""
    predicted: float | None = None
    calls: int = 0
    bytes: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))


class CallCounters:
    """The counters of this process's collective calls; several threads may use them at once.

    :param enabled: True if calls are to be counted.
    :ivar rows: counted calls by operation, size class (bit length of the size in bytes) and algorithm.
    """

    def __init__(self, enabled: bool = False) -> None:
        self.enabled = enabled
        self.rows: dict[tuple[str, int, str], CountedRow] = {}
        self._lock, self._reports = Lock(), False

    def count(
        self,
        method: str,
        nbytes: int,
        algorithm: str,
        reason: str,
        predicted: float | None = None,
        seconds: float | None = None,
    ) -> None:
        """Count one call.

        :param method: name of the operation.
        :param nbytes: size in bytes by which the algorithm was chosen, 0 if unknown; its bit length is the size class.
        :param algorithm: name of the algorithm that ran the call.
        :param reason: the reason why the algorithm was chosen, in words.
        :param predicted: seconds that the cost model predicts; None if there is no prediction.
        :param seconds: duration of the call on this rank; None if it was not timed.
        """
        with self._lock:
            row = self.rows.setdefault((method, nbytes.bit_length(), algorithm), CountedRow())
            row.calls += 1
            row.bytes += nbytes
            row.reason, row.predicted = reason, predicted
            if seconds is not None:
                row.seconds.append(seconds)

    def lines(self) -> list[str]:
        """The table of counted calls as lines: column names, then a line per operation, size class and algorithm.

        A reason that would make its line longer than ``WIDTH`` is a number in the table, and stands below it.
        """
        with self._lock:
            cells = [COLUMNS, *(_cells(*key, row) for key, row in sorted(self.rows.items()))]
        before = sum(max(map(len, column)) + 2 for column in list(zip(*cells, strict=True))[:-1])
        long = dict.fromkeys(row[-1] for row in cells[1:] if before + len(row[-1]) > WIDTH)
        marks = {reason: f"[{number}]" for number, reason in enumerate(long, 1)}
        explained = footnotes(row[-1] for row in cells)
        cells = [(*row[:-1], marks.get(row[-1], row[-1])) for row in cells]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        notes = [*(f"{mark} {reason}" for reason, mark in marks.items()), *explained]
        folded = (wrap(note, WIDTH, subsequent_indent="    ", break_on_hyphens=False) for note in notes)
        return [*table, *(line for lines in folded for line in lines)]

    def report_at_exit(self, heading: str) -> None:
        """Print the table to standard error when Python exits. Only the first call has an effect."""
        if not self._reports:
            self._reports = True
            atexit.register(lambda: print(heading, *self.lines(), sep="\n", file=sys.stderr, flush=True))


def _cells(method: str, digits: int, algorithm: str, row: CountedRow) -> tuple[str, ...]:
    measured = _time(float(np.median(row.seconds))) if row.seconds else "-"
    return (
        method,
        _class(digits),
        f"{row.calls:,}",
        _total(row.bytes) if digits else "-",
        algorithm,
        "-" if row.predicted is None else _time(row.predicted),
        measured,
        row.reason,
    )


def _class(digits: int) -> str:
    if digits == 0:
        return "-"
    if digits == 1:
        return "1"
    return f"{_bytes(digits - 1)}-{_bytes(digits)}" if digits > 10 else f"{1 << (digits - 1)}-{(1 << digits) - 1}"


def _total(nbytes: int) -> str:
    return f"{nbytes:,}" if nbytes < 10**9 else f"{nbytes / 1e9:,.2f} GB"


def _bytes(digits: int) -> str:
    """A power of two from 1,024 on, as ``64K`` or ``1M``."""
    return f"{1 << digits % 10}{'KMGTPE'[digits // 10 - 1]}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us" if seconds < 1 else f"{seconds:,.2f} s"


counters = CallCounters(os.environ.get("TOPOMPI_VERBOSE", "") not in ("", "0"))
