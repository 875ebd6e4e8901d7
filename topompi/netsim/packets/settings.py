"""What switches and adapters do with packets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import NetsimError

__all__ = ["Arbitration", "Settings"]

MOST_LANES = 15  # InfiniBand's data lanes
NO_LIMIT = 255  # of the high table, as InfiniBand spells it
QUEUEINGS = ("output", "input")
PROTOCOLS = ("get", "put")
ADAPTERS = ("queue pairs", "in order")
UNITS = ("packets", "64 bytes")


@dataclass(frozen=True)
class Arbitration:
    """How a port chooses among lanes: weighted round robin in two tables (InfiniBand, volume 1, 7.6.9).

    A turn ends when the lane has sent its weight or has nothing that may be sent; a further turn has the full weight.
    The low table is served if the high one has nothing to send, or has sent ``limit`` since the low one's last packet.

    :param low: (lane, weight) in the order of turns; empty for all lanes with weight 1.
    :param high: likewise, of high priority.
    :param limit: how often 4 KiB the high table may send before the low one has a packet; 0 for one packet, 255 for no
        limit.
    :param unit: what weights count, ``packets`` or ``64 bytes``.
    """

    low: tuple[tuple[int, int], ...] = ()
    high: tuple[tuple[int, int], ...] = ()
    limit: int = NO_LIMIT
    unit: str = "packets"


@dataclass(frozen=True)
class Settings:
    """Packets, switches and adapters.

    :param mtu: most bytes of a message in a packet.
    :param header: bytes of a packet beside them.
    :param control: bytes of a packet that only says something: ready to send, a read request, its end.
    :param buffer: bytes of the buffer at each port of a switch that receives, divided among the lanes.
    :param lanes: virtual lanes, 1 to 15.
    :param queueing: ``output``: a buffer has a queue for each output; ``input``: it has one for each lane, whose head
        blocks all behind it.
    :param cut_through: whether a switch sends on a packet whose head has come; else it waits for the tail.
    :param message_rate: messages/s that an adapter can begin to send.
    :param adapter: ``queue pairs``: each pair of ranks has a queue, and queues take turns, a packet each; ``in order``:
        a host sends one message after the other.
    :param rendezvous: how a message goes that is not eager. ``get``: its receiver reads it, and the adapter answers
        without the processor, beside what the sender's queue holds. ``put``: its receiver grants it, with a word that
        goes in order behind the data which that rank sends to the same peer, and the sender's processor writes.
    :param arbitration: among lanes.
    :param grain: bytes in which a buffer is given out, a power of two.
    :param burst: 0: links are wires. Else each link is a token bucket that holds so many bytes, as Linux shapes:
        packets for which it has tokens pass at once, and their tail with their head.
    :param lateness: seconds; what a bucket holds beside ``burst`` is what its link carries in them.
    :param processors: 0: each rank has one; else so many for all ranks together, as in an emulated network. A rank that
        has one does all that it has to do, and then the one that has waited longest has its turn.
    :param send_buffer: 0: a send that was not eager is complete when its receiver says so. Else bytes of a socket's
        buffer: it is complete when no more than these have still to leave.
    :param poll: seconds for which a rank that has done all looks for more before it gives its processor away.
    """

    mtu: int = 4096
    header: int = 0
    control: int = 0
    buffer: int = 65536
    lanes: int = 1
    queueing: str = "output"
    cut_through: bool = True
    message_rate: float = np.inf
    adapter: str = "queue pairs"
    rendezvous: str = "get"
    arbitration: Arbitration = field(default_factory=Arbitration)
    grain: int = 64
    burst: int = 0
    lateness: float = 0.0
    processors: int = 0
    poll: float = 0.0
    send_buffer: int = 0

    def __post_init__(self) -> None:
        ones = ("mtu", "grain", "lanes")
        for name in (*ones, "header", "control", "burst", "lateness", "processors", "poll", "send_buffer"):
            least = int(name in ones)
            if getattr(self, name) < least:
                raise NetsimError(f"packets: {name}: expecting at least {least}, got {getattr(self, name)}")
        if self.grain & (self.grain - 1):
            raise NetsimError(f"packets: grain: expecting a power of two, got {self.grain}")
        if self.lanes > MOST_LANES:
            raise NetsimError(f"packets: lanes: expecting at most {MOST_LANES}, got {self.lanes}")
        for name, known in (("queueing", QUEUEINGS), ("rendezvous", PROTOCOLS), ("adapter", ADAPTERS)):
            if getattr(self, name) not in known:
                raise NetsimError(f"packets: {name}: expecting one of {', '.join(known)}, got {getattr(self, name)!r}")
        if not self.message_rate > 0:
            raise NetsimError(f"packets: message_rate: expecting more than 0 messages/s, got {self.message_rate}")
        if self.burst and self.burst < self.largest:
            raise NetsimError(f"packets: burst: expecting 0 or {self.largest} bytes of a packet, got {self.burst}")
        largest = -(-self.largest // self.grain) * self.grain
        if self.room < largest:
            whole = largest * self.lanes
            raise NetsimError(f"packets: buffer: expecting {whole} bytes for a packet a lane, got {self.buffer}")
        self._check_arbitration()

    def _check_arbitration(self) -> None:
        one = self.arbitration
        if one.unit not in UNITS:
            raise NetsimError(f"packets: arbitration: unit: expecting one of {', '.join(UNITS)}, got {one.unit!r}")
        if not 0 <= one.limit <= NO_LIMIT:
            raise NetsimError(f"packets: arbitration: limit: expecting 0 to {NO_LIMIT}, got {one.limit}")
        for lane, weight in one.low + one.high:
            if not 0 <= lane < self.lanes:
                raise NetsimError(f"packets: arbitration: expecting a lane in range({self.lanes}), got {lane}")
            if not 1 <= weight <= 255:
                raise NetsimError(f"packets: arbitration: lane {lane}: expecting a weight of 1 to 255, got {weight}")
        if (one.low or one.high) and (missing := set(range(self.lanes)) - {lane for lane, _ in one.low + one.high}):
            raise NetsimError(f"packets: arbitration: expecting all lanes in its tables, got none for {min(missing)}")

    @property
    def largest(self) -> int:
        """Bytes of the largest packet on a link."""
        return max(self.mtu + self.header, self.control)

    def bursts(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bytes that links of these rates (bytes/s) pass at once after a rest."""
        return self.burst + rate * self.lateness if self.burst else np.zeros(len(rate))

    @property
    def room(self) -> int:
        """Bytes of a lane's part of a buffer, in whole grains."""
        return self.buffer // self.lanes // self.grain * self.grain
