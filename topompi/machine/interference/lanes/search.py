"""Search for the lanes and weights with the least cost: all of them, or a random walk if there are too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import gcd

import numpy as np

from .choice import Lanes

__all__ = ["FoundLanes", "assignments", "search", "weightings"]


@dataclass(frozen=True)
class FoundLanes:
    """The result of a search.

    :param lanes: the choice with the least cost; of equal ones that with fewest lanes, then the first.
    :param cost: its cost.
    :param tried: number of choices whose cost was computed.
    :param every: whether these were all choices.
    """

    lanes: Lanes
    cost: float
    tried: int
    every: bool


def assignments(jobs: int, lanes: int) -> Iterator[tuple[int, ...]]:
    """All assignments of jobs to at most ``lanes`` lanes that differ in more than the numbers of lanes.

    A job's lane is at most one above the largest lane of the jobs before it (restricted growth strings).
    """

    def extend(head: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        if len(head) == jobs:
            yield head
            return
        for lane in range(min(used + 1, lanes)):
            yield from extend((*head, lane), max(used, lane + 1))

    return extend((), 0)


def weightings(lanes: int, values: Sequence[int]) -> list[tuple[int, ...]]:
    """All weights of lanes that differ in their ratios, ascending, divided by their greatest common divisor.

    :param lanes: number of lanes.
    :param values: weights that a lane may have.
    """
    return sorted({tuple(one // gcd(*weights) for one in weights) for weights in product(values, repeat=lanes)})


def search(
    cost: Callable[[Lanes], float],
    start: Lanes,
    lanes: int,
    *,
    values: Sequence[int] = (1, 2, 4, 8),
    limit: int = 200,
    seed: int = 0,
    told: Callable[[int, float], None] = lambda tried, least: None,
) -> FoundLanes:
    """Find the choice of lanes with the least cost.

    If there are at most ``limit`` choices, all are tried. Otherwise a walk goes from a choice to a better one that
    differs in one job's lane or one lane's weight, first from ``start``, and from a random one wherever it finds no
    better one.

    :param cost: function from a choice to its cost.
    :param start: choice from which the walk begins.
    :param lanes: largest number of lanes.
    :param values: weights that a lane may have.
    :param limit: largest number of choices whose cost is computed.
    :param seed: seed of the walk.
    :param told: function that is called with the number of choices tried so far and the least cost.
    """
    costs: dict[Lanes, float] = {}

    def price(one: Lanes) -> float | None:
        """The cost of a choice; None if the limit is reached."""
        if one not in costs and len(costs) >= limit:
            return None
        if one not in costs:
            costs[one] = cost(one)
            told(len(costs), min(costs.values()))
        return costs[one]

    jobs = len(start.of_job)
    every = list(islice(_every(jobs, lanes, values), limit + 1))
    complete = len(every) <= limit
    if complete:
        for one in every:
            price(one)
    else:
        _walk(price, start.canonical, jobs, lanes, sorted(set(values)), limit, np.random.default_rng(seed))
    best = min(costs, key=lambda one: (costs[one], len(one.weights)))
    return FoundLanes(best, costs[best], len(costs), complete)


def _every(jobs: int, lanes: int, values: Sequence[int]) -> Iterator[Lanes]:
    for of_job in assignments(jobs, lanes):
        for weights in weightings(max(of_job) + 1, values):
            yield Lanes(of_job, weights)


def _walk(
    price: Callable[[Lanes], float | None],
    start: Lanes,
    jobs: int,
    lanes: int,
    values: Sequence[int],
    limit: int,
    random: np.random.Generator,
) -> None:
    """Walk downhill from ``start``, then from random choices, until no further cost is computed.

    :param price: function from a choice to its cost, or to None.
    :param start: first choice.
    :param jobs: number of jobs.
    :param lanes: largest number of lanes.
    :param values: weights that a lane may have, ascending.
    :param limit: largest number of walks.
    :param random: generator of orders and of random choices.
    """
    here = start
    for _ in range(limit):
        least = price(here)
        while least is not None:
            near = _neighbours(here, lanes, values)
            for at in random.permutation(len(near)).tolist():
                found = price(near[at])
                if found is None:
                    return
                if found < least:
                    here, least = near[at], found
                    break
            else:
                break
        of_job = tuple(random.integers(0, lanes, jobs).tolist())
        weights = tuple(values[at] for at in random.integers(0, len(values), lanes).tolist())
        here = _renumbered(of_job, weights)


def _neighbours(one: Lanes, lanes: int, values: Sequence[int]) -> list[Lanes]:
    """Choices that differ in the lane of one job, or in the weight of one lane."""
    found: dict[Lanes, None] = {}
    room = min(lanes, len(one.weights) + 1)
    for job, own in enumerate(one.of_job):
        for lane in set(range(room)) - {own}:
            of_job = (*one.of_job[:job], lane, *one.of_job[job + 1 :])
            found[_renumbered(of_job, (*one.weights, values[0]))] = None
    for lane, weight in enumerate(one.weights):
        for other in set(values) - {weight}:
            weights = (*one.weights[:lane], other, *one.weights[lane + 1 :])
            found[replace(one, weights=weights).canonical] = None
    found.pop(one, None)
    return list(found)


def _renumbered(of_job: Sequence[int], weights: Sequence[int]) -> Lanes:
    """The canonical choice, from weights by lane that may belong to lanes without jobs."""
    number = {lane: at for at, lane in enumerate(sorted(set(of_job)))}
    return Lanes(tuple(number[lane] for lane in of_job), tuple(weights[lane] for lane in number)).canonical
