"""Simulation of programs on a network of packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...network import link_loads
from ..errors import NetsimError
from ..flows import Hosts, Result
from ..program import BACKGROUND, ONCE, Program
from ..session import Programs, Rates
from ..tables import Floats, Tables
from .arrays import PICO, ProgramArrays, event_buckets, link_arrays, numbers
from .deadlock import dependency_cycle, link_names, waiting_cycle
from .settings import Settings

try:
    from . import _packets

    Engine: type[_packets.Engine] | None = _packets.Engine
except ImportError:  # installed without a compiler
    Engine = None

__all__ = ["PacketResult", "PacketSession", "run"]

ROUNDING = 1e-9  # largest relative rounding error of a time


@dataclass(frozen=True, eq=False)
class PacketResult(Result):
    """The times of programs, and the activity of links until all jobs outside the background had run once.

    The other fields are those of ``Result``.

    :param lane_bytes: bytes of messages that crossed each link on each lane, shape (links, lanes).
    :param lane_waits: time in seconds for which a packet on a lane waited for room in the next buffer, shape (links,
        lanes).
    :param counts: numbers by name: ``hops`` of packets over links, ``events``, packets ``sent``, ``delivered`` and
        ``in_buffers`` at the end, and ``lost_room``, bytes of buffers that are not accounted for, which must be 0.
    """

    lane_bytes: NDArray[np.int64]
    lane_waits: Floats
    counts: dict[str, int]


class PacketSession(Programs):
    """A simulation of programs on a network of packets, whose time the caller advances; it implements ``Session``.

    An eager message is sent when its sender's processor hands it over, and its receiver's processor takes it on
    arrival. For other messages the sender announces it, the receiver fetches it (see ``Settings.rendezvous``), and a
    control packet completes the send. Acknowledgements of packets are not modelled.

    A link carries a packet at its full rate or nothing, so rates and loads are means over the time since they were last
    read. Packets of a removed program still arrive if they have left their host.

    :param tables: the network.
    :param hosts: costs of the hosts; a rank copies messages from its own host with its own processor, one after the
        other, with ``copy_latency`` each.
    :param settings: settings of switches and adapters.
    :param seed: seed of the random skew.
    :param circles: whether to allow routes on which packets may wait for each other in a circle (deadlock).
    :raises NetsimError: if the C extension is missing.
    Cost: about 100 to 250 ns per packet and link. Memory for all messages ever added, but not for pairs of hosts.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        hosts: Hosts | None = None,
        settings: Settings | None = None,
        seed: int = 0,
        circles: bool = False,
    ) -> None:
        if Engine is None:
            raise NetsimError("packets: expecting the C extension, got none: install topompi where a C compiler is")
        self._tables, self._hosts, self._settings = tables, hosts or Hosts(), settings or Settings()
        self._random, self._circles = np.random.default_rng(seed), circles
        self._engine = Engine(link_arrays(tables, self._settings), numbers(self._settings, self._hosts))
        self._bounds: list[Floats] = []
        self._pairs = np.empty((3, 0), dtype=np.int64)
        self._loads, self._sent = _Meter(), _Meter()
        super().__init__("packets", self._engine)

    def _enter(self, programs: Sequence[Program], begins: Floats) -> None:
        skew = self._random.uniform(0.0, 1.0, sum(one.num_ranks for one in programs)) * self._hosts.skew
        lanes, hop_lanes = self._settings.lanes, self._settings.hop_lanes
        jobs = ProgramArrays.of(self._tables, programs, lanes, begins, skew, hop_lanes)
        loads, pairs = _loads(self._tables, jobs, len(programs))
        pairs[0] += len(self._entries)
        if not self._circles:
            self._refuse_circles(pairs, [*(one.program for one in self._entries), *programs])
        self._engine.add(jobs.columns)
        self._pairs = np.concatenate((self._pairs, pairs), axis=1)
        bursts = self._settings.bursts(self._tables.rate)
        self._bounds.append(((loads - bursts) / self._tables.rate).max(axis=1, initial=0.0))
        super()._enter(programs, begins)

    def _refuse_circles(self, more: NDArray[np.int64], programs: Sequence[Program]) -> None:
        """Raise NetsimError if the routes of present and new programs may deadlock on a lane of the new ones.

        Control packets travel from receiver to sender, so the reverse routes count, too.

        :param more: job, sending host and receiving host of each pair of hosts of the new programs, shape (3, pairs).
        :param programs: all programs of the session, then the new ones; a job is an index into them.
        """
        over = [one.removed or (one.program.repeat == ONCE and bool(one.ends)) for one in self._entries]
        here = self._pairs[:, ~np.array(over, dtype=bool)[self._pairs[0]]]
        pairs = np.concatenate((here, more), axis=1)
        lane_of = np.array([one.lane for one in programs])
        lanes = lane_of[pairs[0]]
        for lane in np.unique(lane_of[more[0]]):
            _, source, destination = pairs[:, lanes == lane]
            ends = np.append(source, destination), np.append(destination, source)
            circle = dependency_cycle(self._tables, *ends, self._settings.hop_lanes)
            if circle:
                raise NetsimError(
                    f"packets: lane {lane}: expecting routes without a circle of links that may wait for each other, "
                    f"got {link_names(self._tables, circle)} (more hop_lanes may break it)"
                )

    def advance(self, until: float | None = None) -> list[int]:
        """Advance the time, and return the handles of the programs that ended a run; see ``Session``.

        :param until: time in seconds to advance to; by default the time of the next end of a run.
        """
        self._arrange()
        return super().advance(until)

    def remove(self, handle: int) -> None:
        """Remove a program; see ``Session``.

        :param handle: handle of the program.
        """
        self._arrange()
        super().remove(handle)

    def _arrange(self) -> None:
        if not self._engine.shift:
            used = {host for one in self._entries for host in one.program.hosts.tolist()}
            self._engine.arrange(*event_buckets(self._tables, self._settings, len(used)))

    def _stuck(self) -> NetsimError:
        circle = waiting_cycle(self._engine.waiting_packets(), len(self._tables.rate), self._settings.lanes)
        if circle:
            return NetsimError(f"packets: expecting no deadlock, got one of {link_names(self._tables, circle)}")
        return self._waits_for_ever(self._read()[0]["rank_end"] < 0)

    def _read(self) -> tuple[dict[str, NDArray[np.int64]], dict[str, int]]:
        """The ends of first runs in picoseconds (-1 before the end), the activity of links, and the counts."""
        lanes = (len(self._tables.rate), self._settings.lanes)
        shapes = {
            "rank_end": self._first_rank[-1:],
            "job_end": (len(self._entries),),
            "lane_bytes": lanes,
            "lane_wait": lanes,
        }
        arrays = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
        return arrays, self._engine.read(arrays)

    def rates(self) -> Rates:
        """The messages that left their hosts since rates were last read, and their mean rates since then."""
        sent = np.zeros(self._first_message[-1], dtype=np.int64)
        self._engine.sent(sent)
        rate = self._sent.mean(self._now, sent)
        there = np.repeat([not one.removed for one in self._entries], np.diff(self._first_message))
        message = np.flatnonzero((rate > 0) & there.astype(bool))
        return self._rates(message, rate[message])

    def loads(self) -> Floats:
        """The mean rate of messages on each link in bytes/s since loads were last read, shape (links,)."""
        return self._loads.mean(self._now, self.link_bytes())

    def link_bytes(self) -> Floats:
        """The bytes of messages that have crossed each link so far, shape (links,)."""
        crossed: Floats = self._read()[0]["lane_bytes"].sum(axis=1).astype(np.float64)
        return crossed

    def result(self) -> PacketResult:
        """The times of the first runs of all programs added so far; unfinished runs have NaN.

        :raises NetsimError: if a time is below the job's lower bound.
        """
        arrays, counts = self._read()
        start = np.array([one.begin for one in self._entries])
        ends = [np.where(arrays[name] < 0, np.nan, arrays[name] / PICO) for name in ("job_end", "rank_end")]
        result = PacketResult(
            job_seconds=ends[0] - start,
            rank_seconds=ends[1] - np.repeat(start, np.diff(self._first_rank)),
            link_bytes=arrays["lane_bytes"].sum(axis=1).astype(np.float64),
            bounds=np.concatenate(self._bounds),
            lane_bytes=arrays["lane_bytes"],
            lane_waits=arrays["lane_wait"] / PICO,
            counts=counts,
        )
        for entry, seconds, bound in zip(self._entries, result.job_seconds, result.bounds, strict=True):
            if seconds < bound * (1 - ROUNDING) - ROUNDING / PICO:
                raise NetsimError(f"packets: {entry.program.name}: expecting at least {bound:g} s, got {seconds:g}")
        return result


