"""Simulation of a lossless network packet by packet: credits, finite buffers, lanes, cut-through switches, adapters.

``Tables`` has the links and next-hop tables, ``Settings`` describes switches and adapters, and ``PRESETS`` has the
settings of known networks. ``run`` returns a ``PacketResult``; in a ``PacketSession`` programs start and stop at any
time. Switches store packets in the buffer of the port at which they arrived, divided by lane, and send a packet on when
the next buffer has room for all of it. The engine is in C (``_packets.c``).
"""

from ..tables import Tables
from .deadlock import dependency_cycle, least_hop_lanes
from .presets import PRESETS, Preset
from .running import PacketResult, PacketSession, run
from .settings import Arbitration, Settings

__all__ = [
    "PRESETS",
    "Arbitration",
    "PacketResult",
    "PacketSession",
    "Preset",
    "Settings",
    "Tables",
    "dependency_cycle",
    "least_hop_lanes",
    "run",
]
