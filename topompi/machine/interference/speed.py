"""The model of run times ``links``: running jobs slow each other on the links that they share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..jobs import Cluster, JobsError, Workload
from ..jobs.allocation import Occupancy
from ..jobs.speed import Speed
from .contention import speeds
from .streams import Demands, Stream, StreamLinks, demands_of, network_of, stream_of

__all__ = ["LinkSpeed", "links"]


class LinkSpeed(Speed):
    """A model in which jobs run slower while others use links of their routes: ``links`` or ``links:SEED``.

    A job that runs alone communicates for a share c of its time, and computes for the rest. Beside others its
    communication takes s times as long, so that its speed is 1 / (1 - c + c s). The slowdown s is the rate at which its
    nodes send alone, on the same nodes, over the rate beside the others. Rates change at each start and end of a job.

    The rate follows from max-min fair shares of links, with a stream for each node rather than each message:

    - A node sends one message at a time, in the pattern's order, at its ``injection`` or slower. All nodes of a job
      keep the same pace, that of the job's scarcest link. A job's weight on a link is the number of its nodes that send
      over it at a time, in the mean over the pattern, on the true routes.
    - A link's rate is shared equally among the nodes that send over it; nodes that want less leave the rest to others.
    - While a job communicates, each other job does so for its own share of the time, which grows as it is slowed;
      phases of different jobs are independent. The slowdown is the mean over ``STATES`` states of the network, in which
      different jobs communicate. Shares of time and speeds are found together, in a fixed number of rounds.
    - What a job leaves of one link because another link limits it is not given to others.

    Because of the last two assumptions, a further job never speeds up another one, as it may with exact max-min shares.
    A job that shares no link runs at exactly its logged time. Assumed besides: the logged time is the time alone on the
    given nodes, latencies and the job's distance cost nothing, the traffic is constant over the job's life.

    A job without a requested time counts for the scheduler as if it ran alone; if it is slowed, a reservation may be
    late. With one, it is ended at the request, as always.

    The traffic of each job is drawn, or given by columns of the workload; see `demands_of`.

    :param seed: seed of the draws.
    """

    steady = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.name = f"links:{seed}"

    def on(self, workload: Workload, cluster: Cluster) -> Speed:
        """Return the model of one simulation.

        :param workload: the jobs.
        :param cluster: the cluster, of a topology source.
        :raises InterferenceError: if the cluster has no routes or rates, or a column of traffic is wrong.
        """
        network = network_of(cluster)
        demands = demands_of(workload, float(network.capacity[network.up].max()), self.seed)
        return _Running(self.name, network, demands)


class _Running(Speed):
    """The streams of the running jobs of a simulation, and the rates below 1.

    :param name: name of the model.
    :param network: links of the cluster.
    :param demands: traffic of all jobs.
    """

    steady = False

    def __init__(self, name: str, network: StreamLinks, demands: Demands) -> None:
        self.name, self._network, self._demands = name, network, demands
        self._wanted = np.zeros(len(network.capacity), dtype=np.int64)  # whole bytes/s, so that sums are exact
        self._running: set[int] = set()
        self._streams: dict[int, Stream] = {}
        self._rates: dict[int, float] = {}

    def rates(self, state: Occupancy) -> dict[int, float]:
        """Return the rates of slowed jobs. Cost: a computation for the jobs that full links join to changed ones."""
        ended, started = self._running - state.running.keys(), state.running.keys() - self._running
        if not ended and not started:
            return self._rates
        self._running, before = set(state.running), self._wanted > self._network.capacity
        changed = [self._streams.pop(job) for job in ended & self._streams.keys()]
        for stream in changed:
            self._wanted[stream.links] -= stream.peak
        for number in ended:
            self._rates.pop(number, None)
        for number in started:
            job, placement = state.running[number]
            made = self._stream(number, placement.used(job.size))
            if made is not None:
                self._streams[number] = made
                self._wanted[made.links] += made.peak
                changed.append(made)
        self._compute(self._reached(changed, before | (self._wanted > self._network.capacity)))
        return self._rates

    def _stream(self, job: int, used: NDArray[np.integer]) -> Stream | None:
        nodes = np.unique(used)
        if not len(nodes):
            raise JobsError(f"speed: {self.name}: expecting an allocator that names nodes, got one that counts them")
        return stream_of(self._network, nodes, self._demands, job)

    def _reached(self, changed: list[Stream], full: NDArray[np.bool_]) -> list[int]:
        """Return the running jobs that share full links with some streams, directly or through others, ascending.

        :param changed: streams that ended or started.
        :param full: whether each link was full before or is full after the change, shape (links,).
        """
        reached, found = np.zeros(len(full), dtype=bool), list[int]()
        for stream in changed:
            reached[stream.links] = full[stream.links]
        if not reached.any():
            return found
        left = {job: links for job, stream in self._streams.items() if len(links := stream.links[full[stream.links]])}
        while hit := [job for job, links in left.items() if reached[links].any()]:
            for job in hit:
                reached[left.pop(job)] = True
            found += hit
        return sorted(found)

    def _compute(self, jobs: list[int]) -> None:
        if not jobs:
            return
        found = speeds([self._streams[job] for job in jobs], self._network.capacity)
        for job, speed in zip(jobs, found.tolist(), strict=True):
            self._rates.pop(job, None)
            if speed < 1:
                self._rates[job] = speed


def links(word: str) -> LinkSpeed:
    """Return the model of ``links`` or ``links:SEED``, by the word after the colon.

    :raises JobsError: if the word is no seed.
    """
    if word and not (word.isascii() and word.isdigit() and len(word) < 10):
        raise JobsError(f"speed: expecting links or links:SEED, got links:{word}")
    return LinkSpeed(int(word or 0))
