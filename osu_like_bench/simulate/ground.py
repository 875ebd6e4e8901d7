"""The base class of arenas (simulated networks): known rates and latencies, schedules, and lower bounds of times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from topompi.network import Tables
from topompi.schedules import Model, Network, Schedule, lower_bound
from topompi.schedules.schedule import ROOTED
from topompi.schedules.segments import SizedSchedule, make_cut

__all__ = ["MOST_MESSAGES", "Failure", "Ground", "SizedSchedule", "Starts", "complete"]

ACCURACY = 1e-4  # greatest relative error of a time, because sums of rates are rounded
MOST_MESSAGES = 3_000_000  # maximum number of messages of a simulated schedule
UNKNOWN_RATE = 1.0  # bytes/s; if all links have this rate, the network's source has no rates, and they are filled in


@dataclass(frozen=True)
class Failure:
    """The reason why a simulation has no time.

    :param reason: ``left out: ...`` or ``impossible: ...``.
    """

    reason: str

    def __str__(self) -> str:
        return self.reason


class Starts(float):
    """The median of a schedule's seconds over several runs, in which ranks start at different times.

    :param samples: seconds of each run.
    :param bracket: median seconds of runs with other switches, by a description of the switches.
    """

    samples: tuple[float, ...]
    bracket: dict[str, float]

    def __new__(cls, samples: Sequence[float], bracket: Mapping[str, float] | None = None) -> Self:
        """Make the float that is the samples' median, with both arguments as its attributes."""
        made = super().__new__(cls, float(np.median(samples)))
        made.samples, made.bracket = tuple(samples), dict(bracket or {})
        return made


def complete(network: Network, system: str = "stampede") -> Network:
    """Return the network with unknown rates and latencies filled in from a system in table 1.1 of Subramoni 2013.

    The table has the latency of a message by the number of switches that it crosses. A least-squares line through it
    gives the latencies of links: half of the line's value at one switch for a link between host and switch, its slope
    for a link between switches. Stampede: 0.53 and 0.37 us, at most 1.7 % from the table; Ranger: 0.83 and 0.32 us, at
    most 7 %.

    :param network: the network.
    :param system: ``ranger`` or ``stampede``.
    """
    model = Model.preset(system)
    capacity = network.capacity
    if (capacity == UNKNOWN_RATE).all():
        capacity = np.full(len(capacity), 1 / model.t_w[-1])
    hops, seconds = np.array([pair for pair in zip(model.hops, model.t_s, strict=True) if pair[0]]).T
    slope, one_switch = np.polyfit(hops - 1, seconds, 1)
    derived = np.full(len(capacity), slope)
    derived[_host_links(network)] = one_switch / 2
    latency = np.where(np.isnan(network.latency), derived, network.latency)
    return replace(network, capacity=capacity, latency=latency)


def _host_links(network: Network) -> NDArray[np.int64]:
    """Return the numbers of the links between hosts and switches, ascending.

    If the network has no next-hop tables, these links are the first and the last ones of all routes.
    """
    if isinstance(network.paths, Tables):
        ends = np.minimum(network.paths.source, network.paths.target)
        return np.flatnonzero(ends < network.paths.first_switch)
    length = (network.links >= 0).sum(axis=2)
    routed = np.nonzero(length)
    return np.unique(np.concatenate((network.links[routed][:, 0], network.links[(*routed, length[routed] - 1)])))


