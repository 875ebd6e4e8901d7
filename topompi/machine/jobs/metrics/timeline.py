"""Step functions of time: the use of nodes, and the number of waiting jobs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..outcome import Outcome
from .incidence import incidence_of

__all__ = ["Steps", "queue_length", "utilisation"]


class Steps(NamedTuple):
    """A step function with value ``values[i]`` from second ``times[i]`` to ``times[i + 1]``; the last value is 0."""

    times: NDArray[np.int64]
    values: NDArray[np.float64]

    def mean(self) -> float:
        """Return the mean value between the first and the last of ``times``, weighted by time."""
        spans = np.diff(self.times)
        return float((self.values[:-1] * spans).sum() / max(1, spans.sum()))


def utilisation(outcome: Outcome, *, held: bool = False) -> Steps:
    """Return the share of nodes (slots, if the cluster's nodes have slots) that jobs use, from the first arrival on.

    :param outcome: the outcome of a simulation.
    :param held: whether nodes, or slots, that jobs hold but do not use are counted, too.
    """
    ran = outcome.ran
    nodes = np.diff(outcome.offset)[ran] if held and outcome.has_nodes else outcome.workload.nodes[ran]
    share = nodes.astype(np.float64) / outcome.cluster.num_nodes
    if outcome.cluster.node_slots is not None:
        share = _slots(outcome, held)[ran] / outcome.cluster.num_slots
    return _steps(outcome.workload.submit[:1], outcome.start[ran], outcome.end[ran], share)


def _slots(outcome: Outcome, held: bool) -> NDArray[np.float64]:
    """Return the number of slots that each job held or, unless ``held`` is set, used.

    A job uses the slots that it asked for, or all slots of its nodes if it asked for whole nodes.
    """
    jobs, cluster = outcome.workload, outcome.cluster
    total = jobs.nodes.astype(np.float64) * (cluster.num_slots / cluster.num_nodes)
    if outcome.has_nodes:
        rows = incidence_of(outcome, cluster.leaf, held=held, slots=True)
        total = np.bincount(rows.job, rows.amount, len(jobs)).astype(np.float64)
    return total if held else np.where(jobs.slots > 0, np.minimum(jobs.slots, total), total)


def queue_length(outcome: Outcome) -> Steps:
    """Return the number of waiting jobs over time, until the last end."""
    ran = outcome.ran
    submit = outcome.workload.submit[ran]
    span = np.concatenate((submit[:1], np.sort(outcome.end[ran])[-1:]))
    return _steps(span, submit, outcome.start[ran], np.ones(len(ran)))


def _steps(
    span: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64], amount: NDArray[np.float64]
) -> Steps:
    moments = np.concatenate((span, begin, end))
    change = np.concatenate((np.zeros(len(span)), amount, -amount))
    times, place = np.unique(moments, return_inverse=True)
    values: NDArray[np.float64] = np.cumsum(np.bincount(place, change, len(times)))
    return Steps(times, values.round(12))
