"""Open MPI 4.1 to 5.0: what its collective components run by default."""

from __future__ import annotations

from .library import OpenMPI, recognise

__all__ = ["OpenMPI", "recognise"]
