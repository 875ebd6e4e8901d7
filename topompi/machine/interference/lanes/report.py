"""The figures of jobs on lanes as rows, by job, by lane and by ratio of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..characterisation import Character
from ..errors import InterferenceError
from .choice import Lanes
from .search import weightings
from .trials import Trials

__all__ = ["job_rows", "lane_rows", "reduction", "sweep_rows", "totals"]

Rows = list[dict[str, Any]]


def job_rows(names: Sequence[str], characters: Sequence[Character], trials: Trials, lanes: Lanes) -> Rows:
    """A row per job: its class, its lane, and its seconds alone, beside the others on one lane, and on the lanes.

    :param names: name of each job.
    :param characters: loads of each job.
    :param trials: simulations of the jobs.
    :param lanes: the choice.
    """
    together = trials.run(Lanes.together(len(names))).seconds
    columns = zip(names, characters, lanes.of_job, trials.alone, together, trials.run(lanes).seconds, strict=True)
    return [
        {
            "job": name,
            "class": one.name or None,
            "usage": None if one.seconds is None else one.usage,
            "lane": lane,
            "alone": float(alone),
            "one_lane": float(shared),
            "lanes": float(apart),
        }
        for name, one, lane, alone, shared, apart in columns
    ]


def lane_rows(names: Sequence[str], trials: Trials, lanes: Lanes, buffer: int) -> Rows:
    """A row per lane: its jobs, weight and buffer, its bytes, and its waits for room.

    :param names: name of each job.
    :param trials: simulations of the jobs.
    :param lanes: the choice.
    :param buffer: bytes of the buffer of each port, for all lanes together.
    """
    shared = trials.run(lanes)
    return [
        {
            "lane": lane,
            "jobs": [names[job] for job in lanes.jobs(lane)],
            "weight": weight,
            "high": lane in lanes.high,
            "buffer": buffer // lanes.configured,
            "bytes": float(shared.nbytes[lane]),
            "waits": float(shared.waits[lane]),
            "blocked": float(shared.blocked[lane]),
        }
        for lane, weight in enumerate(lanes.weights)
    ]


def totals(trials: Trials, lanes: Lanes) -> dict[str, float | None]:
    """T_total on one lane and on the lanes, their standard deviations over draws, and the reduction.

    :param trials: simulations of the jobs.
    :param lanes: the choice.
    """
    together = Lanes.together(len(lanes.of_job))
    found: dict[str, float | None] = {"one_lane": trials.total(together), "lanes": trials.total(lanes)}
    if len(trials.delays) > 1:
        found |= {
            f"{name}_deviation": trials.deviation(one) for name, one in (("one_lane", together), ("lanes", lanes))
        }
    return {**found, "reduction": reduction(trials, lanes)}


def reduction(trials: Trials, lanes: Lanes) -> float | None:
    """The part of T_total on one lane that the lanes save; None if jobs lose nothing on one lane.

    :param trials: simulations of the jobs.
    :param lanes: the choice.
    """
    together = trials.total(Lanes.together(len(lanes.of_job)))
    return 1 - trials.total(lanes) / together if together > 0 else None


def sweep_rows(
    trials: Trials, lanes: Lanes, values: Sequence[int], limit: int, told: Callable[[int, int], None]
) -> Rows:
    """A row per ratio of weights of the same lanes, the least T_total first.

    :param trials: simulations of the jobs.
    :param lanes: lane of each job, and lanes of high priority.
    :param values: weights that a lane may have.
    :param limit: largest number of ratios.
    :param told: function that is called with the number of ratios done and of all.
    :raises InterferenceError: if there are more ratios.
    """
    count = len(lanes.weights)
    if len(set(values)) ** count > 50 * limit or len(ratios := weightings(count, values)) > limit:
        raise InterferenceError(
            f"sweep: expecting at most {limit} ratios of {count} weights, got more; see --set tries="
        )
    rows: Rows = []
    for weights in ratios:
        one = Lanes(lanes.of_job, weights, lanes.high)
        row: dict[str, object] = {"weights": list(weights), "total": trials.total(one)}
        rows.append({**row, "reduction": reduction(trials, one), "contention": trials.contention(one).tolist()})
        told(len(rows), len(ratios))
    return sorted(rows, key=lambda row: float(row["total"]))
