"""A cache of simulation results, by a hash of everything that determines them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from topompi.inputs.caches import read_cache, write_cache

from .smpi import Failure

__all__ = ["Cache", "folder", "key"]


def folder() -> Path:
    """Return the folder of the results: ``topompi/simulate`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "topompi" / "simulate"


def key(*parts: object) -> str:
    """Return a hash of the values that determine a result."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Cache:
    """A store of simulated seconds, one small file each; failures are not stored, because the next run may succeed.

    :param path: the folder, made at the first write; if it is None, nothing is stored.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def get(self, name: str) -> float | None:
        """Return a simulation's seconds; None if they are not stored or not readable.

        :param name: name of the file, from ``key``.
        """
        if self.path is None:
            return None
        found = read_cache(self.path / f"{name}.json", _is_ours)
        return None if found is None else float(found["seconds"])

    def put(self, name: str, result: float | Failure) -> None:
        """Store a simulation's seconds in a file; a failure is not stored, and a full disk is not an error.

        :param name: name of the file, from ``key``.
        :param result: seconds, or a failure.
        """
        if self.path is None or isinstance(result, Failure):
            return
        write_cache(self.path / f"{name}.json", json.dumps({"seconds": result}))


def _is_ours(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("seconds"), float) and found["seconds"] < float("inf")
