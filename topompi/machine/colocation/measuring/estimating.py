"""Slow-downs and speed-ups with intervals from the runs of blocks, and the time that a measurement will still take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..speedups.matrix import Speedups
from .plan import MeasuredRun, Pair, StoppingRules, missing_of

__all__ = ["Forecast", "forecast", "ratios_of", "speedups_of", "spreads_of"]

SAMPLES = 400  # bootstrap samples
Reals = NDArray[np.float64]
Cell = tuple[str, str]


@dataclass(frozen=True)
class Forecast:
    """The rest of a measurement.

    :param cells: number of cells of the matrix whose estimate is not good enough.
    :param seconds: expected seconds for their least number of further blocks; NaN before the first run.
    """

    cells: int
    seconds: float


def ratios_of(runs: Sequence[MeasuredRun]) -> dict[Cell, Reals]:
    """Return, by program and neighbour, the ratio of shared to solo time in each complete block.

    The time of a segment is the median of the runs in it.

    :param runs: completed runs.
    """
    times: dict[tuple[Pair, int, str, str | None], list[float]] = {}
    for run in runs:
        times.setdefault((run.pair, run.block, run.program, run.beside), []).append(run.seconds)
    found: dict[Cell, list[float]] = {}
    for (pair, block, program, beside), shared in times.items():
        solo = times.get((pair, block, program, None))
        if beside is not None and solo is not None:
            found.setdefault((program, beside), []).append(float(np.median(shared) / np.median(solo)))
    return {cell: np.array(values) for cell, values in found.items()}


def _drawn(ratios: Reals, rng: np.random.Generator) -> Reals:
    """Return medians of bootstrap samples of blocks, shape (SAMPLES,)."""
    return np.asarray(np.median(rng.choice(ratios, (SAMPLES, len(ratios))), axis=1))


def spreads_of(runs: Sequence[MeasuredRun], seed: int = 0) -> dict[Pair, float]:
    """Return half the length of the interval of 95 % of each pair's slow-downs, relative; the larger of both programs.

    A pair with one block has an infinite spread.

    :param runs: completed runs.
    :param seed: seed of the bootstrap.
    """
    ratios, found = ratios_of(runs), dict[Pair, float]()
    for pair in dict.fromkeys(run.pair for run in runs):
        cells = {pair, pair[::-1]}
        found[pair] = max(_spread(ratios.get(cell, np.empty(0)), seed) for cell in cells)
    return found


def _spread(ratios: Reals, seed: int) -> float:
    if len(ratios) < 2:
        return math.inf
    low, high = np.quantile(_drawn(ratios, np.random.default_rng(seed)), (0.025, 0.975))
    return float((high - low) / 2 / np.median(ratios))


def speedups_of(names: Sequence[str], runs: Sequence[MeasuredRun], seed: int = 0) -> Speedups:
    """Return the matrix of speed-ups relative to each program beside a second copy of itself (compact mode).

    Both slow-downs of a ratio are relative to solo runs of the same minutes. The intervals are those of 95 % of a
    bootstrap over blocks; a cell has none before its second block.

    :param names: names of the programs.
    :param runs: completed runs.
    :param seed: seed of the bootstrap.
    """
    ratios, rng = ratios_of(runs), np.random.default_rng(seed)
    count = len(names)
    ratio, low, high = np.full((3, count, count), np.nan)
    compact, alone = np.full((2, count), np.nan)
    for row, one in enumerate(names):
        own = ratios.get((one, one))
        if own is None:
            continue
        alone[row] = np.median(own)
        compact[row] = alone[row] * np.median([run.seconds for run in runs if run.program == one and not run.beside])
        for column, other in enumerate(names):
            beside = ratios.get((one, other))
            if beside is None:
                continue
            ratio[row, column] = alone[row] / np.median(beside)
            if row != column and min(len(own), len(beside)) > 1:
                drawn = _drawn(own, rng) / _drawn(beside, rng)
                low[row, column], high[row, column] = np.quantile(drawn, (0.025, 0.975))
    return Speedups.of(names, ratio, compact=compact, alone=alone, low=low, high=high)


def forecast(
    pairs: Sequence[Pair], runs: Sequence[MeasuredRun], spread: Mapping[Pair, float], rules: StoppingRules
) -> Forecast:
    """Return the number of cells that are not good enough, and the seconds of the least number of further blocks.

    A program that has not run yet is taken to need the mean time of the others.

    :param pairs: the pairs to measure.
    :param runs: completed runs.
    :param spread: half of the interval of each pair's slow-downs, relative.
    :param rules: the rules.
    """
    solo: dict[str, list[float]] = {}
    for run in runs:
        solo.setdefault(run.program, []).append(run.seconds)
    known = {name: float(np.median(times)) for name, times in solo.items()}
    usual = float(np.mean(list(known.values()))) if known else math.nan
    cells, seconds = 0, 0.0
    for pair in pairs:
        lacking = missing_of(pair, runs)
        blocks = lacking[0].block
        if blocks >= rules.most or (blocks >= rules.least and spread.get(pair, math.inf) <= rules.within):
            continue
        cells += len(set(pair))
        one, other = (known.get(name, usual) for name in pair)
        block = (one if pair[0] == pair[1] else one + other) + max(one, other)
        seconds += max(1, rules.least - blocks) * block
    return Forecast(cells, seconds)
