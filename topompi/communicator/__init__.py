"""Drop-in replacements of mpi4py's communicators, whose collectives follow the network.

``handle`` has the parts of every communicator (topology, state, checks); ``collectives`` the blocking and persistent
calls that schedules can run; ``passing`` the calls that always go to the MPI library. ``derived`` gives communicators
made from topompi's the right class, ``siblings`` finds the communicators that one ``Split`` made, ``remap`` re-orders
ranks, ``discovery`` finds the topology, ``agreement`` checks arguments across ranks.

Threads: with ``MPI_THREAD_MULTIPLE`` different threads may use different communicators at the same time, as in MPI, but
not the same communicator. The set-up in a communicator's first collective is a use of that communicator, too.
"""

from .kinds import Cartcomm, Distgraphcomm, Graphcomm, Intercomm, Intracomm

__all__ = ["Cartcomm", "Distgraphcomm", "Graphcomm", "Intercomm", "Intracomm"]
