"""Paths of the repository and of the shared data."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ROOT", "SHARED_DATA"]

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = Path(os.environ.get("TOPOMPI_SHARED_DATA", ROOT.parent / "shared" / "data"))