class Ground(ABC):
    """The base class of arenas, simulated networks on which schedules are timed; every link has a rate and a latency.

    :param network: network of the job; unknown rates and latencies are filled in, see ``complete``.
    :param system: system in table 1.1 of Subramoni 2013 whose latencies and rates are filled in: ``stampede`` or
        ``ranger``.
    :param most_messages: maximum number of messages of a schedule; a longer one is not simulated.
    """

    def __init__(self, network: Network, system: str, most_messages: int) -> None:
        self.network = complete(network, system)
        self.shared = self.network  # the network with the rates that a second job leaves
        self.system, self.most_messages = system, most_messages
        self._given = bool((network.capacity == self.network.capacity).all()), ~np.isnan(network.latency)
        inside = Model.preset(system)
        self._loopback = (1 / inside.t_w[0], inside.t_s[0])

    @property
    @abstractmethod
    def simulator(self) -> str:
        """Name and version of the simulator."""

    @abstractmethod
    def time(self, schedule: Schedule, block_bytes: int = 1, slices: int = 1) -> float | Failure:
        """Return the simulated seconds until the last rank has completed a schedule, or a failure.

        :param schedule: the messages, in blocks.
        :param block_bytes: bytes of one block.
        :param slices: number of parts into which every transfer is cut.
        """

    @abstractmethod
    def peer(self, library: str, collective: str, nbytes: int, root: int = 0) -> float | Failure:
        """Return the simulated seconds of a library's own choice of algorithm for a collective, or a failure.

        :param library: name of the library.
        :param collective: name of the collective.
        :param nbytes: bytes of one message: in bcast, reduce and allreduce the whole, in alltoall one rank's block for
            one other rank, in other collectives one rank's share.
        :param root: root of a rooted collective.
        """

    @property
    def _latencies_of(self) -> str:
        """Name of the system whose latencies are filled in."""
        return self.system

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - optional: an arena in this process has no programs to end
        """End the simulations that are still running."""

    def describe(self) -> str:
        """Describe in a line the origin of rates and latencies."""
        rates = "the source's rates" if self._given[0] else f"rates as on {self.system}"
        given = self._given[1]
        latencies = f"latencies as on {self._latencies_of}" + (" where the source has none" if given.any() else "")
        latencies = "the source's latencies" if given.all() else latencies
        return f"{rates}, {latencies}"

    def schedule(self, collective: str, algorithm: str, nbytes: int, root: int = 0, **parameters: Any) -> SizedSchedule:
        """Return the schedule of an algorithm for messages of ``nbytes``, which are divided into blocks of whole bytes.

        It is made for the network's full rates, because a job does not know of the second job (background).

        :param collective: name of the collective.
        :param algorithm: name of the algorithm, with a segment size if it is to be segmented (``ring/32K``).
        :param nbytes: bytes of one message.
        :param root: root of a rooted collective.
        :param parameters: further arguments of the algorithm by name, see ``schedules.make``.
        """
        return make_cut(collective, algorithm, self.network, root, nbytes, **parameters)

    def left_out(self, schedule: Schedule, slices: int = 1) -> Failure | None:
        """Return the reason why a schedule is not simulated; None if it is.

        :param schedule: the schedule.
        :param slices: number of parts into which every transfer is cut.
        """
        messages = slices * int(np.count_nonzero(schedule.messages))
        if messages <= self.most_messages:
            return None
        return Failure(f"left out: {messages:,} transfers, more than {self.most_messages:,}")

    def bound(self, collective: str, nbytes: int, root: int = 0) -> float:
        """Return a lower bound in seconds of the times of all schedules of a collective; see ``schedules.lower_bound``.

        It counts only the time of bytes on links, not the start-up times of messages.


        :param collective: name of the collective.
        :param nbytes: bytes of one message, see ``peer``.
        :param root: root of a rooted collective.
        """
        chosen = root if collective in ROOTED else None
        return lower_bound(self.shared, collective, root=chosen, block_bytes=nbytes).seconds

    def possible(self, found: float | Failure, collective: str, nbytes: int, root: int = 0) -> float | Failure:
        """Return a simulated time, or a failure if it is below the lower bound, because it then must be wrong.

        :param found: simulated seconds, or a failure.
        :param collective: name of the collective.
        :param nbytes: bytes of one message.
        :param root: root of a rooted collective.
        """
        bound = self.bound(collective, nbytes, root)
        if isinstance(found, Failure) or found >= (1 - ACCURACY) * bound:
            return found
        return Failure(f"impossible: {found * 1e6:.2f} us, {bound * 1e6:.2f} at least; it does not move all data")
