"""A log of the shutter as tests read it: its header, its records and its events."""

import json
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Contents", "Record", "read_log"]


class Record(NamedTuple):
    region: str
    job: str
    rank: int
    t0: float
    t1: float
    delta: float
    base: float | None = None


class Contents(NamedTuple):
    header: dict[str, Any]
    records: tuple[Record, ...]
    notes: tuple[dict[str, Any], ...]
    is_torn: bool


def read_log(path: Path) -> Contents:
    *lines, torn = path.read_text().split("\n")
    header, *rows = map(json.loads, lines)
    records = tuple(Record(*row) for row in rows if isinstance(row, list))
    return Contents(header, records, tuple(row for row in rows if isinstance(row, dict)), bool(torn))
