"""Counts of pairs of jobs that share the network, by leaves and pods (A. Jokanovic 2014, section 4.3), or by links.

A job uses the links of a leaf, or of a pod, if it has nodes inside and outside of it. Two jobs share if they use the
links of one leaf, or of one pod, at the same time; if the cluster has routes, only if they use one directed link. A job
of 0 seconds shares with the jobs that run at the instant of its start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..outcome import Outcome
from .incidence import incidence_of

__all__ = ["Sharing", "sharing"]

Indices = NDArray[np.int64]
PAIRS_AT_ONCE = 2**22  # pairs of jobs that are compared at a time; limits the memory to some 100 MB


@dataclass(frozen=True)
class Sharing:
    """Measures of the sharing of the network among jobs.

    :param leaf_pairs: number of pairs of jobs that shared a leaf's links.
    :param pod_pairs: number of pairs of jobs that shared a pod's links.
    :param percent: percentage of jobs that shared links with another job: by routes if the cluster has them, else by
        leaves and pods.
    :param partners: mean number of other jobs with which a job shared links, found in the same way.
    """

    leaf_pairs: int
    pod_pairs: int
    percent: float
    partners: float


def sharing(outcome: Outcome) -> Sharing:
    """Count the pairs of jobs that share the links of leaves or pods, and the jobs that share links with any other job.

    Cost: some numbers per pair and shared leaf or pod, and, if the cluster has routes, per pair and shared link.
    """
    count = len(outcome.workload)
    levels = [_pairs(outcome, _crossing(outcome, group)) for group in (outcome.cluster.leaf, outcome.cluster.pod)]
    both = np.unique(np.concatenate(levels))
    if outcome.cluster.routes is not None:
        both = _pairs(outcome, _links(outcome))
    sharers = len(np.unique(np.concatenate((both // max(count, 1), both % max(count, 1)))))
    jobs = max(1, len(outcome.ran))
    return Sharing(len(levels[0]), len(levels[1]), 100 * sharers / jobs, 2 * len(both) / jobs)


def _crossing(outcome: Outcome, group: NDArray[np.integer]) -> tuple[Indices, Indices]:
    """Return each pair of a job and a group whose links it uses, because it has nodes in several groups."""
    rows = incidence_of(outcome, group)
    crossing = np.bincount(rows.job, minlength=len(outcome.workload))[rows.job] > 1
    return rows.job[crossing], rows.group[crossing]


def _links(outcome: Outcome) -> tuple[Indices, Indices]:
    """Return each pair of a job and a link on the routes between its nodes."""
    jobs = outcome.ran.tolist()
    links = [outcome.cluster.links.links_of(outcome.nodes_of(job)) for job in jobs]
    each = np.array([len(of) for of in links], dtype=np.int64)
    return np.repeat(outcome.ran, each), np.concatenate([np.empty(0, np.int64), *links]).astype(np.int64)


def _pairs(outcome: Outcome, uses: tuple[Indices, Indices]) -> Indices:
    """Return the pairs of jobs that use the same leaf, pod or link at the same time, each pair once.

    A pair is the number (smaller job number) * (number of jobs) + (larger job number).

    :param outcome: the outcome.
    :param uses: two columns: jobs, and the number of a leaf, pod or link that the job uses.
    """
    count, (job, of) = len(outcome.workload), uses
    order = np.lexsort((outcome.start_pass[job], of))
    job, of = job[order], of[order]
    if not len(job):
        return np.empty(0, dtype=np.int64)
    begin, until = _passes(outcome)
    axis = of * (int(until.max()) + 1)  # the groups are placed one after another on one time axis
    start, end = begin[job] + axis, until[job] + axis
    later = np.searchsorted(start, end) - np.arange(len(job)) - 1  # later entries that start before this one ends
    found = [np.empty(0, dtype=np.int64)]
    total = np.cumsum(later)
    first = 0
    while first < len(job):
        last = max(first + 1, int(np.searchsorted(total, total[first] - later[first] + PAIRS_AT_ONCE)))
        found.append(_spell_out(job, later, first, last, count))
        first = last
    return np.unique(np.concatenate(found))


def _passes(outcome: Outcome) -> tuple[Indices, Indices]:
    """Return the pass over the queue that starts each job, and the first pass that starts jobs after the job's end.

    Jobs are compared by passes, because several passes may happen in one second.
    """
    start, run = outcome.start_pass, outcome.end > outcome.start
    order = np.argsort(start)
    moments = np.append(outcome.start[order], np.iinfo(np.int64).max)
    passes = np.append(start[order], start.max(initial=0) + 1)
    return start, np.where(run, passes[np.searchsorted(moments, outcome.end)], start + 1)


def _spell_out(job: Indices, later: Indices, first: int, last: int, count: int) -> Indices:
    each = later[first:last]
    one = np.repeat(np.arange(first, last), each)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(each) - each, each)
    pair = np.sort(np.stack((job[one], job[other])), axis=0)
    return np.unique(pair[0] * count + pair[1])
