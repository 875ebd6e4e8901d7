"""Counts of the nodes, or slots, of each job on each leaf or pod."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import JobsError
from ..outcome import Outcome

__all__ = ["Incidence", "incidence_of"]

Indices = NDArray[np.int64]
_Rows = NDArray[np.integer]


class Incidence(NamedTuple):
    """A table with a row for each pair of a job and a group (leaf or pod) that it used, sorted by job.

    :param job: position of the job in the workload.
    :param group: number of the leaf or pod.
    :param amount: number of the job's nodes, or slots, in the group.
    """

    job: Indices
    group: Indices
    amount: Indices


def incidence_of(outcome: Outcome, group: NDArray[np.integer], *, held: bool = False, slots: bool = False) -> Incidence:
    """Count the nodes, or slots, of each job in each group. Cost: a sort of all nodes of all jobs.

    :param outcome: an outcome with nodes.
    :param group: group of each node, for example its leaf, shape (nodes,).
    :param held: whether nodes that a job held but did not use are counted, too.
    :param slots: whether slots are counted instead of nodes.
    :raises JobsError: if the allocator only counted nodes.
    """
    if not outcome.has_nodes and len(outcome.ran):
        raise JobsError("metrics: expecting an allocator that names nodes, got one that counts them")
    job, nodes, weight = _entries(outcome, held, slots)
    groups = int(group.max()) + 1
    keys = job * groups + group[nodes]
    if weight is None:
        key, amount = np.unique(keys, return_counts=True)
    else:
        key, at = np.unique(keys, return_inverse=True)
        amount = np.bincount(at, weight, len(key)).astype(np.int64)
    return Incidence(key // groups, key % groups, amount)


def _entries(outcome: Outcome, held: bool, slots: bool) -> tuple[_Rows, _Rows, _Rows | None]:
    """Return a row per counted node, or slot, of each job, in three columns: job, node, and number of slots.

    The third column is None unless slots are counted.
    """
    each = np.diff(outcome.offset)
    job, nodes, slot = np.repeat(np.arange(len(each)), each), outcome.nodes, outcome.slots
    if not held:
        used = np.arange(len(nodes)) - outcome.offset[job] < outcome.workload.nodes[job]
        if slot is not None:
            used |= slot >= 0
        job, nodes, slot = job[used], nodes[used], None if slot is None else slot[used]
    weight = None
    if slots:
        weight = outcome.cluster.slots[nodes] if slot is None else np.where(slot < 0, outcome.cluster.slots[nodes], 1)
    elif slot is not None:  # a node on which a job has several slots counts once
        job, nodes = np.unique(np.stack((job, nodes)), axis=1)
    return job, nodes, weight
