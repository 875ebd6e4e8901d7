"""Networks that are not there: what programs of many ranks take on given links and routes, without MPI.

``Wiring`` has the directed links and the routes, ``Program`` what the ranks of a job compute, send and receive after
what; ``run`` gives an ``Outcome``: seconds of jobs and ranks, and the bytes of each link. ``topompi.views.program``
makes both from a job's network and a schedule. ``topompi.netsim.packets`` runs the same programs packet by packet.
"""

from .errors import NetsimError
from .flows import Hosts, Outcome, run
from .program import BACKGROUND, COMPUTE, ONCE, RECEIVE, SEND, UNTIL_ALL_RAN, Program
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
    "Wiring",
    "run",
]
