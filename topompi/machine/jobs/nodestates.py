"""States of nodes over time: up, drained or down."""

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
    """Changes of nodes' states, ascending by second; before its first change a node is up.

    Jobs start only on nodes that are up. Jobs on a node that is drained continue. Jobs on a node that goes down end,
    unless the allocator only counts nodes, so that their nodes are unknown.

    :param changes: second, state and nodes of each change; changes in one second apply in their order.
    """

    changes: tuple[tuple[int, str, NDArray[np.int64]], ...]

    @classmethod
    def of(cls, cluster: Cluster, changes: Iterable[tuple[int, str, ArrayLike]]) -> NodeStates:
        """Make the states from changes in any order of seconds.

        :param cluster: the cluster of the nodes.
        :param changes: second, state (``up``, ``drained`` or ``down``) and nodes of each change.
        :raises JobsError: if a second is negative or too large, a state unknown, or a node not in the cluster.
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
    """A filter that passes jobs that could run on the nodes that are up, if no other job ran.

    Without this filter, a job at the head of the queue for which too few nodes are up would keep others from starting.

    :param allocator: the allocator that decides.
    :param cluster: the cluster.
    """

    def __init__(self, allocator: Allocator, cluster: Cluster) -> None:
        self._allocator, self._cluster = allocator, cluster
        self.limited, self._state = False, allocator.state(cluster)
        self._known: dict[int, bool] = {}

    def change(self, state: Occupancy) -> None:
        """Use the closed nodes of this state for all later answers."""
        self.limited, self._known = state.any_closed, {}
        self._state = self._allocator.state(self._cluster)
        self._state.close(np.flatnonzero(state.closed))

    def holds(self, job: Job, kind: int) -> bool:
        """Return whether a job could run; jobs of one ``kind`` have equal requests, so that one answer serves all."""
        if kind not in self._known:
            self._known[kind] = self._allocator.feasible(job, self._state)
        return self._known[kind]
