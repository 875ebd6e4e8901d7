"""Drop-in replacements of mpi4py's communicators whose collectives follow the network.

``handle`` has what every communicator holds (topology, state, checks); ``collectives`` the blocking and persistent
calls that schedules can run; ``passing`` the calls that always go to the MPI library. ``derived`` gives communicators
made from ours our classes, ``siblings`` finds those that one ``Split`` made, ``remap`` re-orders ranks, ``discovery``
finds the topology, ``agreement`` checks arguments across ranks.

Threads: with ``MPI_THREAD_MULTIPLE`` distinct communicators may be used by distinct threads at one time, as in MPI; a
single communicator may not, as in MPI, and a communicator's first collective counts as one on it.
"""

from .kinds import Cartcomm, Distgraphcomm, Graphcomm, Intercomm, Intracomm

__all__ = ["Cartcomm", "Distgraphcomm", "Graphcomm", "Intercomm", "Intracomm"]
