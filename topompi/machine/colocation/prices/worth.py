"""Prices over a whole workload: what jobs that shared nodes would have paid under each rule, and who cost whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ColocationError
from ..estimates.estimators import Estimate
from .rules import Run, price

__all__ = ["NOBODY", "OWN", "PERCENTILES", "Effects", "Intervals", "Worth", "effects_of", "worth"]

NOBODY = -1  # partner of a job beside empty halves of nodes
OWN = -2  # partner of a job that has both halves of a node itself, or whole nodes
PERCENTILES = (5, 25, 50, 75, 95)
Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """The time of each job, cut where its partner changes, as columns of shape (n,).

    If a job has several partners at once, on different nodes, the one that slows it most counts: ranks wait for
    each other.

    :param job: number of the job.
    :param partner: number of the job beside it, or ``NOBODY``, or ``OWN``.
    :param start: second at which the interval begins.
    :param end: second at which it ends.
    :param share: speed of the job, as a share of that on the same cores with all others gone.
    """

    job: Integers
    partner: Integers
    start: Reals
    end: Reals
    share: Reals

    def __len__(self) -> int:
        return len(self.job)


@dataclass(frozen=True, eq=False)
class Effects:
    """Losses of the jobs of a workload to each other, as columns of shape (n,).

    :param program: row of each job's program in the speed-ups.
    :param size: nodes of each job: half of the cores of twice as many count as these.
    :param solo: seconds that each job would have run on the same cores with all others gone.
    :param shared: seconds that it ran.
    :param beside: seconds that it ran beside another job.
    :param lost: node-seconds that it lost to its partners.
    :param caused: node-seconds that its partners lost to it.
    """

    program: Integers
    size: Integers
    solo: Reals
    shared: Reals
    beside: Reals
    lost: Reals
    caused: Reals

    @property
    def performance(self) -> Reals:
        """``T_solo / T_co`` of each job; 1 for a job that did not run."""
        return np.divide(self.solo, self.shared, out=np.ones_like(self.solo), where=self.shared > 0)


def effects_of(intervals: Intervals, nodes: ArrayLike, program: ArrayLike) -> Effects:
    """Sum the intervals of each job: run time, run time alone, and what partners lost to each other.

    :param intervals: who ran beside whom, from a schedule.
    :param nodes: number of nodes of each job, shape (n,).
    :param program: row of each job's program in the speed-ups, shape (n,).
    """
    size, row = np.asarray(nodes, np.int64), np.asarray(program, np.int64)
    paired = intervals.partner >= 0
    span = intervals.end - intervals.start
    done = span * intervals.share
    lost = (span - done) * size[intervals.job]

    def summed(job: Integers, values: Reals) -> Reals:
        return np.bincount(job, values, len(size)).astype(float)

    return Effects(
        row,
        size,
        summed(intervals.job, done),
        summed(intervals.job, span),
        summed(intervals.job, np.where(paired, span, 0.0)),
        summed(intervals.job, lost),
        summed(intervals.partner[paired], lost[paired]),
    )


@dataclass(frozen=True, eq=False)
class Worth:
    """Prices of the jobs of a workload, in service units.

    :param effects: what the jobs did to each other.
    :param prices: price of each job by rule, shape (n,).
    :param alone: price of the same work beside empty halves, shape (n,).
    :param own: price of the same work on nodes of its own, shape (n,).
    """

    effects: Effects
    prices: Mapping[str, Reals]
    alone: Reals
    own: Reals

    def relative(self, rule: str) -> Reals:
        """Return price over price alone of each job that ran."""
        ran = self.alone > 0
        return self.prices[rule][ran] / self.alone[ran]

    def factor(self, rule: str, target: float) -> float:
        """Return the factor on the rate with which the prices by a rule sum to a target; NaN if all are 0.

        :param rule: name of the rule.
        :param target: sum of service units that the site wants.
        """
        total = float(self.prices[rule].sum())
        return target / total if total else float("nan")

    def summary(self) -> list[dict[str, Any]]:
        """Return for each rule its sum, the factors that make it neutral, and prices over the price alone."""
        rows = []
        for rule, amounts in self.prices.items():
            shares = self.relative(rule)
            spread = np.percentile(shares, PERCENTILES).tolist() if len(shares) else [float("nan")] * len(PERCENTILES)
            row = {"rule": rule, "sum": float(amounts.sum())}
            row["factor_as_usual"] = self.factor(rule, float(self.prices["as-usual"].sum()))
            row["factor_own_nodes"] = self.factor(rule, float(self.own.sum()))
            row |= {"least": float(shares.min(initial=np.inf)), "mean": float(shares.mean() if len(shares) else 1)}
            row |= {f"p{at}": value for at, value in zip(PERCENTILES, spread, strict=True)}
            rows.append(row | {"most": float(shares.max(initial=0))})
        return rows

    def programs(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return for each program what it suffers and what it costs others, and its mean prices over the price alone.

        ``suffers`` is what the program loses (its row), ``costs`` what others lose beside it (its column), both as
        shares of its node time beside others. ``costs`` may exceed 1, because a small job slows all nodes of a large
        one. A program above the mean of all in the first is a victim, in the second an aggressor.

        :param names: names of the programs, by row.
        """
        found, count = self.effects, len(names)
        beside = np.bincount(found.program, found.beside * found.size, count)
        lost, caused = (np.bincount(found.program, one, count) for one in (found.lost, found.caused))
        mean = lost.sum() / beside.sum() if beside.sum() else 0.0
        rows = []
        for at, name in enumerate(names):
            jobs = (found.program == at) & (self.alone > 0)
            if not jobs.any():
                continue
            suffers, costs = (float(one[at] / beside[at]) if beside[at] else 0.0 for one in (lost, caused))
            kinds = [word for word, value in (("victim", suffers), ("aggressor", costs)) if value > mean * (1 + 1e-9)]
            row = {"program": name, "jobs": int(jobs.sum()), "suffers": suffers, "costs": costs}
            row |= {"lost_node_seconds": float(lost[at]), "caused_node_seconds": float(caused[at])}
            row |= {"kind": " and ".join(kinds)}
            total = self.alone[jobs].sum()
            rows.append(row | {rule: float(paid[jobs].sum() / total) for rule, paid in self.prices.items()})
        return rows


