"""Numbers that change with time: nodes in use, and jobs that wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..outcome import Outcome

__all__ = ["Steps", "queue_length", "utilisation"]


class Steps(NamedTuple):
    """From ``times[i]`` on, and until the next one, the number is ``values[i]``; the last value is 0."""

    times: NDArray[np.int64]
    values: NDArray[np.float64]

    def mean(self) -> float:
        """The mean over time."""
        spans = np.diff(self.times)
        return float((self.values[:-1] * spans).sum() / max(1, spans.sum()))


def utilisation(outcome: Outcome, *, held: bool = False) -> Steps:
    """The share of nodes that jobs use, from the first arrival on.

    :param outcome: what ran.
    :param held: count nodes that jobs hold without using them, too.
    """
    ran = outcome.ran
    nodes = np.diff(outcome.offset)[ran] if held and outcome.has_nodes else outcome.workload.nodes[ran]
    share = nodes / outcome.cluster.num_nodes
    return _steps(outcome.workload.submit[:1], outcome.start[ran], outcome.end[ran], share)


def queue_length(outcome: Outcome) -> Steps:
    """The number of jobs that wait, until the last end."""
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
