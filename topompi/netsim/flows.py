"""Messages as fluids that share links max-min fairly, event by event."""

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
from .tape import Tape, Traffic
from .wiring import Wiring

try:
    from . import _flows

    _compiled: type[_flows.Engine] | None = _flows.Engine
except ImportError:  # topompi was installed without a compiler
    _compiled = None

__all__ = ["FlowSession", "Hosts", "Result", "run"]

Floats = NDArray[np.float64]

ROUNDING = 1e-9  # relative: sums of rates, and of bytes over rates


@dataclass(frozen=True)
class Hosts:
    """What hosts add to the network; by default nothing.

    :param send_overhead: seconds of the sender's processor for each message; likewise ``receive_overhead``.
    :param copy_rate: bytes/s at which a rank receives from its own host, all its messages together.
    :param copy_latency: seconds before such a message flows.
    :param eager: bytes up to which a send is complete once it has been handed over; others wait for their receiver.
    :param skew: seconds within which the ranks of a job start, at random.
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
    """What programs took, each the first time that it ran.

    :param job_seconds: from each job's start until its last rank is through, shape (jobs,); NaN for a background that
        was not through when all others were.
    :param rank_seconds: when each rank of all jobs is through, from the start of its job, shape (ranks,).
    :param link_bytes: bytes of messages that have crossed each link when the last job that counts has ended, shape
        (links,).
    :param bounds: least seconds of each job for the bytes it has on its busiest link, shape (jobs,).
    """

    job_seconds: Floats
    rank_seconds: Floats
    link_bytes: Floats
    bounds: Floats


class FlowSession(Programs):
    """Programs on a network of flows, in time that the caller lets pass; a ``Session``.

    A message flows once its sender has handed it over and, unless eager, its receiver has posted it; after the
    latencies of its links it takes its max-min fair share of them. Rates and loads are those of this instant.

    :param wiring: the network; tables where the routes between all pairs of hosts are too many to keep.
    :param hosts: what the hosts add.
    :param seed: of the skew.
    :param tolerance: rates are found anew as late as no message becomes later by more than this part of its own time;
        none is ever early. 0 is exact: at each instant at which a flow begins or ends.
    :param compiled: whether the extension in C may do it, where it is installed.
    Cost: 2 to 30 us a message in C, by how many rates change where one begins or ends; without it, Python for each
    message, and max-min fair rates of all flows whenever rates are found. Memory for all messages that were ever added.
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
        self._traffic: list[Traffic] = []
        self._entered: list[int] = []  # first message of each traffic
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
        """When each rank ended its first run, and how often each message has come, the last time perhaps in part."""
        ends, arrivals = np.full(self._first_rank[-1], np.nan), np.zeros(self._first_message[-1])
        self._engine.read(ends, arrivals)
        return ends, arrivals

    def rates(self) -> Rates:
        """The messages that flow now, and their rates."""
        return self._rates(*self._flows())

    def _flows(self) -> tuple[NDArray[np.int64], Floats]:
        """Messages that flow, ascending among all of the session, and bytes/s."""
        found = np.array(sorted(self._engine.flows()), dtype=np.float64).reshape(-1, 2)
        return found[:, 0].astype(np.int64), found[:, 1]

    def loads(self) -> Floats:
        """Bytes/s that cross each link now, shape (links,)."""
        message, rate = self._flows()
        place = np.searchsorted(self._entered, message, "right") - 1
        here = [(one, message[place == one]) for one in np.unique(place).tolist()]
        paths = [self._traffic[one].paths[some - self._entered[one]] for one, some in here]
        return link_loads(joined(paths), rate, len(self._wiring.rate))

    def link_bytes(self) -> Floats:
        """Bytes that have crossed each link so far, shape (links,)."""
        nbytes = [np.zeros(0), *(one.nbytes for one in self._traffic)]
        crossed = np.concatenate(nbytes) * self._read()[1]
        return link_loads(joined([one.paths for one in self._traffic]), crossed, len(self._wiring.rate))

    def result(self) -> Result:
        """The first runs of all programs that were added, as far as they have ended.

        :raises NetsimError: for a time below a job's bound.
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
    """The times of jobs that share a network: a session to the end of the last first run that counts.

    :param wiring: the network; tables where the routes between all pairs of hosts are too many to keep.
    :param programs: one program per job.
    :param hosts: what the hosts add.
    :param seed: of the skew.
    :param tolerance: the part of its own time by which a message may be late, as ``FlowSession`` has it.
    :param compiled: whether the extension in C may do it, where it is installed.
    :raises NetsimError: for programs that wait for ever, and for a time below a job's bound.
    Cost: that of ``FlowSession``.
    """
    session = FlowSession(wiring, hosts=hosts, seed=seed, tolerance=tolerance, compiled=compiled)
    if programs and all(one.repeat == BACKGROUND for one in programs):
        raise NetsimError(f"flows: expecting a program that is not background, got none of {len(programs)}")
    session._enter(programs, np.array([one.start for one in programs], dtype=np.float64))
    while session.waiting:
        session.advance()
    return session.result()
