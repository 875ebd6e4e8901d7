"""The MPI half: communicators whose collectives know the network; tools that record, tune, probe and launch programs.

``execution`` runs schedules, ``prediction`` knows what calls cost, ``selection`` chooses, ``dispatch`` leads from a
call to what runs it, and ``communicator`` has the classes that users hold. ``profile`` records programs, ``tuning`` and
``probe`` measure, ``launcher`` runs a Python program with these communicators, ``preload`` a compiled one.
"""

from importlib import import_module
from types import ModuleType

_ROOMS = (
    *("communicator", "dispatch", "execution", "launcher", "prediction"),
    *("preload", "probe", "profile", "selection", "tuning"),
)


def __getattr__(name: str) -> ModuleType:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
