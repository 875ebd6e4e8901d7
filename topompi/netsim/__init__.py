"""Networks that are not there: what programs of many ranks take on given links and routes, without MPI.

``Wiring`` has the directed links and the routes of all pairs of hosts, ``Tables`` the links and what switches hold;
``Program`` has what the ranks of a job compute, send and receive after what. ``run`` gives an ``Result``: seconds of
jobs and ranks, and bytes of links. In a ``FlowSession`` programs come and go while time passes.
``topompi.views.program`` and ``topompi.views.tables`` make them from a job's network, a fabric's routes and a schedule.
``topompi.netsim.packets`` runs the same programs packet by packet.
"""

from .errors import NetsimError
from .flows import FlowSession, Hosts, Result, run
from .program import BACKGROUND, COMPUTE, ONCE, RECEIVE, SEND, UNTIL_ALL_RAN, Program
from .session import Rates, Runs, Session
from .tables import Tables
from .timeline import link_bytes_at
from .wiring import Wiring

__all__ = [
    "BACKGROUND",
    "COMPUTE",
    "ONCE",
    "RECEIVE",
    "SEND",
    "UNTIL_ALL_RAN",
    "FlowSession",
    "Hosts",
    "NetsimError",
    "Program",
    "Rates",
    "Result",
    "Runs",
    "Session",
    "Tables",
    "Wiring",
    "link_bytes_at",
    "run",
]
