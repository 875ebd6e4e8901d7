"""`simulate`: the simulation of a workload on a cluster, with a queue, an allocator and a model of run times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs.extensions import names_function
from .allocation import Allocator, find_allocator, requests_of, within_parts
from .cluster import Cluster
from .errors import JobsError
from .loop import Loop
from .named import for_one_run
from .nodestates import NodeStates
from .observers import Observer, PlacementCheck
from .outcome import Outcome
from .queueing import Queue, find_queue
from .speed import Speed, find_speed
from .workload import Workload

__all__ = ["simulate"]


def simulate(
    workload: Workload,
    cluster: Cluster,
    queue: str | Queue | None = None,
    allocator: str | Allocator = "counts",
    speed: str | Speed = "as-logged",
    observers: Sequence[Observer] = (),
    *,
    node_states: NodeStates | None = None,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Simulate all jobs of a workload; a job is rejected if it finds no nodes even when no other job runs.

    Policies are parameters: the run changes copies of them, and leaves nothing in them for a later run.

    :param workload: the jobs.
    :param cluster: the cluster.
    :param queue: a queue, or its name in ``QUEUES``; None for EASY in the order of arrival.
    :param allocator: an allocator, or a name that `find_allocator` knows.
    :param speed: a model of run times, or a name that `find_speed` knows.
    :param observers: objects whose methods are called at each start and end of a job, and after each pass over the
        queue; they keep what they have seen, and therefore serve one run.
    :param node_states: changes of nodes between up, drained and down; None if all nodes stay up.
    :param progress: function that is called now and then with the number of ended jobs.
    :raises JobsError: if a user's own policy fails or cannot be copied.
    """
    names = (queue, allocator, speed)
    queue, allocator = for_one_run(find_queue(queue)), for_one_run(find_allocator(allocator))
    speed = find_speed(speed)
    allocator = within_parts(allocator, cluster)
    own = [name for name in (*names, queue.order) if isinstance(name, str) and names_function(name)]
    if names[1] in own:
        observers = [PlacementCheck(cluster, allocator), *observers]
    with _named(own):
        fits = _fitting(workload, cluster, allocator)
        jobs = workload if fits.all() else workload.select(fits)
        speed = speed.on(jobs, cluster)
        loop = Loop(jobs, cluster, queue, allocator, speed, observers, node_states)
        loop.run(progress)
    policy = queue.name, allocator.name, speed.name
    return _outcome(workload, cluster, policy, fits, loop)


def _fitting(workload: Workload, cluster: Cluster, allocator: Allocator) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether each job finds nodes in the empty cluster, shape (n,); jobs with equal requests are tried once."""
    asked = requests_of(workload, cluster, allocator)
    _, first, of_job = np.unique(asked.kinds, return_index=True, return_inverse=True)
    empty, jobs = allocator.state(cluster), [asked.of_job(index) for index in first.tolist()]
    able = [job.size <= cluster.num_nodes and allocator.feasible(job, empty) for job in jobs]
    return np.array(able, dtype=bool)[of_job]


@contextmanager
def _named(own: Sequence[str]) -> Iterator[None]:
    """Raise any error of a user's own policies as one JobsError with their names."""
    try:
        yield
    except TopompiError:
        raise
    except Exception as error:
        if not own:
            raise
        raise JobsError(f"{', '.join(own)}: {type(error).__name__}: {error}") from error


def _slots(loop: Loop) -> NDArray[np.int32] | None:
    """Return the slots of the nodes that jobs held; None if all jobs held whole nodes."""
    if not loop.slots:
        return None
    rows = [loop.slots.get(index, np.full(len(nodes), -1)) for index, nodes in enumerate(loop.nodes)]
    return np.concatenate(rows).astype(np.int32)


def _outcome(
    workload: Workload,
    cluster: Cluster,
    policy: tuple[str, str, str],
    fits: np.ndarray[tuple[int], np.dtype[np.bool_]],
    loop: Loop,
) -> Outcome:
    start, start_pass, end = (np.full(len(workload), -1, dtype=np.int64) for _ in range(3))
    start[fits], start_pass[fits], end[fits] = loop.start, loop.start_pass, loop.end
    lost = np.flatnonzero(fits)[sorted(loop.lost)]
    held = np.zeros(len(workload) + 1, dtype=np.int64)
    held[1:][fits] = [len(nodes) for nodes in loop.nodes]
    nodes = np.concatenate([np.empty(0, np.int32), *loop.nodes]).astype(np.int32)
    places = np.cumsum(held), nodes, _slots(loop)
    return Outcome(workload, cluster, policy, start, start_pass, end, *places, lost, np.flatnonzero(~fits))
