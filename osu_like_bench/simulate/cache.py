"""A cache of simulation results, by a hash of everything that determines them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

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
        try:
            found = json.loads((self.path / f"{name}.json").read_text(encoding="utf-8"))
            return float(found["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, name: str, result: float | Failure) -> None:
        """Store seconds; a full disk is no error."""
        if self.path is None or isinstance(result, Failure):
            return
        found = {"seconds": result}
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            partial = self.path / f"{name}.{os.getpid()}"
            partial.write_text(json.dumps(found), encoding="utf-8")
            partial.replace(self.path / f"{name}.json")  # whole or not at all, whoever else writes it
        except OSError:
            pass
