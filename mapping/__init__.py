"""Which rank goes where: pure data in, pure data out, no MPI."""

from .placement import place

__all__ = ["place"]
