"""Simulation of networks without MPI: the times of programs of many ranks on given links and routes.

``Wiring`` has directed links and the routes of all pairs of hosts; ``Tables`` has links and the switches' tables.
``Program`` lists the operations of a job's ranks: compute bursts, sends and receives, by step. ``run`` returns a
``Result`` with the times of jobs and ranks and the bytes of links. In a ``FlowSession`` programs start and stop at any
time. ``topompi.views.program`` and ``topompi.views.tables`` make the inputs from a schedule, a job's network and a
fabric's routes. ``topompi.netsim.packets`` simulates the same programs packet by packet.
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
