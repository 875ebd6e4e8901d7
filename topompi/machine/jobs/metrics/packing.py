"""Distances between a job's nodes, and the fragmentation of the free nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..outcome import Outcome
from .incidence import incidence_of

__all__ = ["average_hops", "fragmentation"]


def average_hops(outcome: Outcome) -> NDArray[np.float64]:
    """Return the mean number of hops between two nodes of each of the n jobs, shape (n,).

    Two nodes are 0 hops apart in a leaf, 2 in a pod, else 4. The mean is NaN for rejected jobs, 0 for jobs of one node.
    It is the average packing of Pollard et al., SC18, section IV-C, in closed form.
    """
    count, size = len(outcome.workload), outcome.workload.nodes.astype(np.float64)
    if outcome.slots is not None:
        rows = incidence_of(outcome, outcome.cluster.leaf)
        size = np.bincount(rows.job, rows.amount, count).astype(np.float64)
    apart = np.zeros(count)
    for group in (outcome.cluster.leaf, outcome.cluster.pod):
        rows = incidence_of(outcome, group)
        apart += 2 * (size**2 - np.bincount(rows.job, rows.amount.astype(np.float64) ** 2, count))
    hops = apart / np.maximum(size * (size - 1), 1)
    hops[outcome.rejected] = np.nan
    return hops


def fragmentation(outcome: Outcome) -> float:
    """Return the share of the free node-seconds that are on leaves in use, on which some job holds a node at the time.

    The time counts from the first arrival to the last end. If jobs held slots, slot-seconds count.
    """
    jobs, cluster, ran = outcome.workload, outcome.cluster, outcome.ran
    if not len(ran):
        return 0.0
    by_slots = outcome.slots is not None
    rows = incidence_of(outcome, cluster.leaf, held=True, slots=by_slots)
    begin, span = int(jobs.submit.min()), int(outcome.end.max() - jobs.submit.min())
    order = np.lexsort((outcome.start[rows.job], rows.group))
    leaf, job = rows.group[order], rows.job[order]
    # Seconds in which each leaf is in use: of each job's interval, in the order of their starts, only the part after
    # the latest end of the earlier ones is added, so that no second counts twice.
    # The leaves are placed one after another on one time axis, so that one sort serves all.
    axis = leaf * (span + 1) - begin
    start, end = outcome.start[job] + axis, outcome.end[job] + axis
    before = np.concatenate(([-1], np.maximum.accumulate(end)[:-1]))
    used = np.bincount(leaf, np.maximum(0, end - np.maximum(start, before)), cluster.num_leaves)
    sizes = np.diff(cluster.slot_start[cluster.leaf_start] if by_slots else cluster.leaf_start)
    wholly = float((sizes * (span - used)).sum())
    busy = float((rows.amount * (outcome.end - outcome.start)[rows.job]).sum())
    free = outcome.num_resources * span - busy
    return 1 - wholly / free if free else 0.0
