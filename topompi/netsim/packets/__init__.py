"""A lossless network packet by packet: credits, finite buffers, lanes, cut-through switches, adapters with queue pairs.

``Tables`` has the links and next-hop tables, ``Settings`` the switches and adapters, ``PRESETS`` those of known
networks. ``run`` gives a ``PacketResult``, and in a ``PacketSession`` programs come and go. Switches keep packets in
the buffer of the port on which they came, a part for each lane, and send one on when the buffer ahead has room for all
of it. The engine is in C (``_packets.c``).
"""

from ..tables import Tables
from .deadlock import dependency_cycle
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
    "run",
]
