"""The verdicts of earlier trials, kept in the user's cache from run to run."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from ..schedules.registry import current_name
from .classes import Key
from .job import Job
from .judging import Verdict
from .settings import cache_directory

__all__ = ["Memory", "cache_directory"]

MOST_TRIALS = 1_000_000  # no file that says more was written here
FORMAT, VERSION = "topompi decisions", 1


class Memory:
    """The verdicts on one job: one file in the cache, named by the job's fingerprint.

    A file that is damaged, unreadable or of another version counts as empty, and one that cannot be written is not:
    nothing of this is worth ending a job for. Jobs that write at the same moment may lose each other's latest
    verdicts, never a file: it is replaced as a whole.
    """

    def __init__(self, job: Job, directory: Path | None = None) -> None:
        self._about = job.describe()
        self.path = (cache_directory() if directory is None else directory) / f"{job.key}.json"

    @property
    def empty(self) -> bool:
        """Whether nothing is remembered of this job."""
        return not self._read()

    def recall(self, key: Key) -> Verdict | None:
        """The remembered verdict on a class of calls, None if there is none."""
        return _verdict(self._read().get(_name(key)))

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Remember a verdict, in place of an earlier one."""
        entry = asdict(verdict)
        decisions = {**self._read(), _name(key): entry}
        text = json.dumps(
            {"format": FORMAT, "version": VERSION, "about": self._about, "decisions": decisions}, indent=1
        )
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self.path, text)

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
            return {}
        decisions = data.get("decisions")
        return decisions if isinstance(decisions, dict) else {}


def _name(key: Key) -> str:
    method, number, commutative = key
    return f"{method} {number}{'' if commutative else ' in order'}"


def _verdict(entry: Any) -> Verdict | None:
    match entry:
        case {"algorithm": str(algorithm), "rival": str(rival), "ratio": float(ratio), "seconds": float(seconds)}:
            trials = entry.get("trials", 1)  # earlier versions did not count them
            sound = all(isfinite(number) and number >= 0 for number in (ratio, seconds))
            counted = isinstance(trials, int) and 1 <= trials <= MOST_TRIALS
            algorithm, rival = current_name(algorithm), current_name(rival)
            return Verdict(algorithm, ratio, seconds, rival, trials) if sound and counted else None
        case _:
            return None


def _replace(path: Path, text: str) -> None:
    """Write a file atomically: other processes see all of it or none."""
    handle, name = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
