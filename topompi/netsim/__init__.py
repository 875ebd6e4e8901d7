"""Networks that are not there: what programs of many ranks take on given links and routes, without MPI.

``Wiring`` has the directed links and the routes of all pairs of hosts, ``Tables`` the links and what switches hold;
``Program`` has what the ranks of a job compute, send and receive after what. ``run`` gives an ``Outcome``: seconds of
jobs and ranks, and bytes of links. ``topompi.views.program`` and ``topompi.views.tables`` make them from a job's
network, a fabric's routes and a schedule. ``topompi.netsim.packets`` runs the same programs packet by packet.
"""

from .errors import NetsimError
from .flows import Hosts, Outcome, run
from .program import BACKGROUND, COMPUTE, ONCE, RECEIVE, SEND, UNTIL_ALL_RAN, Program
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
    "Hosts",
    "NetsimError",
    "Outcome",
    "Program",
    "Tables",
    "Wiring",
    "link_bytes_at",
    "run",
]
