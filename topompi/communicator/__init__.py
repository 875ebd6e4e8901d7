"""Drop-in communicators: mpi4py's, whose collectives follow the network.

``handle`` is what every communicator of ours holds (topology, levels, checks), ``collectives`` and ``persistent`` are
the calls that the network can help, ``passing`` the calls that go to the MPI library, ``derived`` makes the children
of a communicator ours as well, ``restriction`` gives them their part of the topology, ``sizes`` says what a call moves.

Threads: with ``MPI_THREAD_MULTIPLE`` distinct communicators may be used by distinct threads at one time, as in MPI; a
single communicator may not, as in MPI, and a communicator's first collective counts as one on it.
"""

from .kinds import Cartcomm, Distgraphcomm, Graphcomm, Intercomm, Intracomm

__all__ = ["Cartcomm", "Distgraphcomm", "Graphcomm", "Intercomm", "Intracomm"]