def worth(
    effects: Effects,
    seconds: ArrayLike,
    cores: int,
    rate: float,
    rules: Sequence[str] = (),
    *,
    error: float = 0.0,
    seed: int = 0,
) -> Worth:
    """Price the jobs of a workload as usual, by POPPA from estimates with an error, by the oracle and by further rules.

    A job pays for its nodes' cores, because half of the cores of twice as many nodes are as many.

    :param effects: what the jobs did to each other.
    :param seconds: run time of each job on nodes of its own, shape (n,).
    :param cores: cores of a node.
    :param rate: service units per core and second.
    :param rules: names of further rules, as in `price`.
    :param error: relative standard deviation of the estimates of performance, normally distributed.
    :param seed: seed of the errors.
    :raises ColocationError: if the error is negative, or a rule is unknown.
    """
    if not 0 <= error < 1:
        raise ColocationError(f"error: expecting a share from 0 to below 1, got {error!r}")
    names = dict.fromkeys(("as-usual", "poppa", "oracle", *rules))
    truth = effects.performance
    guessed = truth * (1 + error * np.random.default_rng(seed).standard_normal(len(truth)))
    amounts: dict[str, list[float]] = {name: [] for name in names}
    for job, (solo, shared, size, value) in enumerate(
        zip(effects.solo.tolist(), effects.shared.tolist(), effects.size.tolist(), guessed.tolist(), strict=True)
    ):
        run = Run(str(job), shared, size * cores, solo_seconds=solo or None)
        found = Estimate("drawn", value, value, value, 1, 1)
        for name, paid in amounts.items():
            paid.append(price(run, rate, found, name).amount if shared > 0 else 0.0)
    per_second = rate * cores * effects.size
    return Worth(
        effects,
        {name: np.array(paid) for name, paid in amounts.items()},
        per_second * effects.solo,
        per_second * np.asarray(seconds, float),
    )
