"""A simulation by the event loop in C, which implements some policies; unavailable if the C extension is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .allocation import Allocator
from .allocation.isolated import Isolated
from .allocation.oblivious import Counts, First
from .cluster import Cluster
from .observers import Observer
from .queueing import Backfill, Queue, find_order
from .speed import Speed
from .workload import Workload

try:
    from . import _engine
except ImportError:  # installed without a compiler
    _engine = None  # type: ignore[assignment]

__all__ = ["Ran", "knows", "run_compiled"]

Integers = NDArray[np.int64]
POLICIES: dict[type[Allocator], int] = {Counts: 0, First: 1, Isolated: 2}


class Ran(NamedTuple):
    """The result of a simulation of n jobs, in columns with the meaning that they have in `Outcome`.

    The nodes (and slots) of job i are the entries from ``offset[i]`` to ``offset[i + 1]``; ``offset`` has shape (n +
    1,).
    """

    start: Integers
    start_pass: Integers
    end: Integers
    offset: Integers
    nodes: NDArray[np.int32]
    slots: NDArray[np.int32] | None = None
    lost: tuple[int, ...] = ()


def knows(queue: Queue, allocator: Allocator, speed: Speed, observers: Sequence[Observer]) -> bool:
    """Return whether the event loop in C implements these policies and can thus run the simulation.

    :param queue: the queue discipline.
    :param allocator: the policy of allocation.
    :param speed: the model of run times.
    :param observers: the observers of the simulation; the loop in C supports none.
    """
    if _engine is None or observers or not speed.steady or not find_order(queue.order).fixed:
        return False
    if type(queue) is not Backfill:
        return False
    return type(allocator) in POLICIES and (allocator.by_count or queue.depth in (0, 1))


def run_compiled(
    workload: Workload,
    cluster: Cluster,
    queue: Backfill,
    allocator: Allocator,
    speed: Speed,
    progress: Callable[[int], None] | None,
) -> Ran:
    """Simulate jobs, all of which fit the cluster. Cost: memory of 150 bytes per job and 4 per node of each job.

    :param workload: the jobs.
    :param cluster: the cluster.
    :param queue: the queue discipline; `knows` must be true for it, the allocator and the model of run times.
    :param allocator: the policy of allocation.
    :param speed: the model of run times.
    :param progress: function that is called now and then with the number of jobs that have ended.
    """
    keys = find_order(queue.order).keys(workload, 0)
    rank = np.empty(len(workload), dtype=np.int64)
    rank[np.argsort(keys, kind="stable")] = np.arange(len(workload))
    start, start_pass = (np.full(len(workload), -1, dtype=np.int64) for _ in range(2))
    duration = np.ascontiguousarray(speed.durations(workload))
    sizes = allocator.anchors(cluster) if isinstance(allocator, Isolated) else (cluster.leaf_size, cluster.pod_size)
    offsets, nodes = _engine.run(
        POLICIES[type(allocator)],
        -1 if queue.depth is None else queue.depth,
        sizes,
        np.ascontiguousarray(workload.submit),
        duration,
        np.ascontiguousarray(workload.estimate),
        rank,
        np.ascontiguousarray(workload.nodes),
        cluster.leaf_start,
        cluster.pod_start,
        start,
        start_pass,
        progress,
    )
    first, held = np.frombuffer(offsets, dtype=np.int64), np.frombuffer(nodes, dtype=np.int32)
    return Ran(start, start_pass, start + duration, *_in_order(workload.nodes, first, held))


def _in_order(sizes: NDArray[np.int32], first: Integers, held: NDArray[np.int32]) -> tuple[Integers, NDArray[np.int32]]:
    """Reorder the held nodes from the order in which jobs started to the order of the workload.

    :param sizes: number of nodes of each of the n jobs, shape (n,).
    :param first: position of each job's first node in ``held``, shape (n,); empty if nodes were only counted.
    :param held: the held nodes, job after job in the order of starts.
    :returns: position of each job's first node in the reordered nodes, shape (n + 1,), and the reordered nodes.
    """
    offset = np.zeros(len(sizes) + 1, dtype=np.int64)
    if len(first):
        np.cumsum(sizes, out=offset[1:])
        held = held[np.repeat(first - offset[:-1], sizes) + np.arange(offset[-1])]
    return offset, held
