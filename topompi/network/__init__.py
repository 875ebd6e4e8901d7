"""The network as arrays: directed links with rates and latencies, next-hop links, and the paths and loads they give.

``Tables`` represents networks in fabrics, jobs, simulations, checks of isolation, pictures and profiles. Links have the
fabric's numbers in it, even if it has only some of the fabric's hosts. ``topompi.topology.Routes.tables`` makes it. The
package needs numpy only.
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
