"""Traces of MPI programs: readers, and their conversion into programs of simulated networks.

``read_trace`` reads any form: SimGrid's time-independent traces (``simgrid``, ``simgridcalls``), the text of LogGOPSim
and ATLAHS (``goal``), OTF2 (``otf2events``), profiles and communication graphs (``graphs``). A ``Trace`` becomes a
``netsim.Program`` on given hosts; ``operations`` has the operations of its ranks, ``matching`` joins sends and
receives, ``collectives`` expands collective calls.
"""

from .goal import read_goal
from .graphs import trace_of_graph
from .operations import Trace
from .reading import read_trace
from .simgrid import read_simgrid

__all__ = ["Trace", "read_goal", "read_simgrid", "read_trace", "trace_of_graph"]
