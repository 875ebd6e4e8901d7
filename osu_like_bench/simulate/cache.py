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
    """The folder of the results: ``topompi/simulate`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "topompi" / "simulate"


def key(*parts: object) -> str:
    """A hash of what determines a result."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Cache:
    """Seconds in one small file each; a failure is never kept, for the next run may meet a sound simulator.

    :param path: the folder, made when first written to; None stores nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def get(self, name: str) -> float | None:
        """The seconds, or None where there is none that can be read."""
        if self.path is None:
            return None
        found = read_cache(self.path / f"{name}.json", _is_ours)
        return None if found is None else float(found["seconds"])

    def put(self, name: str, result: float | Failure) -> None:
        """Store seconds; a full disk is no error."""
        if self.path is None or isinstance(result, Failure):
            return
        write_cache(self.path / f"{name}.json", json.dumps({"seconds": result}))


def _is_ours(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("seconds"), float) and found["seconds"] < float("inf")
