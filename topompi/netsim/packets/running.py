"""Programs on a network of packets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import NetsimError
from ..flows import Hosts, Outcome
from ..program import BACKGROUND, Program
from ..tables import Floats, Tables
from .arrays import PICO, Jobs, link_arrays, numbers
from .deadlock import dependency_cycle, link_names, waiting_cycle
from .settings import Settings

try:
    from . import _packets

    simulate: Callable[[dict[str, NDArray[Any]], dict[str, float]], dict[str, Any]] | None = _packets.simulate
except ImportError:  # topompi was installed without a compiler
    simulate = None

__all__ = ["PacketOutcome", "run"]

STALLED, NO_TIME = 2, 4  # what the engine says of a run
ROUNDING = 1e-9  # relative


@dataclass(frozen=True, eq=False)
class PacketOutcome(Outcome):
    """What programs took, and what the links did until the last job that counts had ended.

    Seconds of background jobs that did not end once are NaN.

    :param lane_bytes: bytes of messages that crossed each link on each lane, shape (links, lanes).
    :param lane_waits: seconds for which a lane had a packet and the buffer ahead no room for it, shape (links, lanes).
    :param counts: ``hops`` of packets over links, ``events``, packets ``sent`` and ``delivered``, those ``in_buffers``
        at the end, and ``lost_room``, bytes of buffers of which nobody knows: 0.
    """

    lane_bytes: NDArray[np.int64]
    lane_waits: Floats
    counts: dict[str, int]


def run(
    tables: Tables,
    programs: Sequence[Program],
    *,
    hosts: Hosts | None = None,
    settings: Settings | None = None,
    seed: int = 0,
    circles: bool = False,
) -> PacketOutcome:
    """The times of jobs that share a network.

    An eager message goes as soon as its sender's processor has handed it over, and its receiver's takes it. For another
    one the sender says that it is ready, the receiver reads it (see ``Settings.rendezvous``), and a word ends it for
    the sender. Acknowledgements of packets are not modelled.

    :param tables: the network.
    :param programs: one a job.
    :param hosts: what the hosts add; a rank copies messages of its own host with its own processor, one after the
        other, with ``copy_latency`` each.
    :param settings: switches and adapters.
    :param seed: of the start skew.
    :param circles: allow routes that may deadlock.
    :raises NetsimError: for a deadlock or routes that may have one, for programs that wait for ever, without the C
        extension, and for a time below a job's bound.
    Cost: some 150 ns for each packet and link; no memory for pairs of hosts.
    """
    if simulate is None:
        raise NetsimError("packets: expecting the C extension, got none: install topompi where a C compiler is")
    if all(one.repeat == BACKGROUND for one in programs):
        raise NetsimError(f"packets: expecting a program that is not background, got none of {len(programs)}")
    hosts, settings = hosts or Hosts(), settings or Settings()
    ranks = sum(one.num_ranks for one in programs)
    skew = np.random.default_rng(seed).uniform(0.0, 1.0, ranks) * hosts.skew
    jobs = Jobs.of(tables, programs, settings.lanes, skew)
    loads, pairs = _loads(tables, jobs, len(programs))
    if not circles:
        _refuse_circles(tables, programs, pairs)
    arrays = {**link_arrays(tables, settings), **jobs.columns}
    said = simulate(arrays, numbers(tables, settings, hosts, jobs))
    _refuse_stalled(tables, settings, arrays, said)
    start = np.array([one.start for one in programs])
    ends = [np.where(arrays[name] < 0, np.nan, arrays[name] / PICO) for name in ("job_end", "rank_end")]
    outcome = PacketOutcome(
        job_seconds=ends[0] - start,
        rank_seconds=ends[1] - np.repeat(start, np.diff(jobs.base)),
        link_bytes=arrays["lane_bytes"].sum(axis=1).astype(np.float64),
        bounds=((loads - settings.bursts(tables.rate)) / tables.rate).max(axis=1, initial=0.0),
        lane_bytes=arrays["lane_bytes"],
        lane_waits=arrays["lane_wait"] / PICO,
        counts={name: count for name, count in said.items() if name not in ("status", "waiting")},
    )
    for program, seconds, bound in zip(programs, outcome.job_seconds, outcome.bounds, strict=True):
        if seconds < bound * (1 - ROUNDING) - ROUNDING / PICO:
            raise NetsimError(f"packets: {program.name}: expecting at least {bound:g} s, got {seconds:g}")
    return outcome


def _loads(tables: Tables, jobs: Jobs, count: int) -> tuple[Floats, NDArray[np.int64]]:
    """Bytes of each job on each link, shape (jobs, links), and (job, source, destination) of hosts that exchange."""
    source, destination, nbytes, job = jobs.pairs
    size = tables.num_hosts
    key, which = np.unique((job * size + source) * size + destination, return_inverse=True)
    pairs = np.stack((key // (size * size), key // size % size, key % size))
    total = np.bincount(which, weights=nbytes, minlength=len(key))
    loads = np.zeros((count, len(tables.rate)))
    for some, paths in tables.walks(pairs[1], pairs[2]):
        pair, place = np.nonzero(paths >= 0)
        cell = pairs[0, some][pair] * len(tables.rate) + paths[pair, place]
        loads += np.bincount(cell, weights=total[some][pair], minlength=loads.size).reshape(loads.shape)
    return loads, pairs


def _refuse_circles(tables: Tables, programs: Sequence[Program], pairs: NDArray[np.int64]) -> None:
    """Refuse routes of one lane that may deadlock; words about messages go the other way."""
    lanes = np.array([one.lane for one in programs])[pairs[0]]
    for lane in np.unique(lanes):
        _, source, destination = pairs[:, lanes == lane]
        circle = dependency_cycle(tables, np.append(source, destination), np.append(destination, source))
        if circle:
            raise NetsimError(
                f"packets: lane {lane}: expecting routes without a circle of links that may wait for each other, "
                f"got {link_names(tables, circle)}"
            )


def _refuse_stalled(tables: Tables, settings: Settings, arrays: dict[str, NDArray[Any]], said: dict[str, Any]) -> None:
    if said["status"] == NO_TIME:
        raise NetsimError("packets: expecting jobs that repeat to take time, got one that takes none")
    if said["status"] != STALLED:
        return
    circle = waiting_cycle(said["waiting"], len(tables.rate), settings.lanes)
    if circle:
        raise NetsimError(f"packets: expecting no deadlock, got one of {link_names(tables, circle)}")
    rank = int(np.flatnonzero(arrays["rank_end"] < 0)[0])
    raise NetsimError(f"packets: rank {rank}: expecting an end of its program, got a step that waits for ever")
