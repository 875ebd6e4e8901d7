"""Summary figures of an outcome, by which policies are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..outcome import Outcome
from .timeline import utilisation

__all__ = ["SHORT", "SIZE_CLASSES", "Summary", "summarise", "wait_by_size"]

SHORT = 10  # seconds; least divisor in bounded slowdowns, lest short jobs dominate (D. Feitelson et al., JSSPP 1997)
SIZE_CLASSES = (1, 4, 18, 64, 256)  # nodes; largest size of each class of jobs, before a last class of all larger ones


@dataclass(frozen=True)
class Summary:
    """Summary figures of an outcome; times are in seconds, means are over the jobs that ran.

    :param jobs: number of jobs that ran.
    :param rejected: number of jobs that the cluster cannot run.
    :param makespan: seconds from the first arrival to the last end.
    :param mean_wait: mean seconds from arrival to start.
    :param median_wait: median of the seconds from arrival to start.
    :param max_wait: longest time from arrival to start, in seconds.
    :param slowdown: mean of (wait + run) / run over the jobs with a run time above 0.
    :param bounded_slowdown: mean of (wait + run) / max(run, 10 s), each at least 1.
    :param utilisation: share of the node-seconds (slot-seconds, if nodes have slots) that jobs used, from the first
        arrival to the last end.
    :param held: share as ``utilisation``, but including the nodes, or slots, that jobs held without using them.
    :param sum_of_starts: sum of all start times, a checksum to compare runs.
    """

    jobs: int
    rejected: int
    makespan: int
    mean_wait: float
    median_wait: float
    max_wait: int
    slowdown: float
    bounded_slowdown: float
    utilisation: float
    held: float
    sum_of_starts: int


def summarise(outcome: Outcome) -> Summary:
    """Compute the figures of an outcome."""
    ran = outcome.ran
    if not len(ran):
        return Summary(0, len(outcome.rejected), 0, 0.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0, 0)
    start, end, submit = outcome.start[ran], outcome.end[ran], outcome.workload.submit[ran]
    wait, run = start - submit, end - start
    ran_at_all = run > 0
    slowdown = (wait + run)[ran_at_all] / run[ran_at_all]
    bounded = np.maximum(1, (wait + run) / np.maximum(run, SHORT))
    return Summary(
        jobs=len(ran),
        rejected=len(outcome.rejected),
        makespan=int(end.max() - submit.min()),
        mean_wait=float(wait.mean()),
        median_wait=float(np.median(wait)),
        max_wait=int(wait.max()),
        slowdown=float(slowdown.mean()) if len(slowdown) else 1.0,
        bounded_slowdown=float(bounded.mean()),
        utilisation=utilisation(outcome).mean(),
        held=utilisation(outcome, held=True).mean(),
        sum_of_starts=int(start.sum()),
    )


def wait_by_size(outcome: Outcome, classes: tuple[int, ...] = SIZE_CLASSES) -> dict[str, NDArray[np.int64]]:
    """Return the waits in seconds of the jobs in each size class, by the class's name, for example ``5-18``.

    The last class has all larger jobs, and its name no upper bound, for example ``257-``. Classes without jobs are left
    out.

    :param outcome: the outcome of a simulation.
    :param classes: largest number of nodes of a job in each class except the last, ascending.
    """
    sizes, wait = outcome.workload.nodes[outcome.ran], (outcome.start - outcome.workload.submit)[outcome.ran]
    place = np.searchsorted(classes, sizes)
    least = [1, *(largest + 1 for largest in classes)]
    names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(least, classes, strict=False)] + [f"{least[-1]}-"]
    return {name: wait[place == at] for at, name in enumerate(names) if (place == at).any()}
