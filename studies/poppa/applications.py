"""Twelve drawn applications with phases, and what the shutter finds of them beside each other in the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from topompi.machine.colocation.estimates.estimators import METHODS, estimate
from topompi.machine.colocation.estimates.records import ProgressRates, groups_of

from .jobmodel import Phase, Shutter, simulate

__all__ = ["ESTIMATORS", "IDLE", "SHUTTER", "Application", "Cell", "applications", "cells_of", "literal"]

# Pauses are shorter than the source's 200 ms, because these only set how often the time is sampled.
SHUTTER = Shutter(pause=0.05, poisson=True)
NOISE = 0.005  # of the rate in a region
NODES = 512
ESTIMATORS = ("balanced", "unfiltered", "algorithm 4")
DELTA = 0.05  # of the source, in the unit of the rate
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Application:
    """A drawn application.

    :param name: its name, with the length of its shortest phase in ms.
    :param phases: its phases.
    """

    name: str
    phases: tuple[Phase, ...]


IDLE = Application("NULL", (Phase(1.0, 1.0),))


@dataclass(frozen=True)
class Cell:
    """An application beside others.

    :param name: its name.
    :param beside: names of the others.
    :param truth: true ``T_solo / T_co``.
    :param found: estimate by the name of the estimator.
    :param stopped: share of the time that it stood still.
    """

    name: str
    beside: tuple[str, ...]
    truth: float
    found: dict[str, float]
    stopped: float

    def error(self, estimator: str) -> float:
        """Return (predicted - actual) / actual run time alone."""
        return self.found[estimator] / self.truth - 1


@cache
def applications(seed: int = 58) -> tuple[Application, ...]:
    """Draw twelve applications, whose shortest phases have 1 ms (two of them) to 1 s.

    Phases of computation and of memory alternate; the second kind is slowed and slows. The ranges are chosen to
    interfere about as much as the source's applications do.

    :param seed: seed of the draw.
    """
    rng = np.random.default_rng(seed)
    found = []
    for number, shortest in enumerate((1, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)):
        lengths = shortest / 1000 * rng.uniform(1, 3, int(rng.integers(2, 5)))
        lengths[0] = shortest / 1000
        hurt, harm = rng.uniform(0.1, 1, 2)
        phases = [
            Phase(float(length), rng.uniform(0.6, 2), 0.9 * hurt * rng.uniform(0.6, 1), harm * rng.uniform(0.6, 1))
            if at % 2
            else Phase(float(length), rng.uniform(1, 2), *rng.uniform(0, 0.2, 2))
            for at, length in enumerate(lengths)
        ]
        found.append(Application(f"{'abcdefghijkl'[number]}, {shortest} ms", tuple(phases)))
    return tuple(found)


def literal(groups: ProgressRates) -> float:
    """Return the source's algorithm 4 word for word: one window per region, no correction; 1 if no shutter passes."""
    terms = METHODS["filtered"](groups.only(groups.alone), DELTA, True)
    value = float(terms.value(terms.rows.sum(axis=1)))
    return value if np.isfinite(value) else 1.0


def cells_of(
    jobs: Sequence[Application], shutter: Shutter = SHUTTER, *, rounds: int = 2, nodes: int = NODES,
    noise: float = NOISE, seed: int = 0,
) -> list[Cell]:  # fmt: skip
    """Simulate applications on one node, and return a cell for each.

    :param jobs: the applications; with n of them the load of each counts 1 / (n - 1), because it has 1 / n of the node.
    :param shutter: rhythm of the shutter.
    :param rounds: shutters of each job and node.
    :param nodes: number of independent nodes.
    :param noise: relative standard deviation of the rate in a region.
    :param seed: seed of starts and noise.
    """
    share = 1 / max(1, len(jobs) - 1)
    scaled = [[replace(one, aggressiveness=share * one.aggressiveness) for one in job.phases] for job in jobs]
    found = simulate(scaled, rounds, shutter, nodes=nodes, noise=noise, seed=seed)
    cells = []
    for at, job in enumerate(jobs):
        groups = groups_of(found.records, str(at))
        values = {name: estimate(groups, name).performance for name in ESTIMATORS[:2]}
        values[ESTIMATORS[2]] = literal(groups)
        others = tuple(other.name for number, other in enumerate(jobs) if number != at)
        cells.append(Cell(job.name, others, float(found.performance[at]), values, float(found.stopped[at])))
    return cells
