"""Lanes in the options file of OpenSM: arbitration of ports, and the lane of each service level.

The lines are those of opensm(8), section QoS configuration; the tables are those of the InfiniBand Architecture
Specification, volume 1, 7.6.6 and 7.6.9. A service level's number is that of its lane.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....netsim.packets import Arbitration
from ..errors import InterferenceError
from .choice import DATA_LANES, Lanes

__all__ = ["Qos", "entries_of"]

Entries = tuple[tuple[int, int], ...]
LEVELS = 16  # service levels
UNIT = 64  # bytes that a weight counts
MOST_UNITS = 255  # largest weight of an entry
MOST_ENTRIES = 64  # of each table


@dataclass(frozen=True)
class Qos:
    """The quality of service of all ports; the defaults are OpenSM's.

    :param enabled: whether OpenSM sets up the tables.
    :param lanes: largest number of data lanes of a port.
    :param limit: number of 4 KiB units that the high-priority table may send before the low one; 255 for no limit.
    :param high: lane and weight in units of 64 bytes of each turn of high priority; turns of weight 0 are left out.
    :param low: lane and weight of each turn of low priority.
    :param lane_of_level: lane of each of the 16 service levels; 15 if packets of the level are dropped.
    """

    enabled: bool = False
    lanes: int = 15
    limit: int = 0
    high: Entries = ((0, 4),)
    low: Entries = tuple((lane, 4) for lane in range(1, 15))
    lane_of_level: tuple[int, ...] = (*range(15), 7)

    def __post_init__(self) -> None:
        for name, table in (("high", self.high), ("low", self.low)):
            if len(table) > MOST_ENTRIES:
                raise InterferenceError(f"opensm: {name}: expecting up to {MOST_ENTRIES} turns, got {len(table)}")
            for lane, units in table:
                if not 0 <= lane < 15 or not 1 <= units <= MOST_UNITS:
                    raise InterferenceError(
                        f"opensm: {name}: expecting lanes below 15 with 1 to {MOST_UNITS} units, got {lane}:{units}"
                    )
        if self.lanes not in DATA_LANES or not 0 <= self.limit <= 255:
            text = f"{self.lanes} and {self.limit}"
            raise InterferenceError(f"opensm: expecting 1, 2, 4, 8 or 15 lanes, and a limit of 0 to 255, got {text}")
        if len(self.lane_of_level) != LEVELS or not all(0 <= lane <= 15 for lane in self.lane_of_level):
            text = ",".join(map(str, self.lane_of_level))
            raise InterferenceError(f"opensm: expecting the lanes of {LEVELS} service levels, got {text}")

    @classmethod
    def of(cls, lanes: Lanes, mtu: int = 4096) -> Qos:
        """The quality of service that gives each lane its turns; service levels without jobs have lane 0.

        :param lanes: lane of each job, and the weights in packets.
        :param mtu: bytes of data in a full packet.
        """
        arbitration, used = lanes.arbitration(), len(lanes.weights)
        high, low = (
            tuple(turn for lane, weight in table for turn in entries_of(lane, weight, mtu))
            for table in (arbitration.high, arbitration.low)
        )
        limit = arbitration.limit if high else 0
        levels = tuple(level if level < used else 0 for level in range(LEVELS))
        return cls(True, lanes.configured, limit, high, low, levels)

    def arbitration(self) -> Arbitration:
        """The arbitration of ports in the packet model."""
        return Arbitration(self.low, self.high, self.limit, "64 bytes")

    def lines(self) -> str:
        """The lines of the options file. An empty table is written as a turn of weight 0."""
        high, low = (",".join(f"{lane}:{units}" for lane, units in table) or "0:0" for table in (self.high, self.low))
        values = {
            "qos": "TRUE" if self.enabled else "FALSE",
            "qos_max_vls": self.lanes,
            "qos_high_limit": self.limit,
            "qos_vlarb_high": high,
            "qos_vlarb_low": low,
            "qos_sl2vl": ",".join(map(str, self.lane_of_level)),
        }
        return "".join(f"{name} {value}\n" for name, value in values.items())


def entries_of(lane: int, packets: int, mtu: int = 4096) -> list[tuple[int, int]]:
    """The turns in which a lane sends a number of full packets: lane and weight of each, one after the other.

    A port sends a packet if any weight is left, so that a turn may end with a packet larger than the rest. An entry of
    n packets has n times the units of a packet's data, or 255; packets with headers, a unit more, do not change n.

    :param lane: number of the lane.
    :param packets: number of packets.
    :param mtu: bytes of data in a full packet.
    """
    units = -(-mtu // UNIT)
    most = next(n for n in range(MOST_UNITS, 0, -1) if (units + 1) * (n - 1) < min(units * n, MOST_UNITS))
    parts = [most] * (packets // most) + ([packets % most] if packets % most else [])
    return [(lane, min(units * part, MOST_UNITS)) for part in parts]
