"""Simulated annealing over swaps in numpy, which evaluates thousands of proposals at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .swaps import SwapState

__all__ = ["CoolingSchedule", "anneal", "first_temperature"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
NEAREST = 6


@dataclass(frozen=True)
class CoolingSchedule:
    """The number of swaps that annealing proposes, and its cooling.

    :param proposals: number of swaps proposed.
    :param accepted: fraction of the proposals with a higher cost; the first temperature is chosen to accept it.
    :param cooling: ratio of the last temperature to the first.
    :param swaps: largest number of accepted swaps. The temperature falls with the fraction of proposals or of accepted
        swaps that is used up, whichever is larger.
    """

    proposals: int
    accepted: float = 0.004
    cooling: float = 0.42
    swaps: float = float("inf")


def anneal(state: SwapState, schedule: CoolingSchedule, rng: np.random.Generator) -> float:
    """Swap ranks, accepting a loss with the probability of Metropolis et al. 1953, which falls as the search cools.

    The swaps of a batch are evaluated independently of each other; accepted ones are evaluated again, one by one, when
    they are applied, so that the state is always correct. A proposal sends a rank to the place (host, or cluster of one
    level) of a rank with which it communicates, or to a place near that one.

    :param state: places of the ranks; changed during the search, and finally set to the best places found.
    :param schedule: number of swaps to propose, and cooling.
    :param rng: random number generator.
    :return: saving of the best places found, half of the decrease of `SwapState.total`, at least 0.
    Cost: O(proposals + accepted x degree x places).
    """
    places, edges = len(state.distance), len(state.graph.targets)
    if places < 2 or not edges:
        return 0.0
    batch = int(min(max(2 * len(state.place), 256), 8192))
    steps = max(schedule.proposals // batch, 1)
    nearest = _nearest(state, rng)
    hot = _temperature(_propose(state, nearest, 4 * batch, rng)[3], schedule.accepted)
    best, saved, kept, swaps = 0.0, 0.0, state.place.copy(), 0
    for step in range(steps if hot > 0 else 0):
        spent = max(step / steps, swaps / schedule.swaps)
        if spent >= 1:
            break
        r, s, tie, gain = _propose(state, nearest, batch, rng)
        least = hot * schedule.cooling**spent * np.log(1.0 - rng.random(batch))
        chosen = np.flatnonzero(gain > least)
        for one in chosen.tolist():
            saved += _apply(state, int(r[one]), int(s[one]), float(tie[one]), float(least[one]))
        swaps += len(chosen)
        if saved > best:
            best, kept = saved, state.place.copy()
    state.restore(kept)
    return best


def first_temperature(state: SwapState, accepted: float, rng: np.random.Generator) -> float:
    """The temperature at which a given fraction of the swaps that raise the cost is accepted; 0 if no swap raises it.

    :param state: places of the ranks.
    :param accepted: fraction of these swaps, from 0 to 1.
    :param rng: random number generator.
    """
    return _temperature(_propose(state, _nearest(state, rng), 4096, rng)[3], accepted)


def _propose(
    state: SwapState, nearest: Integers, batch: int, rng: np.random.Generator
) -> tuple[Integers, Integers, Floats, Floats]:
    """Propose swaps of a rank with a rank on or near the place of one of its neighbours in the graph.

    Return four arrays of shape (batch,): both ranks of each swap, the weight of the edge between them, and the saving,
    which is minus infinity if both ranks are on the same place.

    :param state: places of the ranks.
    :param nearest: some near places of each place, from ``_nearest``.
    :param batch: number of swaps.
    :param rng: random number generator.
    """
    edge = rng.integers(0, len(state.graph.targets), batch)
    r = state.sources[edge]
    a, b = state.place[r], state.place[state.graph.targets[edge]]
    aside = (rng.random(batch) < 0.3) | (a == b)
    b = np.where(aside, nearest[b, rng.integers(0, nearest.shape[1], batch)], b)
    s = state.rank_at[state.first[b] + (rng.random(batch) * (state.first[b + 1] - state.first[b])).astype(np.int64)]
    tie = state.between(r, s)
    cost, far = state.cost, state.distance
    gain = cost[r, a] - cost[r, b] + cost[s, b] - cost[s, a] - tie * (2 * far[a, b] - far[a, a] - far[b, b])
    return r, s, tie, np.where(a == b, -np.inf, gain)


def _apply(state: SwapState, r: int, s: int, tie: float, least: float) -> float:
    """Swap two ranks if this saves more than ``least`` at their present places; return the saving, 0 without a swap.

    :param state: places of the ranks.
    :param r: one rank.
    :param s: the other rank.
    :param tie: weight of the edge between them.
    :param least: saving that the swap must exceed.
    """
    a, b = state.place[r], state.place[s]
    if a == b:
        return 0.0
    cost, far = state.cost, state.distance
    gain = float(cost[r, a] - cost[r, b] + cost[s, b] - cost[s, a])
    gain -= tie * float(2 * far[a, b] - far[a, a] - far[b, b])
    if gain <= least:
        return 0.0
    state.swap(r, s)
    return gain


def _temperature(gain: Floats, accepted: float) -> float:
    """Find by bisection the temperature that accepts a given fraction of the negative gains; 0 if none is negative."""
    loss = -gain[np.isfinite(gain) & (gain < 0)]
    if not len(loss):
        return 0.0
    low, high = 0.0, float(loss.max()) * 10
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if np.exp(-loss / middle).mean() > accepted else (middle, high)
    return high


def _nearest(state: SwapState, rng: np.random.Generator) -> Integers:
    """For each place, up to 6 of the nearest other places, chosen at random among equals, shape (n, up to 6)."""
    places = len(state.distance)
    order = state.distance + rng.random(state.distance.shape) * 1e-3
    np.fill_diagonal(order, np.inf)
    count = min(NEAREST, places - 1)
    return np.argpartition(order, count - 1, axis=1)[:, :count]
