"""The rate of each job on one link over time, while jobs run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...netsim import BACKGROUND, Program
from .network import SharedNetwork

__all__ = ["busiest_shared_link", "link_rates"]

Floats = NDArray[np.float64]


def busiest_shared_link(network: SharedNetwork, programs: Sequence[Program]) -> int | None:
    """The link that needs the longest time for a run of all jobs, among the links of several jobs; None without one.

    :param network: the network.
    :param programs: program of each job.
    """
    loads = network.link_bytes(programs)
    times = np.where((loads > 0).sum(axis=0) > 1, loads.sum(axis=0) / network.tables.rate, 0.0)
    return int(times.argmax()) if times.any() else None


def link_rates(network: SharedNetwork, programs: Sequence[Program], link: int, times: Sequence[float]) -> Floats:
    """The rate at which each job's messages cross a link at each time, in bytes/s, shape (jobs, times).

    In the packet model it is the mean since the time before. Jobs that end begin again.

    :param network: the network.
    :param programs: program of each job.
    :param link: number of the link.
    :param times: times in seconds, ascending.
    Cost: one simulation of all jobs.
    """
    session, crosses = network.session(), []
    for program in programs:
        session.add(replace(program, repeat=BACKGROUND))
        source, destination = (program.hosts[end] for end in (program.messages.source, program.messages.destination))
        crosses.append((network.tables.paths(source, destination) == link).any(axis=1))
    found = np.zeros((len(programs), len(times)))
    for at, time in enumerate(times):
        session.advance(time)
        now = session.rates()
        for job, of_job in enumerate(crosses):
            mine = now.handle == job
            found[job, at] = now.rate[mine][of_job[now.message[mine]]].sum()
    return found
