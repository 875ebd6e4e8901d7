"""Searches over swaps in numpy: downhill, and by kicks that are undone unless they pay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .swaps import SwapState

__all__ = ["descend", "kick"]

Integers = NDArray[np.int64]
Swaps = list[tuple[int, int]]
# Savings below this fraction of the total cost are rounding errors.
TOLERANCE = 1e-12


def descend(
    state: SwapState, least: float, touched: set[int] | None = None, limit: int | None = None
) -> tuple[float, Swaps]:
    """Swap ranks until no swap saves more than ``least``.

    :param state: places (hosts, or clusters of one level) of the ranks; updated by the swaps.
    :param least: saving that a swap must exceed, in units of weight times distance.
    :param touched: places at which costs changed since the last descent, to which the search is limited; by default
        all.
    :param limit: largest number of swaps.
    :return: total saving, half of the decrease of `SwapState.total`; and the swaps in order.
    """
    saved, swaps = 0.0, Swaps()
    while touched is None or touched:
        pairs = state.candidates(least, None if touched is None else np.array(sorted(touched), dtype=np.int64))
        touched = set()
        for a, b in pairs:
            gain = state.gains(a, b)
            i, j = divmod(int(np.argmax(gain)), gain.shape[1])
            if gain[i, j] <= least:
                continue
            saved += float(gain[i, j])
            swaps.append(exchange(state, int(state.on(a)[i]), int(state.on(b)[j]), touched))
            if limit is not None and len(swaps) >= limit:
                return saved, swaps
    return saved, swaps


def exchange(state: SwapState, r: int, s: int, touched: set[int]) -> tuple[int, int]:
    """Swap two ranks, and add to ``touched`` the places at which costs change: those of the two and of neighbours."""
    state.swap(r, s)
    offsets, targets, _ = state.graph
    for rank in (r, s):
        touched.add(int(state.place[rank]))
        touched.update(state.place[targets[offsets[rank] : offsets[rank + 1]]].tolist())
    return r, s


def kick(state: SwapState, kicks: int, rng: np.random.Generator) -> float:
    """Iterated local search: make a disturbance, descend, and undo both if the cost is then higher than before.

    A disturbance is a series of one to three swaps. The first one swaps a random rank with a rank on the place of its
    neighbour in the graph, or of a neighbour's neighbour, namely the one for which the cost rises least. Each further
    swap begins with the neighbour of the swap before.

    :param state: places (hosts, or clusters of one level) of the ranks; updated by the swaps.
    :param kicks: number of disturbances.
    :param rng: random number generator.
    :return: total saving, half of the decrease of `SwapState.total`.
    Cost: O(kicks x ranks x places near a disturbance).
    """
    movable = np.flatnonzero(np.diff(state.graph.offsets))
    if len(state.distance) < 2 or not len(movable):
        return 0.0
    least, saved = state.total * TOLERANCE, 0.0
    for _ in range(kicks):
        touched: set[int] = set()
        gain, swaps = 0.0, Swaps()
        rank = int(rng.choice(movable))
        for _ in range(int(rng.integers(1, 4))):
            rank, cost = _disturb(state, rank, rng, swaps, touched)
            gain -= cost
        found, more = descend(state, least, touched, limit=len(state.place))
        gain, swaps = gain + found, swaps + more
        if gain < -least:
            for r, s in reversed(swaps):
                state.swap(r, s)
        else:
            saved += gain
    return saved


def _disturb(
    state: SwapState, rank: int, rng: np.random.Generator, swaps: Swaps, touched: set[int]
) -> tuple[int, float]:
    """Make one swap of a disturbance; return the neighbour to whose place the rank moved, and the loss.

    :param state: places of the ranks.
    :param rank: rank to move.
    :param rng: random number generator.
    :param swaps: list to which the swap is appended.
    :param touched: set to which the places where costs change are added.
    """
    offsets, targets, _ = state.graph
    toward = rank
    for _ in range(2):
        toward = int(targets[rng.integers(offsets[toward], offsets[toward + 1])])
        if state.place[toward] != state.place[rank]:
            break
    a, b = int(state.place[rank]), int(state.place[toward])
    if a == b:
        return toward, 0.0
    row = int(state.slot_of[rank] - state.first[a])
    gains = state.gains(a, b)[row]
    other = int(np.argmax(np.where(state.on(b) == toward, -np.inf, gains) if len(gains) > 1 else gains))
    swaps.append(exchange(state, rank, int(state.on(b)[other]), touched))
    return toward, -float(gains[other])
