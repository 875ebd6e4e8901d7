"""Finding out a fabric and keeping it: the InfiniBand tools, Slurm's addresses, and one archive of what they said."""

from __future__ import annotations

from .archive import Gathered, store
from .elsewhere import other_ways
from .slurmjob import from_addresses
from .tools import Tools

__all__ = ["Gathered", "Tools", "from_addresses", "other_ways", "store"]
