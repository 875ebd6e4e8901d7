"""Tables of the rules: labels (figures 4.12, 4.13), accuracy (tables 4.4, 4.5), and pairs of 300 random jobs (4.2).

The source prints no profile, so that its score cannot be computed. In its place stand tags of 0 and 1 on the axes that
the implied kinds name, and pairs by labels. ``--quick`` draws 5 pools instead of 100.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.tables import Table
from topompi.machine.colocation.pairing.matching import greedy, optimal, sequential
from topompi.machine.colocation.pairing.values import label_values, saved, scores
from topompi.machine.colocation.profiles.system import Tag
from topompi.machine.colocation.rules.kinds import Kind
from topompi.machine.colocation.rules.labels import labels
from topompi.machine.colocation.speedups.bands import CLASSES, UNKNOWN, VERDICTS, classes, verdicts
from topompi.machine.colocation.speedups.files import read_speedups
from topompi.machine.colocation.speedups.matrix import Speedups

from .published import ACCURACY, MEASURED_NAMES, NAS, SPEC, STATED, Predicted

__all__ = ["POOLS", "experiment", "implied_tags", "measured", "tables"]

Reals = NDArray[np.float64]
SUITES = {"NAS": (NAS, "aris-nas.csv"), "SPEC": (SPEC, "aris-spec.csv")}
JOBS, POOLS = 300, 100
# Axes FLOPS, memory and MPI time of each kind; the kinds say which axes are large, not how large.
AXES = {
    Kind.C_HEAVY: (1.0, 0.0, 0.0),
    Kind.C_MEM: (1.0, 0.5, 0.0),
    Kind.C_COMM: (1.0, 0.5, 0.5),
    Kind.M: (0.0, 1.0, 0.0),
    Kind.M_IRR: (0.0, 0.75, 0.0),
    Kind.X_USEFUL: (0.0, 0.0, 1.0),
    Kind.X_IDLE: (0.0, 0.0, 1.0),
}


def measured(suite: str) -> Speedups:
    """Return the measured speed-ups of the programs of a published matrix, in its order.

    :param suite: ``NAS`` or ``SPEC``.
    """
    published, file = SUITES[suite]
    folder = Path(os.environ.get("TOPOMPI_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    names = [MEASURED_NAMES.get(name, name) for name in published.programs]
    return read_speedups(folder / "colocation" / file).only(names)


def implied_tags(published: Predicted) -> list[Tag]:
    """Return tags with the axes that the kinds imply.

    :param published: programs and their kinds.
    """
    return [Tag(one.program, *AXES[one.kind]) for one in published.characters]


def experiment(speedups: Speedups, pair: Callable[[NDArray[np.int64]], list[tuple[int, int]]], pools: int) -> Reals:
    """Pair random pools of 300 jobs; return three means per pool: speed-up, slowed jobs, machine time.

    The result has shape (pools, 3). Machine time is that of nodes of the jobs' own: 1 divided by the speed-up.

    :param speedups: the measured speed-ups.
    :param pair: function that pairs a pool, given the program's number of each job.
    :param pools: number of pools, drawn with replacement from seeds 0, 1, ...
    """
    found = []
    for seed in range(pools):
        pool = np.random.default_rng(seed).integers(0, len(speedups), JOBS)
        one, other = np.array(pair(pool)).T
        both = np.concatenate([speedups.ratio[pool[one], pool[other]], speedups.ratio[pool[other], pool[one]]])
        found.append((both.mean(), (both < 1).mean(), (1 / both).mean()))
    return np.array(found)


def _labels() -> Iterator[Sequence[object]]:
    for suite, (published, _) in SUITES.items():
        ours = labels(published.characters)
        counts = " / ".join(str((published.labels == at).sum()) for at in (2, 1, 0))
        own = " / ".join(str((ours == at).sum()) for at in (2, 1, 0))
        yield suite, published.labels.size, counts, own, int((ours == published.labels).sum())


def _accuracy() -> Iterator[Sequence[object]]:
    for suite, (published, _) in SUITES.items():
        ratio = measured(suite).ratio
        found = np.bincount(verdicts(labels(published.characters), ratio).ravel(), minlength=3)[::-1]
        for name, theirs, ours in zip(VERDICTS[::-1], ACCURACY[suite], found.tolist(), strict=True):
            yield suite, name, f"{theirs} ({theirs / ratio.size:.2%})", f"{ours} ({ours / ratio.size:.2%})"


def _stated() -> Iterator[Sequence[object]]:
    speedups, ours = measured("NAS"), labels(NAS.characters)
    for one, other, speedup, verdict in STATED:
        at, beside = NAS.programs.index(one), NAS.programs.index(other)
        here = speedups.ratio[at, beside]
        label = CLASSES[ours[at, beside]]
        yield one, other, speedup, f"{here:.2f}", label, verdict, VERDICTS[verdicts(ours[at, beside], here)]


def _confusion() -> Iterator[Sequence[object]]:
    for suite, (published, _) in SUITES.items():
        ours, true = labels(published.characters), classes(measured(suite).ratio)
        for at in (2, 1, 0):
            row = [int(((true == at) & (ours == label) & (true != UNKNOWN)).sum()) for label in (2, 1, 0)]
            yield suite, CLASSES[at], *row


def _pools(pools: int) -> Iterator[Sequence[object]]:
    for suite, (published, _) in SUITES.items():
        speedups = measured(suite)
        by_score = scores(implied_tags(published))
        by_labels = label_values(labels(published.characters)) + by_score / 1000
        by_heat = saved(speedups, np.ones(len(speedups)))
        ways: dict[str, Callable[[NDArray[np.int64]], list[tuple[int, int]]]] = {
            "in the given order": lambda pool: sequential(np.zeros((len(pool), len(pool)))),
            "greedy, score of implied tags": lambda pool, value=by_score: greedy(value[np.ix_(pool, pool)]),  # type: ignore[misc]
            "greedy, labels": lambda pool, value=by_labels: greedy(value[np.ix_(pool, pool)]),  # type: ignore[misc]
            "greedy, measured speed-ups": lambda pool, value=by_heat: greedy(value[np.ix_(pool, pool)]),  # type: ignore[misc]
            "optimal, measured speed-ups": lambda pool, value=by_heat: optimal(value[np.ix_(pool, pool)]),  # type: ignore[misc]
        }
        first = None
        for name, way in ways.items():
            few = min(pools, 3) if name.startswith("optimal") else pools  # 6 s per pool
            found = experiment(speedups, way, few)
            first = found if first is None else first
            mean, slowed, machine = found.mean(axis=0)
            gain = (found[:, 0] / first[:few, 0] - 1).mean()
            less = (found[:, 1] - first[:few, 1]).mean()
            means = f"{mean:.3f}", f"{slowed:.1%}", f"{machine:.3f}"
            yield suite, name, few, *means, f"{gain:+.2%}", f"{100 * less:+.2f} points"


def tables(quick: bool) -> Iterator[Table]:
    """Yield the tables of labels, their accuracy, stated cells, confusions, and pools.

    :param quick: whether there are 5 pools only.
    """
    yield "coscheduling labels", ("suite", "cells", "published good / stationary / bad", "ours", "equal"), _labels()
    yield "coscheduling accuracy", ("suite", "verdict", "published", "ours"), _accuracy()
    head = ("program", "beside", "stated", "measured", "label", "verdict on stated", "on measured")
    yield "coscheduling stated", head, _stated()
    yield "coscheduling confusion", ("suite", "measured", "predicted good", "stationary", "bad"), _confusion()
    means = "mean speed-up", "slowed", "machine time"
    of_pools = ("suite", "pairs", "pools", *means, "speed-up against the order", "slowed against it")
    yield "coscheduling pools", of_pools, _pools(5 if quick else POOLS)
