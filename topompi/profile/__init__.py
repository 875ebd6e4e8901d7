"""Profiles of the messages that a program really sent: recording, analysis, pictures, report.

``with topompi.profile(comm, FILE) as comm:`` records a part of an mpi4py program.

Modules: ``recording`` has the data of a recorded run, ``file`` its file. ``monitored`` records by Open MPI; ``live``
records from inside a program, with ``counting`` and with ``methods`` that replace those of communicators (``messages``,
``collectives``, ``neighbourhoods``, ``requests``), and ``windows`` for one-sided calls. ``analysis`` finds where
messages went, ``summary`` puts all of it in one table; ``pictures``, ``tree`` and ``colours`` draw it, ``page`` makes
an interactive page, ``advice`` finds possible improvements, ``export`` writes files for other programs.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import ProfileError
from .file import read_profile, write_profile
from .recording import Profile

if TYPE_CHECKING:
    from mpi4py import MPI

    from .live import Recording

__all__ = ["Profile", "ProfileError", "read_profile", "record", "write_profile"]


def record(
    comm: MPI.Intracomm, file: str | os.PathLike[str], granularity: str = "process", every: float = 10.0
) -> Recording:
    """Record a communicator's messages, as a context manager that gives the communicator to use; collective.

    :param comm: a communicator of topompi, or one of mpi4py, for which the ``with`` block gets one of topompi.
    :param file: path of the profile.
    :param granularity: kind of the recorded peers: ``process``, or ``host``, which needs memory per host instead of per
        rank.
    :param every: seconds between two writes of each rank's numbers so far.
    :raises ProfileError: if the folder does not exist or another recording is active; the same on all ranks.

    Cost: 16 bytes per peer and kind of message on each process, about 0.5 us per call; nothing outside the block.
    """
    from .live import Recording

    return Recording(comm, file, granularity, every)


class _Room(ModuleType):
    """The package as a module that can be called as ``record``.

    When Python imports a package, it binds the package to its name in the parent, replacing any other object there.
    Therefore ``topompi.profile`` can be both the package and a function only if the package itself is callable.
    """

    def __call__(self, *args: Any, **named: Any) -> Recording:
        return record(*args, **named)


sys.modules[__name__].__class__ = _Room
