"""Open MPI 4.1 to 5.0: the default algorithms of its collective components."""

from __future__ import annotations

from .library import OpenMPI, recognise

__all__ = ["OpenMPI", "recognise"]
