"""Simulation of many jobs on one machine: workload logs, queues, allocation of nodes, shared links. No MPI.

`simulate` runs a ``Workload`` on a ``Cluster`` under a ``Backfill`` queue, one of ``ALLOCATORS`` and a model of run
times, and returns an ``Outcome``. `check` finds the pairs of jobs that share directed links. `offer` finds nodes for a
new job beside the running ones.
"""

from .allocation import ALLOCATORS, check_allocator, find_allocator
from .cluster import Cluster
from .errors import AllocationError, JobsError, WorkloadError
from .isolation import Conflicts, check
from .nodestates import NodeStates
from .now import Offer, offer
from .observers import IsolationCheck, Observer, PlacementCheck, Promises
from .outcome import Outcome
from .queueing import ORDERS, QUEUES, Backfill, Queue, find_queue
from .simulation import simulate
from .speed import find_speed
from .workload import Workload, read_swf, read_workload

__all__ = [
    "ALLOCATORS",
    "ORDERS",
    "QUEUES",
    "AllocationError",
    "Backfill",
    "Cluster",
    "Conflicts",
    "IsolationCheck",
    "JobsError",
    "NodeStates",
    "Observer",
    "Offer",
    "Outcome",
    "PlacementCheck",
    "Promises",
    "Queue",
    "Workload",
    "WorkloadError",
    "check",
    "check_allocator",
    "find_allocator",
    "find_queue",
    "find_speed",
    "offer",
    "read_swf",
    "read_workload",
    "simulate",
]
