"""`simulate`: a workload on a cluster, under a queue, an allocator and a model of speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .allocation import Allocator, Job, find_allocator
from .cluster import Cluster
from .compiled import Ran, knows, run_compiled
from .errors import JobsError
from .loop import Loop
from .observers import Observer
from .outcome import Outcome
from .queueing import Backfill
from .speed import Speed, find_speed
from .workload import Workload

__all__ = ["simulate"]


def simulate(
    workload: Workload,
    cluster: Cluster,
    queue: Backfill | None = None,
    allocator: str | Allocator = "counts",
    speed: str | Speed = "as-logged",
    observers: Sequence[Observer] = (),
    *,
    compiled: bool | None = None,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Run every job of a workload; one that the empty cluster cannot hold is rejected.

    :param workload: the jobs.
    :param cluster: where they run.
    :param queue: order and depth of reservations; none: EASY in the order of arrival.
    :param allocator: a name of ``ALLOCATORS``, or an allocator.
    :param speed: a name that `find_speed` knows, or a model.
    :param observers: are told of each start, end and pass.
    :param compiled: the loop in C (True) or in Python (False); none: C where it can. Both find the same.
    :param progress: is told now and then how many jobs have ended.
    :raises JobsError: where C is asked for what it cannot do.
    """
    queue = queue or Backfill()
    allocator, speed = find_allocator(allocator), find_speed(speed)
    able = knows(queue, allocator, speed, observers)
    if compiled and not able:
        raise JobsError("simulate: expecting a policy and observers that the loop in C knows, got others")
    fits = _fitting(workload, cluster, allocator)
    jobs = workload if fits.all() else workload.select(fits)
    if able and compiled is not False:
        ran = run_compiled(jobs, cluster, queue, allocator, speed, progress)
    else:
        ran = _run_in_python(jobs, cluster, queue, allocator, speed, observers, progress)
    policy = queue.name, allocator.name, speed.name
    return _outcome(workload, cluster, policy, fits, ran)


def _fitting(workload: Workload, cluster: Cluster, allocator: Allocator) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which jobs the empty cluster can hold; asked once for each size."""
    sizes, of_job = np.unique(workload.nodes, return_inverse=True)
    empty = allocator.state(cluster)
    able = [size <= cluster.num_nodes and allocator.feasible(Job(0, size), empty) for size in sizes.tolist()]
    return np.array(able, dtype=bool)[of_job]


def _run_in_python(
    jobs: Workload,
    cluster: Cluster,
    queue: Backfill,
    allocator: Allocator,
    speed: Speed,
    observers: Sequence[Observer],
    progress: Callable[[int], None] | None,
) -> Ran:
    loop = Loop(jobs, cluster, queue, allocator, speed, observers)
    loop.run(progress)
    offset = np.concatenate(([0], np.cumsum([len(nodes) for nodes in loop.nodes], dtype=np.int64)))
    nodes = np.concatenate([np.empty(0, np.int32), *loop.nodes]).astype(np.int32)
    return Ran(loop.start, loop.start_pass, loop.end, offset.astype(np.int64), nodes)


def _outcome(
    workload: Workload,
    cluster: Cluster,
    policy: tuple[str, str, str],
    fits: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ran: Ran,
) -> Outcome:
    start, start_pass, end = (np.full(len(workload), -1, dtype=np.int64) for _ in range(3))
    start[fits], start_pass[fits], end[fits] = ran.start, ran.start_pass, ran.end
    held = np.zeros(len(workload) + 1, dtype=np.int64)
    held[1:][fits] = np.diff(ran.offset)
    return Outcome(workload, cluster, policy, start, start_pass, end, np.cumsum(held), ran.nodes)
