"""Simulated annealing over swaps, thousands of proposals priced at a time, in numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .swaps import SwapState

__all__ = ["Schedule", "anneal", "first_temperature"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
NEAREST = 6


@dataclass(frozen=True)
class Schedule:
    """How many swaps annealing proposes, and how it cools.

    :param proposals: swaps proposed in all.
    :param accepted: the part of the proposals that the first temperature accepts.
    :param cooling: the last temperature over the first.
    :param swaps: accepted at most; the temperature falls with the part of proposals, or of these, that is used up.
    """

    proposals: int
    accepted: float = 0.004
    cooling: float = 0.42
    swaps: float = float("inf")


def anneal(state: SwapState, schedule: Schedule, rng: np.random.Generator) -> float:
    """Swap ranks, accepting a loss with the probability of Metropolis et al. 1953, which falls as the search cools.

    A batch of proposals is priced at once as if each were alone; what that accepts is priced again, one by one, when it
    is applied, so that the state is always right. A rank is proposed to a neighbour's place, or to one near it.

    :param state: the ranks' places; changed in place.
    :param schedule: how many swaps to propose, and how to cool.
    :param rng: where all chance comes from.
    :return: what the swaps saved (half of what `SwapState.total` shows), which may be negative: see `keep`.
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
    """The temperature that accepts this part of the proposals that lose; 0 where none does.

    :param state: the ranks' places.
    :param accepted: from 0 to 1.
    :param rng: where all chance comes from.
    """
    return _temperature(_propose(state, _nearest(state, rng), 4096, rng)[3], accepted)


def _propose(
    state: SwapState, nearest: Integers, batch: int, rng: np.random.Generator
) -> tuple[Integers, Integers, Floats, Floats]:
    """Swaps of a rank and one where a neighbour of it sits, or near there: ranks, weight between them, gain.

    The gain of a swap within a place is minus infinity.
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
    """Swap two ranks if that still saves more than ``least``; return what it saved."""
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
    """The temperature that accepts this part of the losses among some gains, by bisection; 0 where none loses."""
    loss = -gain[np.isfinite(gain) & (gain < 0)]
    if not len(loss):
        return 0.0
    low, high = 0.0, float(loss.max()) * 10
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if np.exp(-loss / middle).mean() > accepted else (middle, high)
    return high


def _nearest(state: SwapState, rng: np.random.Generator) -> Integers:
    """Some of the nearest other places of each, among equals drawn by lot, shape (n, up to 6)."""
    places = len(state.distance)
    order = state.distance + rng.random(state.distance.shape) * 1e-3
    np.fill_diagonal(order, np.inf)
    count = min(NEAREST, places - 1)
    return np.argpartition(order, count - 1, axis=1)[:, :count]