class _Meter:
    """The mean increase of counters per second, from one reading to the next."""

    def __init__(self) -> None:
        self._time, self._count, self._mean = 0.0, np.zeros(0), np.zeros(0)

    def mean(self, now: float, count: NDArray[Any]) -> Floats:
        """The increase per second since the last reading at another time, of the same shape as the counts.

        :param now: current time in seconds.
        :param count: counts so far; there may be more of them than at the last reading.
        """
        before = np.zeros(len(count))
        if now > self._time:
            before[: len(self._count)] = self._count
            self._mean = (count - before) / (now - self._time)
            self._time, self._count = now, count.astype(np.float64)
        before[: len(self._mean)] = self._mean
        return before


def run(
    tables: Tables,
    programs: Sequence[Program],
    *,
    hosts: Hosts | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    circles: bool = False,
) -> PacketResult:
    """Simulate jobs that share a network until every job has run once, except those that run in the background.

    :param tables: the network.
    :param programs: one program per job.
    :param hosts: costs of the hosts.
    :param settings: settings of switches and adapters.
    :param seed: seed of the random skew.
    :param circles: whether to allow routes on which packets may wait for each other in a circle (deadlock).
    :raises NetsimError: if there is a deadlock, routes may deadlock, programs wait forever, the C extension is missing,
        or a time is below the job's lower bound.
    Cost: as ``PacketSession``.
    """
    session = PacketSession(tables, hosts=hosts, settings=settings, seed=seed, circles=circles)
    if all(one.repeat == BACKGROUND for one in programs):
        raise NetsimError(f"packets: expecting a program that is not background, got none of {len(programs)}")
    session._enter(programs, np.array([one.start for one in programs], dtype=np.float64))
    while session.waiting:
        session.advance()
    return session.result()


def _loads(tables: Tables, jobs: ProgramArrays, count: int) -> tuple[Floats, NDArray[np.int64]]:
    """The bytes of each job on each link, shape (jobs, links), and the pairs of hosts that exchange messages.

    Each pair has a job, a sending host and a receiving host.
    """
    source, destination, nbytes, job = jobs.pairs
    size = tables.num_hosts
    key, which = np.unique((job * size + source) * size + destination, return_inverse=True)
    pairs = np.stack((key // (size * size), key // size % size, key % size))
    total = np.bincount(which, weights=nbytes, minlength=len(key))
    loads = np.zeros((count, tables.num_links))
    spans = pairwise(np.searchsorted(pairs[0], np.arange(count + 1)).tolist())
    for of_job, span in zip(loads, (slice(*one) for one in spans), strict=True):
        for some, paths in tables.chunks(*pairs[1:, span]):
            of_job += link_loads(paths, total[span][some], tables.num_links)
    return loads, pairs
