"""The machine half: many jobs on one machine. No MPI.

``jobs`` simulates queues and allocations, ``interference`` jobs that share links, ``colocation`` jobs that share nodes.
``slurm`` works beside Slurm, ``shutter`` measures the jobs of one node, and ``daemon`` has what long-running programs
share.
"""

from importlib import import_module
from types import ModuleType

_ROOMS = ("colocation", "daemon", "interference", "jobs", "shutter", "slurm")


def __getattr__(name: str) -> ModuleType:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
