"""The event loop in C, where a compiler was at hand, for the policies that it knows."""

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
except ImportError:  # no compiler when it was installed
    _engine = None  # type: ignore[assignment]

__all__ = ["Ran", "knows", "run_compiled"]

Integers = NDArray[np.int64]
POLICIES: dict[type[Allocator], int] = {Counts: 0, First: 1, Isolated: 2}


class Ran(NamedTuple):
    """Starts, passes of starts, ends; offsets of jobs' nodes, shape (n + 1,), the nodes and their slots; lost jobs."""

    start: Integers
    start_pass: Integers
    end: Integers
    offset: Integers
    nodes: NDArray[np.int32]
    slots: NDArray[np.int32] | None = None
    lost: tuple[int, ...] = ()


def knows(queue: Queue, allocator: Allocator, speed: Speed, observers: Sequence[Observer]) -> bool:
    """Whether the loop in C runs these.

    :param queue: the discipline; likewise ``allocator``, ``speed`` and ``observers``.
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
    """Run jobs that all fit the cluster.

    :param workload: the jobs.
    :param cluster: where they run.
    :param queue: the discipline; likewise ``allocator`` and ``speed``, for which `knows` is true.
    :param progress: is told now and then how many jobs have ended.
    Cost: 150 bytes a job and 4 for each of its nodes.
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
    """Offsets and nodes in the order of jobs, of nodes that stand in the order of starts; ``first`` may be empty."""
    offset = np.zeros(len(sizes) + 1, dtype=np.int64)
    if len(first):
        np.cumsum(sizes, out=offset[1:])
        held = held[np.repeat(first - offset[:-1], sizes) + np.arange(offset[-1])]
    return offset, held
