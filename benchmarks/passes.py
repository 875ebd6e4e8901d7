"""The time of a pass over a long queue: ``python -m benchmarks.passes LOG [CLUSTER [ALLOCATOR ...]]``.

5,500 jobs of a log of the Parallel Workloads Archive, and jobs of `capacity_mix`, arrive at once; the allocator starts
those that fit. Then further jobs arrive, jobs end and nodes are drained, one or few at a time; at each event the
simulator updates its state and makes a pass (EASY). The table has, in ms of processor time, the median, 95th percentile
and largest of the passes after each kind of event, and the median of the updates before them. On standard error follow
the median number of running jobs, a digest of all starts and nodes, and the peak of memory.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import defaultdict
from contextlib import suppress
from hashlib import sha256

import numpy as np

from studies.tables import table_lines
from topompi.jobs import Backfill, Cluster, Workload, read_swf, simulate
from topompi.jobs.nodestates import NodeStates
from topompi.jobs.observers import Observer
from topompi.jobs.queueing import Situation
from topompi.jobs.workload.generate import capacity_mix
from topompi.views.cluster import read_cluster

WAITING, FURTHER, PASSES = 5500, 2500, 150


class _Enough(Exception):  # noqa: N818  (no error)
    """The end of a simulation after `PASSES` passes."""


class TimedQueue:
    """EASY backfilling that records the milliseconds of each pass, and of the update since the last, by event."""

    name, order = "timed", "fcfs"

    def __init__(self) -> None:
        self.queue, self.spent, self.closed = Backfill(1), defaultdict[str, list[tuple[float, float]]](list), 0
        self.passes, self.last, self.running = 0, time.process_time(), list[int]()

    def start_jobs(self, situation: Situation) -> None:
        """Make a pass and record its time."""
        began, closed = time.process_time(), int(situation.state.closed.sum())
        event = "node drained" if closed != self.closed else "job ended" if situation.ended else "job arrived"
        self.queue.start_jobs(situation)
        times = 1e3 * (time.process_time() - began), 1e3 * (began - self.last)
        self.spent[event if self.passes else "first"].append(times)
        self.passes, self.closed = self.passes + 1, closed
        self.running.append(len(situation.state.running))
        if self.passes == PASSES:
            raise _Enough
        self.last = time.process_time()


class Digest(Observer):
    """A digest of the second and the nodes of each start."""

    def __init__(self) -> None:
        self.seen = sha256()

    def started(self, job: int, situation: Situation) -> None:
        """Add a start."""
        nodes = situation.state.running[job][1].nodes.tolist()
        self.seen.update(repr((job, situation.now, nodes)).encode())


def workloads(path: str, nodes: int) -> dict[str, Workload]:
    """Return jobs by name: those of a log, of the capacity mix, and of the mix without jobs that fit a leaf of 20."""
    count, rng = WAITING + FURTHER, np.random.default_rng(1)
    mix = capacity_mix(rng, 10 * count, nodes)
    made = {
        "log": read_swf(path, 4).select(slice(20_000, 20_000 + count)),
        "mix": mix.select(slice(count)),
        "wide": mix.select(np.flatnonzero(mix.nodes > 20)[:count]),
    }
    submit = np.concatenate((np.zeros(WAITING, int), np.sort(rng.integers(1, FURTHER * 30, FURTHER))))
    return {
        name: Workload.of(name, submit=submit, run=np.maximum(jobs.run, 30), request=jobs.request, nodes=jobs.nodes)
        for name, jobs in made.items()
    }


def rows(jobs: Workload, cluster: Cluster, allocator: str) -> list[tuple[str, ...]]:
    """Return the rows of one workload and allocator."""
    rng, queue, digest = np.random.default_rng(2), TimedQueue(), Digest()
    drained = NodeStates.of(
        cluster, [(47 + 301 * k, "drained", rng.integers(cluster.num_nodes, size=1)) for k in range(99)]
    )
    with suppress(_Enough):
        simulate(jobs, cluster, queue, allocator, observers=[digest], node_states=drained)
    made = []
    for event, times in queue.spent.items():
        spent, update = np.array(times).T
        figures = [*np.percentile(spent, (50, 95, 100)), np.median(update)]
        made.append((jobs.name, allocator, event, str(len(times)), *(f"{one:.1f}" for one in figures)))
    print(
        f"{jobs.name}, {allocator}: {np.median(queue.running):.0f} jobs run, {digest.seen.hexdigest()[:12]}",
        file=sys.stderr,
    )
    return made


def main(path: str, source: str = "stampede", *allocators: str) -> None:
    """Print the table."""
    cluster = read_cluster(source)
    found = [
        row
        for jobs in workloads(path, cluster.num_nodes).values()
        for allocator in allocators or ("isolated", "disjoint")
        for row in rows(jobs, cluster, allocator)
    ]
    head = ["jobs", "allocator", "event", "passes", "median, ms", "95 %", "most", "update before, ms"]
    print(*table_lines(head, found), sep="\n")
    print(f"peak of memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
