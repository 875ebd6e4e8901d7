"""The one network: directed links with their rates, tables of next links, and the paths and loads that follow.

``Tables`` is what fabrics, jobs, simulated networks, isolation, pictures and profiles share; links keep the fabric's
numbers in it, whichever hosts are taken. ``topompi.topology.Routes.tables`` makes it. Needs numpy alone.
"""

from .tables import Hosts, Tables, joined, known_or, rate_delay
from .walks import DIES, LOOPS, MAX_HOPS, NextLinks, first_links, link_loads, slices

__all__ = [
    "DIES",
    "LOOPS",
    "MAX_HOPS",
    "Hosts",
    "NextLinks",
    "Tables",
    "first_links",
    "joined",
    "known_or",
    "link_loads",
    "rate_delay",
    "slices",
]
