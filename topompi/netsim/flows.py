"""Simulation of messages as flows that share links max-min fairly, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..network import joined, link_loads
from .errors import NetsimError
from .interpreter import Interpreter
from .program import BACKGROUND, Program
from .session import Programs, Rates
from .tables import Tables
from .tape import RecordedTraffic, Tape
from .wiring import Wiring

try:
    from . import _flows

    _compiled: type[_flows.Engine] | None = _flows.Engine
except ImportError:  # installed without a compiler
    _compiled = None

__all__ = ["FlowSession", "Hosts", "Result", "run"]

Floats = NDArray[np.float64]

ROUNDING = 1e-9  # largest relative rounding error of sums of rates, and of bytes over rates


@dataclass(frozen=True)
class Hosts:
    """The costs of hosts, which add to the times of the network; by default there are none.

    :param send_overhead: time of the sender's processor per message, in seconds.
    :param receive_overhead: time of the receiver's processor per message, in seconds.
    :param copy_rate: rate in bytes/s at which a rank receives all messages from ranks on its own host together.
    :param copy_latency: latency of a message inside a host, in seconds.
    :param eager: largest size in bytes of an eager message, whose send is complete when it is handed over; longer
        messages wait for their receiver.
    :param skew: largest delay of a rank's start after its job's, in seconds; each rank's delay is random.
    """

    send_overhead: float = 0.0
    receive_overhead: float = 0.0
    copy_rate: float = np.inf
    copy_latency: float = 0.0
    eager: float = 0.0
    skew: float = 0.0

    def __post_init__(self) -> None:
        for name in ("send_overhead", "receive_overhead", "copy_latency", "eager", "skew"):
            if not getattr(self, name) >= 0:
                raise NetsimError(f"hosts: {name}: expecting at least 0, got {getattr(self, name)}")
        if not self.copy_rate > 0:
            raise NetsimError(f"hosts: copy_rate: expecting more than 0 bytes/s, got {self.copy_rate}")


@dataclass(frozen=True, eq=False)
class Result:
    """The times of all programs, and the bytes on all links; of a program that repeats, only the first run counts.

    :param job_seconds: time from each job's start until its last rank ends, in seconds, shape (jobs,); NaN if it had
        not ended when the simulation did, which waits for all jobs except those in the background.
    :param rank_seconds: time from the start of the rank's job until each rank ends, in seconds, shape (ranks,).
    :param link_bytes: bytes that had crossed each link when all jobs outside the background had run once, shape
        (links,).
    :param bounds: lower bound of each job's time in seconds, shape (jobs,): the time that the job's busiest link needs
        for the job's bytes.
    """

    job_seconds: Floats
    rank_seconds: Floats
    link_bytes: Floats
    bounds: Floats


class FlowSession(Programs):
    """A simulation of programs on a network of flows, whose time the caller advances; it implements ``Session``.

    A message flows when its sender has handed it over and, unless it is eager, its receiver has posted it. After the
    latencies of its links it flows at its max-min fair share of the links' rates. The methods ``rates`` and ``loads``
    return values of the current instant.

    :param wiring: network; ``Tables`` if the routes between all pairs of hosts would take too much memory.
    :param hosts: costs of the hosts.
    :param seed: seed of the random skew.
    :param tolerance: largest relative delay of a message. Rates are recomputed as rarely as this permits; no message is
        ever early. With 0 they are recomputed at each instant at which a flow begins or ends.
    :param compiled: whether to use the C extension if it is installed.
    Cost: 2 to 30 us per message in C, depending on how many rates change when a flow begins or ends. Without C, Python
    executes each message, and rates of all flows are recomputed together. Memory for all messages ever added.
    """

    def __init__(
        self,
        wiring: Wiring | Tables,
        *,
        hosts: Hosts | None = None,
        seed: int = 0,
        tolerance: float = 0.0,
        compiled: bool = True,
    ) -> None:
        if not tolerance >= 0:
            raise NetsimError(f"flows: expecting a tolerance of at least 0, got {tolerance}")
        self._wiring, self._hosts = wiring, hosts or Hosts()
        self._random = np.random.default_rng(seed)
        kind: type[_flows.Engine | Interpreter] = _compiled if compiled and _compiled is not None else Interpreter
        about = self._hosts
        rates = np.ascontiguousarray(wiring.rate, dtype=np.float64)
        self._engine = kind(rates, about.copy_rate, about.send_overhead, about.receive_overhead, about.eager, tolerance)
        self._traffic: list[RecordedTraffic] = []
        self._entered: list[int] = []  # number of the first message in each item of ``_traffic``
        self._starts: list[Floats] = []
        super().__init__("flows", self._engine)

    def _enter(self, programs: Sequence[Program], begins: Floats) -> None:
        tape = Tape.of(self._wiring, programs, self._hosts.copy_rate, self._hosts.copy_latency)
        start = np.repeat(begins, np.diff(tape.first_rank))
        self._engine.add(tape.arrays(start + self._random.uniform(0.0, 1.0, tape.num_ranks) * self._hosts.skew))
        self._traffic.append(tape.traffic)
        self._entered.append(int(self._first_message[-1]))
        self._starts.append(start)
        super()._enter(programs, begins)

    def _stuck(self) -> NetsimError:
        return self._waits_for_ever(np.isnan(self._read()[0]))

    def _read(self) -> tuple[Floats, Floats]:
        """The time at which each rank ended the first run of its program, and the number of arrivals of each message.

        The fraction of a message that has flowed counts as a fraction of an arrival.
        """
        ends, arrivals = np.full(self._first_rank[-1], np.nan), np.zeros(self._first_message[-1])
        self._engine.read(ends, arrivals)
        return ends, arrivals

    def rates(self) -> Rates:
        """The messages that flow now, and their rates."""
        return self._rates(*self._flows())

    def _flows(self) -> tuple[NDArray[np.int64], Floats]:
        """Numbers of the messages that flow, counted through all programs, ascending, and their rates in bytes/s."""
        found = np.array(sorted(self._engine.flows()), dtype=np.float64).reshape(-1, 2)
        return found[:, 0].astype(np.int64), found[:, 1]

    def loads(self) -> Floats:
        """The rate in bytes/s at which bytes cross each link now, shape (links,)."""
        message, rate = self._flows()
        place = np.searchsorted(self._entered, message, "right") - 1
        here = [(one, message[place == one]) for one in np.unique(place).tolist()]
        paths = [self._traffic[one].paths[some - self._entered[one]] for one, some in here]
        return link_loads(joined(paths), rate, len(self._wiring.rate))

    def link_bytes(self) -> Floats:
        """The bytes that have crossed each link so far, shape (links,)."""
        nbytes = [np.zeros(0), *(one.nbytes for one in self._traffic)]
        crossed = np.concatenate(nbytes) * self._read()[1]
        return link_loads(joined([one.paths for one in self._traffic]), crossed, len(self._wiring.rate))

    def result(self) -> Result:
        """The times of the first runs of all programs added so far; unfinished runs have NaN.

        :raises NetsimError: if a time is below the job's lower bound.
        """
        seconds = self._read()[0] - np.concatenate(self._starts)
        spans = pairwise(self._first_rank.tolist())
        jobs = np.array([seconds[slice(*span)].max(initial=0.0) for span in spans])
        bounds = np.concatenate([one.bounds() for one in self._traffic])
        for entry, taken, bound in zip(self._entries, jobs, bounds, strict=True):
            if taken < bound * (1 - ROUNDING):
                raise NetsimError(f"flows: {entry.program.name}: expecting at least {bound:g} s, got {taken:g}")
        return Result(jobs, seconds, self.link_bytes(), bounds)


def run(
    wiring: Wiring | Tables,
    programs: Sequence[Program],
    *,
    hosts: Hosts | None = None,
    seed: int = 0,
    tolerance: float = 0.0,
    compiled: bool = True,
) -> Result:
    """Simulate jobs that share a network until every job has run once, except those that run in the background.

    :param wiring: network; ``Tables`` if the routes between all pairs of hosts would take too much memory.
    :param programs: one program per job.
    :param hosts: costs of the hosts.
    :param seed: seed of the random skew.
    :param tolerance: largest relative delay of a message, see ``FlowSession``.
    :param compiled: whether to use the C extension if it is installed.
    :raises NetsimError: if programs wait forever, or a time is below the job's lower bound.
    Cost: as ``FlowSession``.
    """
    session = FlowSession(wiring, hosts=hosts, seed=seed, tolerance=tolerance, compiled=compiled)
    if programs and all(one.repeat == BACKGROUND for one in programs):
        raise NetsimError(f"flows: expecting a program that is not background, got none of {len(programs)}")
    session._enter(programs, np.array([one.start for one in programs], dtype=np.float64))
    while session.waiting:
        session.advance()
    return session.result()
