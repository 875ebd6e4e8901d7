"""Drop-in replacements of mpi4py's communicators, whose collectives follow the network.

``handle`` has the parts of every communicator (topology, state, checks); ``collectives`` has the blocking and
persistent calls that schedules can run, ``passing`` the calls that always go to the MPI library. ``derived`` gives
topompi's classes to communicators made from topompi's, ``siblings`` finds the communicators that one ``Split`` made,
``remap`` re-orders ranks, ``discovery`` finds the topology, ``agreement`` checks arguments across ranks.

Threads: with ``MPI_THREAD_MULTIPLE`` different threads may use different communicators at the same time, as in MPI, but
not the same communicator. A communicator's set-up, in its first collective, counts as a use of it, too.
"""

from .kinds import Cartcomm, Distgraphcomm, Graphcomm, Intercomm, Intracomm

__all__ = ["Cartcomm", "Distgraphcomm", "Graphcomm", "Intercomm", "Intracomm"]
