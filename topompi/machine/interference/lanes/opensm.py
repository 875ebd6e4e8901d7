"""Lanes in the options file of OpenSM: arbitration of ports, and the lane of each service level.

The lines are those of opensm(8), section QoS configuration; the tables are those of the InfiniBand Architecture
Specification, volume 1, 7.6.6 and 7.6.9. A service level's number is that of its lane.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ....inputs.files import read_text
from ....netsim.packets import Arbitration
from ..errors import InterferenceError
from .choice import DATA_LANES, Lanes

__all__ = ["Qos", "entries_of", "read_options"]

Entries = tuple[tuple[int, int], ...]
LEVELS = 16  # service levels
UNIT = 64  # bytes that a weight counts
MOST_UNITS = 255  # largest weight of an entry
MOST_ENTRIES = 64  # of each table
_TARGETS = re.compile(r"qos_(ca|rtr|sw0|swe)_")  # lines for some ports only
_UNSET = ("(null)", "0", "-1")  # values of such lines that OpenSM itself writes, and that mean "as for all ports"


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


def read_options(path: str | os.PathLike[str]) -> Qos:
    """Read the quality of service of all ports from an options file of OpenSM; all other options are ignored.

    :param path: the file.
    :raises InterferenceError: if a line is malformed, or sets the quality of service of some ports only.
    """
    found: dict[str, object] = {}
    for number, line in enumerate(read_text(path, InterferenceError, "options of OpenSM").splitlines(), 1):
        words = line.partition("#")[0].replace("=", " ", 1).split(None, 1)
        if len(words) != 2:
            continue
        name, value, place = words[0], words[1].strip(), f"{os.fspath(path)}:{number}"
        if _TARGETS.match(name) and value not in _UNSET:
            raise InterferenceError(f"{place}: expecting one setting for all ports, got {name}")
        if name in _READERS:
            field, read = _READERS[name]
            try:
                found[field] = read(value)
            except ValueError as problem:
                raise InterferenceError(f"{place}: {name}: {problem}") from problem
    try:
        return Qos(**found)  # type: ignore[arg-type]
    except InterferenceError as problem:
        raise InterferenceError(f"{os.fspath(path)}: {problem}") from problem


def _flag(text: str) -> bool:
    if text.upper() not in ("TRUE", "FALSE"):
        raise ValueError(f"expecting TRUE or FALSE, got {text!r}")
    return text.upper() == "TRUE"


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text.strip()):
        raise ValueError(f"expecting a number up to 255, got {text!r}")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(_number, _parts(text)))


def _turns(text: str) -> Entries:
    pairs = [part.split(":") for part in _parts(text)]
    if wrong := next((pair for pair in pairs if len(pair) != 2), None):
        raise ValueError(f"expecting LANE:WEIGHT, got {':'.join(wrong)!r}")
    return tuple((lane, units) for lane, units in ((_number(one), _number(two)) for one, two in pairs) if units)


def _parts(text: str) -> Sequence[str]:
    return text.strip().rstrip(",").split(",")  # OpenSM's own examples end with a comma


_READERS = {
    "qos": ("enabled", _flag),
    "qos_max_vls": ("lanes", _number),
    "qos_high_limit": ("limit", _number),
    "qos_vlarb_high": ("high", _turns),
    "qos_vlarb_low": ("low", _turns),
    "qos_sl2vl": ("lane_of_level", _numbers),
}
