"""Messages as fluids that share links max-min fairly, event by event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError
from .interpreter import ENDLESS, NO_TIME, interpret
from .program import BACKGROUND, ONCE, Program
from .tables import Tables
from .tape import Tape
from .wiring import Wiring

try:
    from ._flows import run as _compiled
except ImportError:  # topompi was installed without a compiler
    _compiled = None  # type: ignore[assignment]

__all__ = ["Hosts", "Outcome", "run"]

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
class Outcome:
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


def run(
    wiring: Wiring | Tables,
    programs: Sequence[Program],
    *,
    hosts: Hosts | None = None,
    seed: int = 0,
    tolerance: float = 0.0,
    compiled: bool = True,
) -> Outcome:
    """The times of jobs that share a network.

    A message flows once its sender has handed it over and, unless eager, its receiver has posted it; after the
    latencies of its links it takes its max-min fair share of them.

    :param wiring: the network; tables where the routes between all pairs of hosts are too many to keep.
    :param programs: one a job.
    :param hosts: what the hosts add.
    :param seed: of the skew.
    :param tolerance: rates are found anew as late as no message becomes later by more than this part of its own time;
        none is ever early. 0 is exact: at each instant at which a flow begins or ends.
    :param compiled: whether the extension in C may do it, where it is installed.
    :raises NetsimError: for programs that wait for ever, and for a time below a job's bound.
    Cost: 2 to 30 us a message in C, by how many rates change where one begins or ends; without it, Python for each
    message, and max-min fair rates of all flows whenever rates are found.
    """
    if not tolerance >= 0:
        raise NetsimError(f"flows: expecting a tolerance of at least 0, got {tolerance}")
    if programs and all(one.repeat == BACKGROUND for one in programs):
        raise NetsimError(f"flows: expecting a program that is not background, got none of {len(programs)}")
    hosts = hosts or Hosts()
    tape = Tape.of(wiring, programs, hosts.copy_rate, hosts.copy_latency)
    start = tape.start + np.random.default_rng(seed).uniform(0.0, 1.0, tape.num_ranks) * hosts.skew
    ends, arrivals = np.full(tape.num_ranks, np.nan), np.zeros(len(tape.nbytes))
    arrays = (*tape.arrays(start), ends, arrivals)
    engine: Callable[..., int] = _compiled if compiled and _compiled is not None else interpret
    state = engine(arrays, hosts.send_overhead, hosts.receive_overhead, hosts.eager, tolerance)
    _refuse(state, tape, programs, ends)
    seconds = ends - tape.start
    jobs = np.array([seconds[slice(*span)].max(initial=0.0) for span in pairwise(tape.first_rank.tolist())])
    bounds = tape.bounds()
    for program, taken, bound in zip(programs, jobs, bounds, strict=True):
        if taken < bound * (1 - ROUNDING):
            raise NetsimError(f"flows: {program.name}: expecting at least {bound:g} s, got {taken:g}")
    return Outcome(jobs, seconds, tape.link_bytes(arrivals), bounds)


def _refuse(state: int, tape: Tape, programs: Sequence[Program], ends: Floats) -> None:
    if state == ENDLESS:
        once = np.array([one.repeat != BACKGROUND for one in programs])[tape.job_of_rank]
        rank = int(np.flatnonzero(np.isnan(ends) & once)[0])
        raise NetsimError(f"flows: rank {rank}: expecting an end of its program, got a step that waits for ever")
    if state == NO_TIME:
        names = ", ".join(one.name for one in programs if one.repeat != ONCE)
        raise NetsimError(f"flows: {names}: expecting programs that repeat to take time, got one that takes none")
