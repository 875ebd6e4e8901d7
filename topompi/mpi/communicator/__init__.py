"""Drop-in replacements of mpi4py's communicators, which choose the algorithms of collectives for the network.

``handle`` has the base class and the four values that each of its objects keeps, ``state`` the functions that find and
make the state of a communicator, ``lifetime`` its making and freeing, and ``queries`` the public functions that say
what topompi knows of it. ``collectives`` has the blocking and persistent calls that topompi's schedules can run,
``neighbours`` the neighbourhood collectives, and ``exchanging`` the sparse exchange; ``passing`` has the calls that the
MPI library always runs. ``derived`` gives topompi's classes to communicators made from topompi's, and finds
the communicators that one ``Split`` made, ``remap`` re-orders ranks, ``discovery`` finds the topology, and
``agreement`` checks that all ranks make the same call.

Threads: with ``MPI_THREAD_MULTIPLE`` different threads may use different communicators at the same time, as in MPI, but
not the same communicator. A communicator's set-up, in its first collective, counts as a use of it, too.
"""

from .exchanging import exchange
from .kinds import Cartcomm, Distgraphcomm, Graphcomm, Intercomm, Intracomm
from .queries import choice_of, interface, mapping_report, refreshed, sub_communicators
from .remap.methods import remap

__all__ = [
    "Cartcomm",
    "Distgraphcomm",
    "Graphcomm",
    "Intercomm",
    "Intracomm",
    "choice_of",
    "exchange",
    "interface",
    "mapping_report",
    "refreshed",
    "remap",
    "sub_communicators",
]
