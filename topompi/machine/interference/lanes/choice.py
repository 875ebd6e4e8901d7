"""A choice of lanes for jobs, and the rules that make one from the load of each job (Jokanovic 2014, section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from ....netsim import Program
from ....netsim.packets import Arbitration, Settings
from ..classes import CLASSES
from ..errors import InterferenceError

__all__ = ["DATA_LANES", "Lanes", "by_classes", "by_rules"]

DATA_LANES = (1, 2, 4, 8, 15)  # numbers of data lanes that InfiniBand ports can have
MOST_WEIGHT = 128  # packets per turn; the packet model takes up to 255


@dataclass(frozen=True)
class Lanes:
    """The lane of each job, and the weight of each lane.

    :param of_job: lane of each job; lanes are numbered from 0, and each has a job.
    :param weights: number of packets that each lane sends per turn.
    :param high: lanes in the high-priority table, which is served without limit before all others.
    """

    of_job: tuple[int, ...]
    weights: tuple[int, ...]
    high: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.weights)
        if not self.of_job or sorted(set(self.of_job)) != list(range(count)) or count > DATA_LANES[-1]:
            text = f"{count} weights for jobs on lanes {', '.join(map(str, self.of_job)) or 'none'}"
            raise InterferenceError(f"lanes: expecting 1 to {DATA_LANES[-1]} lanes, each with a job, got {text}")
        if not all(1 <= weight <= 255 for weight in self.weights):
            text = ", ".join(map(str, self.weights))
            raise InterferenceError(f"lanes: expecting weights of 1 to 255 packets, got {text}")
        if not set(self.high) <= set(self.of_job):
            raise InterferenceError(f"lanes: expecting lanes below {count} of high priority, got {max(self.high)}")

    @classmethod
    def together(cls, jobs: int) -> Lanes:
        """All jobs on one lane."""
        return cls((0,) * jobs, (1,))

    @property
    def configured(self) -> int:
        """Number of data lanes of the ports: the least that InfiniBand has for these lanes."""
        return next(count for count in DATA_LANES if count >= len(self.weights))

    @property
    def canonical(self) -> Lanes:
        """The same choice with lanes numbered by their first jobs, without empty ones, and with reduced weights."""
        number = {lane: at for at, lane in enumerate(dict.fromkeys(self.of_job))}
        weights = [self.weights[lane] for lane in number]
        common = gcd(*weights)
        high = tuple(sorted(number[lane] for lane in self.high))
        return Lanes(tuple(number[lane] for lane in self.of_job), tuple(one // common for one in weights), high)

    def jobs(self, lane: int) -> list[int]:
        """The jobs on a lane, ascending."""
        return [job for job, own in enumerate(self.of_job) if own == lane]

    def arbitration(self) -> Arbitration:
        """The arbitration of ports in packets; lanes without jobs have weight 1."""
        weights = self.weights + (1,) * (self.configured - len(self.weights))
        turns = tuple(enumerate(weights))
        low = tuple(turn for turn in turns if turn[0] not in self.high)
        return Arbitration(low, tuple(turn for turn in turns if turn[0] in self.high))

    def settings(self, settings: Settings) -> Settings:
        """Settings with these lanes, which divide the same buffer of each port among them.

        :param settings: settings of switches and adapters.
        :raises NetsimError: if a lane's part of the buffer has no room for a packet.
        """
        return replace(settings, lanes=self.configured, arbitration=self.arbitration())

    def programs(self, programs: Sequence[Program]) -> list[Program]:
        """The programs of all jobs on their lanes."""
        return [replace(one, lane=lane) for one, lane in zip(programs, self.of_job, strict=True)]


def by_rules(usage: Sequence[float], lanes: int) -> Lanes:
    """Choose lanes by the source's rules.

    Up to as many jobs as lanes get one each, in their order. Otherwise the jobs of the largest usages get one each, and
    all others share the last one: the source wants compatible groups, but its text has no rule to form them. The less
    its jobs use, the more weight a lane has: 1, 2, 4, ...

    :param usage: largest usage of a level by each job, see `Character.usage`.
    :param lanes: largest number of lanes.
    """
    _require_lanes(lanes)
    order = sorted(range(len(usage)), key=lambda job: (-usage[job], job))
    of_job = list(range(len(usage)))
    if len(usage) > lanes:
        for rank, job in enumerate(order):
            of_job[job] = min(rank, lanes - 1)
    most = [0.0] * (max(of_job, default=0) + 1)
    for job, lane in enumerate(of_job):
        most[lane] = max(most[lane], usage[job])
    return Lanes(tuple(of_job), _ladder(most))


def by_classes(classes: Sequence[str], lanes: int) -> Lanes:
    """Choose a lane per class that jobs have, from extreme to low, with weights 1, 2 and 4.

    If there are fewer lanes than classes, the lightest classes share one.

    :param classes: class of each job.
    :param lanes: largest number of lanes.
    """
    _require_lanes(lanes)
    if unknown := set(classes) - set(CLASSES):
        raise InterferenceError(f"lanes: expecting classes {', '.join(CLASSES)}, got {min(unknown)!r}")
    present = [name for name in reversed(CLASSES) if name in classes]
    of_job = tuple(min(present.index(name), lanes - 1) for name in classes)
    return Lanes(of_job, tuple(1 << lane for lane in range(len(set(of_job)))))


def _ladder(usage: Sequence[float]) -> tuple[int, ...]:
    """Weights of lanes with these usages: 1 for the largest, twice as much for each next smaller one; equal for equal.

    The text has no magnitudes of weights, only the examples 1:2, 1:4 and 1:2:4.
    """
    ranks = sorted(set(usage), reverse=True)
    return tuple(min(1 << ranks.index(one), MOST_WEIGHT) for one in usage)


def _require_lanes(lanes: int) -> None:
    if not 1 <= lanes <= DATA_LANES[-1]:
        raise InterferenceError(f"lanes: expecting 1 to {DATA_LANES[-1]} lanes, got {lanes}")
