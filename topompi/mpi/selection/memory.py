"""The memory of trials: their verdicts (results), kept between jobs in a file of the user's cache."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from ...inputs.caches import read_cache, write_cache
from ...inputs.settings import cache_directory
from ...schedules.registry import current_name
from ...views.jobshape import JobShape
from .classes import Key
from .judging import Verdict

__all__ = ["VerdictFile"]

MOST_TRIALS = 1_000_000  # maximum number of trials in a valid file; topompi itself never writes a greater number
HEAD = {"format": "topompi decisions", "version": 1}


class VerdictFile:
    """The verdicts (results) of trials in jobs of one shape, in one file, named by the fingerprint of the shape.

    A file that is damaged, unreadable or of another version counts as empty, and a failure to write is ignored, because
    neither should end a job. Jobs that write at the same moment may lose each other's latest verdicts, but never damage
    the file, because it is replaced as a whole.

    :param job: the job's shape: placement of its ranks, network and MPI library.
    :param directory: folder of the file; if it is None, the user's cache.
    """

    def __init__(self, job: JobShape, directory: Path | None = None) -> None:
        self._job, self._directory = job, directory

    @cached_property
    def path(self) -> Path:
        """Path of the file. Cost: computing the fingerprint of the job."""
        return (self._directory or cache_directory()) / f"{self._job.key}.json"

    def recall(self, key: Key) -> Verdict | None:
        """The remembered verdict on a class of calls; None if there is none."""
        entry = self.read().get(_name(key))
        match {"trials": 1, **entry} if isinstance(entry, dict) else {}:  # earlier versions did not count trials
            case {
                "algorithm": str(winner),
                "rival": str(rival),
                "ratio": float(ratio),
                "seconds": float(seconds),
                "trials": int(trials),
            } if 0 <= ratio < inf and 0 <= seconds < inf and 1 <= trials <= MOST_TRIALS:
                return Verdict(current_name(winner), ratio, seconds, current_name(rival), trials)
        return None

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Write a verdict on a class of calls into the file, replacing an earlier one."""
        decisions = {**self.read(), _name(key): asdict(verdict)}
        about = f"{self._job.interface.describe()}, {self._job.library}"  # for human readers
        text = json.dumps({**HEAD, "about": about, "decisions": decisions}, indent=1)
        with suppress(RuntimeError):  # the user has no home directory
            write_cache(self.path, text)

    def read(self) -> dict[str, Any]:
        """All remembered verdicts, by name of the class of calls, as in the file; empty if there is no valid file."""
        with suppress(RuntimeError):  # the user has no home directory
            decisions: dict[str, Any] = (read_cache(self.path, _is_ours) or {}).get("decisions", {})
            return decisions
        return {}


def _is_ours(data: object) -> bool:
    return isinstance(data, dict) and HEAD.items() <= data.items() and isinstance(data.get("decisions"), dict)


def _name(key: Key) -> str:
    method, number, needs = key
    words = " in order" if needs.order else " whole" if needs.whole else ""
    return f"{method} {number}{words}"
