"""A simulation by the event loop in C, which implements some policies; unavailable if the C extension is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .allocation import Allocator
from .allocation.isolated import Isolated
from .allocation.oblivious import Counts, First
from .cluster import Cluster
from .errors import JobsError
from .observers import Observer
from .queueing import Backfill, Queue, find_order
from .speed import Speed
from .workload import Workload

try:
    from . import _engine
except ImportError:  # installed without a compiler
    _engine = None  # type: ignore[assignment]

__all__ = ["Neighbours", "PairRates", "Ran", "knows", "run_compiled"]

Integers = NDArray[np.int64]
POLICIES: dict[type[Allocator], int] = {Counts: 0, First: 1, Isolated: 2}
HALVES = 3


@runtime_checkable
class Neighbours(Protocol):
    """The interface of allocators of half nodes that the loop in C implements, too."""

    def neighbour_tables(self, workload: Workload) -> tuple[NDArray[np.int32], ...] | None:
        """Return four tables; None if the loop in C cannot place these jobs.

        They are the rank of each code's neighbours, shape (codes, codes); the least rank that is worse than an empty
        node, and whether jobs take one half of each empty node, shape (codes,); and each job's code, shape (jobs,).
        """
        ...


@runtime_checkable
class PairRates(Protocol):
    """The interface of models of run times that the loop in C implements, too: rates by the programs on both halves."""

    def pair_tables(self, workload: Workload) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the rates of the n programs, shape (n, n + 2), and the number of each job's program, shape (jobs,)."""
        ...


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


def knows(queue: Queue, allocator: Allocator, speed: Speed, observers: Sequence[Observer], workload: Workload) -> bool:
    """Return whether the event loop in C implements these policies and can thus run the simulation.

    :param queue: the queue discipline.
    :param allocator: the policy of allocation.
    :param speed: the model of run times.
    :param observers: the observers of the simulation; the loop in C supports none.
    :param workload: the jobs.
    """
    if _engine is None or observers or type(queue) is not Backfill or not find_order(queue.order).fixed:
        return False
    if isinstance(allocator, Neighbours) and isinstance(speed, PairRates):
        return queue.depth in (0, 1) and allocator.neighbour_tables(workload) is not None
    return speed.steady and type(allocator) in POLICIES and (allocator.by_count or queue.depth in (0, 1))


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
    if isinstance(allocator, Neighbours):
        return _run_halves(workload, cluster, queue, allocator, speed, progress)
    sizes = allocator.anchors(cluster) if isinstance(allocator, Isolated) else (cluster.leaf_size, cluster.pod_size)
    duration = np.ascontiguousarray(speed.durations(workload))
    tasks = _Tasks(duration, workload.estimate, workload.nodes, cluster.leaf_start)
    start, start_pass, offset, nodes = _run(POLICIES[type(allocator)], queue, workload, cluster, tasks, sizes, progress)
    return Ran(start, start_pass, start + duration, offset, nodes)


class _Tasks(NamedTuple):
    """The jobs as the engine sees them: durations and estimates in seconds, sizes, and the first node of each leaf."""

    duration: Integers
    estimate: Integers
    size: NDArray[np.int32]
    leaf_start: NDArray[np.int32]


def _run_halves(
    workload: Workload,
    cluster: Cluster,
    queue: Backfill,
    allocator: Neighbours,
    speed: Speed,
    progress: Callable[[int], None] | None,
) -> Ran:
    """Simulate jobs on halves of nodes; the engine sees each half as a node."""
    tables = allocator.neighbour_tables(workload)
    if tables is None or not isinstance(speed, PairRates):
        raise JobsError("halves: expecting jobs that all share nodes, and rates of pairs, got others")
    rates, programs = speed.pair_tables(workload)
    end = np.full(len(workload), -1, dtype=np.int64)
    limits = np.where(workload.request > 0, workload.request, -1)
    halves = *map(_flat, tables), programs.astype(np.int32), np.ascontiguousarray(rates).ravel(), limits, end
    tasks = _Tasks(speed.durations(workload), speed.estimates(workload), _flat(workload.slots), 2 * cluster.leaf_start)
    sizes = (2 * cluster.leaf_size, 2 * cluster.pod_size)
    start, start_pass, offset, held = _run(HALVES, queue, workload, cluster, tasks, sizes, progress, halves)
    return Ran(start, start_pass, end, offset, held // 2, held % 2)


def _flat(table: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.int32]:
    return np.ascontiguousarray(table, dtype=np.int32).ravel()


def _run(
    policy: int,
    queue: Backfill,
    workload: Workload,
    cluster: Cluster,
    tasks: _Tasks,
    sizes: tuple[int, int],
    progress: Callable[[int], None] | None,
    halves: tuple[object, ...] | None = None,
) -> tuple[Integers, Integers, Integers, NDArray[np.int32]]:
    """Run the engine; return the start and pass of each job, the offset of its nodes, and the nodes."""
    keys = find_order(queue.order).keys(workload, 0)
    rank = np.empty(len(workload), dtype=np.int64)
    rank[np.argsort(keys, kind="stable")] = np.arange(len(workload))
    start, start_pass = (np.full(len(workload), -1, dtype=np.int64) for _ in range(2))
    offsets, nodes = _engine.run(
        policy,
        -1 if queue.depth is None else queue.depth,
        sizes,
        np.ascontiguousarray(workload.submit),
        np.ascontiguousarray(tasks.duration),
        np.ascontiguousarray(tasks.estimate),
        rank,
        np.ascontiguousarray(tasks.size),
        tasks.leaf_start,
        cluster.pod_start,
        start,
        start_pass,
        progress,
        halves,
    )
    first, held = np.frombuffer(offsets, dtype=np.int64), np.frombuffer(nodes, dtype=np.int32)
    return start, start_pass, *_in_order(tasks.size, first, held)


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
