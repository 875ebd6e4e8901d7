"""Profiles of the messages that a program sent: recording, analysis, pictures, report.

``with topompi.profile(comm, FILE) as comm:`` records a part of an mpi4py program.

Modules: ``recording`` has the classes for the data of a recorded run, ``file`` reads and writes their file.
``monitored`` records by Open MPI's monitoring component. ``live`` records from inside a program: ``methods`` replaces
the methods of communicators by counting ones (from ``messages``, ``collectives``, ``neighbourhoods``, ``requests``),
``counting`` has the counters, ``counted`` makes methods that run a call and add it to the counters, and
``windows`` counts one-sided calls. ``analysis`` sums messages and bytes by hops, level and link, ``summary`` collects
all results; ``pictures``, ``tree`` and ``colours`` draw them, ``page`` makes an interactive page, ``advice`` finds
possible improvements, ``export`` writes files for other programs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

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
    """Record the messages of a ``with`` block, whose ``as`` gives the communicator to use in the block; collective.

    :param comm: a communicator of topompi; if it is mpi4py's, the block gets a communicator of topompi over it.
    :param file: path of the profile.
    :param granularity: unit of the receivers for which each rank counts messages: ``process`` for a counter per rank,
        or ``host`` for a counter per host, which takes less memory.
    :param every: seconds after which each rank again writes the counts that it has so far to a file of its own.
    :raises ProfileError: if the folder of ``file`` does not exist, or another recording is active; all ranks raise it.

    Cost: 16 bytes on each process per receiver (rank or host) and kind of message, 0.1 to 0.5 us per call on arrays if
    the C extension counts it, more per other call (docs/profile.md); nothing outside the block.
    """
    from .live import Recording

    return Recording(comm, file, granularity, every)
