"""Discovery of a fabric by the InfiniBand tools or Slurm's addresses, and the archive of their outputs."""

from __future__ import annotations

from .archive import Gathered, store
from .elsewhere import other_ways
from .slurmjob import from_addresses
from .tools import Tools

__all__ = ["Gathered", "Tools", "from_addresses", "other_ways", "store"]
