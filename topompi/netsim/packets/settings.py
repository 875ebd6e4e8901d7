"""The parameters of switches and adapters in the packet model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import NetsimError

__all__ = ["Arbitration", "Settings"]

MOST_LANES = 15  # number of InfiniBand's data lanes
NO_LIMIT = 255  # InfiniBand's value for a high table without limit
QUEUEINGS = ("output", "input")
PROTOCOLS = ("get", "put")
ADAPTERS = ("queue pairs", "in order")
UNITS = ("packets", "64 bytes")


@dataclass(frozen=True)
class Arbitration:
    """The rule by which a port chooses the lane of its next packet (InfiniBand, volume 1, 7.6.9).

    It is weighted round robin in two tables of turns, one of high and one of low priority.

    A turn ends when the lane has sent its weight or has no packet that may be sent; its next turn has the full weight.
    The low table is served if the high table has nothing to send, or has sent ``limit`` since the low table's last
    packet.

    :param low: (lane, weight) of each turn, in order; empty for all lanes with weight 1.
    :param high: (lane, weight) of each turn of high priority, in order.
    :param limit: number of 4 KiB units that the high table may send before the low table sends a packet; 0 for one
        packet, 255 for no limit.
    :param unit: unit of weights, ``packets`` or ``64 bytes``.
    """

    low: tuple[tuple[int, int], ...] = ()
    high: tuple[tuple[int, int], ...] = ()
    limit: int = NO_LIMIT
    unit: str = "packets"


@dataclass(frozen=True)
class Settings:
    """The parameters of packets, switches and adapters.

    :param mtu: largest number of bytes of a message in a packet.
    :param header: further bytes of each packet.
    :param control: bytes of a control packet: ready to send, read request, or completion.
    :param buffer: bytes of the receive buffer at each port of a switch, divided among the lanes.
    :param lanes: number of virtual lanes, 1 to 15, a multiple of ``hop_lanes``.
    :param hop_lanes: number of virtual lanes of each service lane, among which packets rise on their way. A packet of a
        program on service lane v starts on lane v x ``hop_lanes``, and its lane is one higher behind each link of
        ``Tables.rises``, up to the service lane's last. With 1 packets keep their lane.
    :param queueing: ``output`` for buffers with a queue per output; ``input`` for buffers with one queue per lane,
        whose first packet blocks all others.
    :param cut_through: whether a switch sends a packet on when its head has arrived; otherwise it waits for the tail.
    :param message_rate: number of messages per second that an adapter can start.
    :param adapter: ``queue pairs`` for a queue per pair of ranks, which take turns of one packet; ``in order`` for
        hosts that send one message after the other.
    :param rendezvous: protocol of messages that are not eager. ``get``: the receiver reads the message, and the
        sender's adapter answers without its processor, beside the sender's queue. ``put``: the receiver grants the
        message with a control packet, which goes in order behind its data to the same peer, and the sender's processor
        writes.
    :param arbitration: choice among lanes.
    :param grain: unit of bytes in which buffer space is allocated, a power of two.
    :param burst: bytes of the token bucket of each link, as Linux shapes: packets for which it has tokens pass at once,
        with tail and head together. 0 for links without bucket.
    :param lateness: time in seconds; a bucket holds, in addition to ``burst``, the bytes that its link carries in this
        time.
    :param processors: number of processors that all ranks together share, as in an emulated network; 0 if each rank has
        its own. A rank keeps its processor until it has no more work, and then the rank that has waited longest gets
        it.
    :param send_buffer: bytes of a socket's send buffer: a send that is not eager is complete when no more than these
        bytes have still to leave. If it is 0, the send is complete when the receiver's control packet arrives.
    :param poll: time in seconds for which a rank without work polls before it releases its processor.
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
    hop_lanes: int = 1

    def __post_init__(self) -> None:
        ones = ("mtu", "grain", "lanes", "hop_lanes")
        for name in (*ones, "header", "control", "burst", "lateness", "processors", "poll", "send_buffer"):
            least = int(name in ones)
            if getattr(self, name) < least:
                raise NetsimError(f"packets: {name}: expecting at least {least}, got {getattr(self, name)}")
        if self.grain & (self.grain - 1):
            raise NetsimError(f"packets: grain: expecting a power of two, got {self.grain}")
        if self.lanes > MOST_LANES:
            raise NetsimError(f"packets: lanes: expecting at most {MOST_LANES}, got {self.lanes}")
        if self.lanes % self.hop_lanes:
            raise NetsimError(f"packets: lanes: expecting a multiple of {self.hop_lanes} hop_lanes, got {self.lanes}")
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
        """Number of bytes of the largest packet on a link."""
        return max(self.mtu + self.header, self.control)

    def bursts(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """The bytes that links with these rates (bytes/s) pass at once after a rest, shape (links,)."""
        return self.burst + rate * self.lateness if self.burst else np.zeros(len(rate))

    @property
    def room(self) -> int:
        """Number of bytes of a lane's part of a buffer, in whole grains."""
        return self.buffer // self.lanes // self.grain * self.grain
