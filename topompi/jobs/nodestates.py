"""Nodes that are up, drained or down, as time goes on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .allocation import Allocator, Job, Occupancy
from .cluster import Cluster
from .errors import JobsError
from .workload.workload import LATEST

__all__ = ["DOWN", "DRAINED", "UP", "NodeStates"]

UP, DRAINED, DOWN = "up", "drained", "down"


@dataclass(frozen=True, eq=False)
class NodeStates:
    """Changes of states, ascending by second; before the first change of a node it is up.

    A job may start on nodes that are up. Jobs on a drained node go on; jobs on a node that goes down end, unless the
    allocator only counts nodes.

    :param changes: seconds, states and nodes of the changes; changes of one second count in their order.
    """

    changes: tuple[tuple[int, str, NDArray[np.int64]], ...]

    @classmethod
    def of(cls, cluster: Cluster, changes: Iterable[tuple[int, str, ArrayLike]]) -> NodeStates:
        """The states that these changes make, which may stand in any order of seconds.

        :param cluster: the cluster of the nodes.
        :param changes: second, ``up``, ``drained`` or ``down``, and nodes of each change.
        :raises JobsError: for another second, state or node.
        """
        made = []
        for second, state, nodes in changes:
            which = np.asarray(nodes)
            if not 0 <= second < LATEST:
                raise JobsError(f"node states: expecting seconds from 0 below {LATEST}, got {second}")
            if state not in (UP, DRAINED, DOWN):
                raise JobsError(f"node states: expecting {UP}, {DRAINED} or {DOWN}, got {state!r}")
            if which.ndim != 1 or which.dtype.kind not in "iu" or ((which < 0) | (which >= cluster.num_nodes)).any():
                raise JobsError(f"node states: expecting nodes from 0 to {cluster.num_nodes - 1}, got {nodes!r}")
            made.append((second, state, which.astype(np.int64)))
        return cls(tuple(sorted(made, key=lambda change: change[0])))


class Capable:
    """The jobs that could run if no other job did, on the nodes that are up.

    Without it, a job for which too few nodes are up would keep all others from starting.

    :param allocator: the allocator that is asked.
    :param cluster: the cluster.
    """

    def __init__(self, allocator: Allocator, cluster: Cluster) -> None:
        self._allocator, self._cluster = allocator, cluster
        self.limited, self._state = False, allocator.state(cluster)
        self._known: dict[int, bool] = {}

    def change(self, state: Occupancy) -> None:
        """Take over which nodes of a state are closed."""
        self.limited, self._known = state.any_closed, {}
        self._state = self._allocator.state(self._cluster)
        self._state.close(np.flatnonzero(state.closed))

    def holds(self, job: Job, kind: int) -> bool:
        """Whether a job could run; asked once for each kind of jobs."""
        if kind not in self._known:
            self._known[kind] = self._allocator.feasible(job, self._state)
        return self._known[kind]
