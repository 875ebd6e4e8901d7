"""What a program really sent: recording, analysis, pictures, report.

``with topompi.profile(comm, FILE) as comm:`` records a part of a program of mpi4py.

Where things are: ``recording`` what is known of a run, ``file`` its file, ``monitored`` recording by Open MPI, ``live``
recording from inside a program, with ``counting``, and ``methods`` in place of those of communicators (``messages``,
``collectives``, ``neighbourhoods``, ``requests``), ``windows`` for one-sided calls, ``analysis`` where messages went,
``summary`` all of it in one table, ``pictures``, ``tree`` and ``colours`` the same drawn, ``page`` a page to look
around in, ``advice`` what could be better, ``export`` files for other programs.
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
    """Record what the ranks of a communicator send, for ``with``, which gives the communicator to call; collective.

    :param comm: one of ours, or one of mpi4py's, for which the block gets one of ours.
    :param file: of the profile.
    :param granularity: of peers: ``process``, or ``host``, which takes memory for each host instead of each rank.
    :param every: seconds after which each rank writes what it has sent so far.
    :raises ProfileError: on all ranks, for a folder that is not there or another recording under way.
    Cost: 16 bytes for each peer and kind of message a process, about 0.5 us a call; none before and after the block.
    """
    from .live import Recording

    return Recording(comm, file, granularity, every)


class _Room(ModuleType):
    """The package, which can be called as ``record``.

    Python binds a package to its name in its parent when it is imported, whatever stood there: ``topompi.profile``
    can be both the room and what programs call only if the room itself takes calls.
    """

    def __call__(self, *args: Any, **named: Any) -> Recording:
        return record(*args, **named)


sys.modules[__name__].__class__ = _Room
