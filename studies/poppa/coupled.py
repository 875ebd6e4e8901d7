"""A job on several nodes, whose ranks wait for each other, and a shutter per node that knows nothing of the others.

Each node has a partner of its own, which slows the job's ranks there to a constant speed. The job repeats steps of
equal work per node, and no node begins a step before all have ended the one before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topompi.machine.colocation.estimates.records import ProgressRates

__all__ = ["groups_on_nodes"]

WINDOW, WINDOWS, PAUSE = 0.00032, 10, 0.02  # seconds; pauses between the shutters of a node are exponential
Reals = NDArray[np.float64]


class _Job:
    """Replicas of the job: work left in the step per node, shape (replicas, nodes)."""

    def __init__(self, speeds: Reals, step: float, replicas: int, rng: np.random.Generator) -> None:
        self.speeds, self.step = speeds, step
        self.left = np.full((replicas, len(speeds)), step)
        self.run(rng.random(replicas) * 20 * step / speeds.min(), speeds)

    def run(self, seconds: Reals, speeds: Reals) -> Reals:
        """Run each replica for a time; return the work done per replica and node."""
        rest, work = seconds.copy(), np.zeros(self.left.shape)
        while (rest > 1e-12).any():
            needs = np.where(self.left > 0, self.left / speeds, 0.0)
            most = needs.max(axis=1)
            span = np.minimum(rest, most)
            done = np.minimum(self.left, span[:, None] * speeds)
            work += done
            self.left = np.where((span >= most)[:, None], self.step, self.left - done)
            rest = rest - span
        return work


def groups_on_nodes(speeds: Sequence[float], step: float, *, shutters: int = 400, seed: int = 0) -> list[ProgressRates]:
    """Return the rates that the shutter of each node measures; the true performance is the least of the speeds.

    :param speeds: speed of the job's ranks on each node beside its partner, as a share of that alone.
    :param step: seconds of work alone between two moments at which all nodes wait for each other.
    :param shutters: number of shutters per node.
    :param seed: seed of starts and pauses.
    """
    rng, shared = np.random.default_rng(seed), np.array(speeds, float)
    found = []
    for node in range(len(shared)):
        job = _Job(shared, step, shutters, rng)
        job.run(rng.exponential(PAUSE, shutters), shared)
        alone = shared.copy()
        alone[node] = 1.0
        width = np.full(shutters, WINDOW)
        rates = [[job.run(width, now)[:, node] / WINDOW for _ in range(WINDOWS)] for now in (shared, alone, shared)]
        found.append(ProgressRates(np.array(rates).transpose(0, 2, 1)))
    return found
