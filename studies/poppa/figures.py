"""Results of measured pairs as JSON, and the tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from studies.tables import Table
from topompi.machine.colocation import estimate

from .dilation import asleep, dilated
from .overhead import LENGTHS, PAUSE
from .pairs import Result

__all__ = ["TABLES", "of_evicted", "of_pair", "of_recovery"]

METHODS = ("balanced", "unfiltered", "filtered", "local")
GOAL = 0.03
Results = dict[str, Any]


def of_pair(results: Sequence[Result]) -> Results:
    """Return the figures of both jobs of a pair."""
    return {"jobs": [_job(one) for one in results]}


def _job(one: Result) -> Results:
    sel = one.groups.rates[:, one.groups.alone] / np.median(one.alone)
    return {
        "job": one.job,
        "beside": one.beside,
        "ratios": one.ratios.tolist(),
        "drift": float(np.ptp(one.alone) / np.median(one.alone)),
        "daemon": one.daemon,
        "estimates": {name: asdict(estimate(one.groups, name)) for name in METHODS},
        "windows": np.median(sel, axis=1).tolist(),
        "rates": [[[round(value, 4) for value in row] for row in region] for region in sel.tolist()],
    }


def of_recovery(one: Result) -> Results:
    """Return the rate alone by window since the neighbour's stop, and the rate before, over the rate alone for long."""
    return _job(one)


def of_evicted(results: Sequence[Result]) -> Results:
    """Return the measured performance of both jobs, and estimates with and without long shutters."""
    jobs = []
    for one in results:
        groups = one.groups.only(one.groups.alone)
        logs = {"with": groups, "without": replace(groups, warm=None)}
        made = {words: asdict(estimate(log)) for words, log in logs.items()}
        jobs.append({"job": one.job, "beside": one.beside, "ratios": one.ratios.tolist(), "estimates": made})
    return {"jobs": jobs}


def _middle(values: Sequence[float], of: Callable[..., Any]) -> tuple[float, float, float]:
    """Return the mean or median of values with its interval of 95 % by a bootstrap.

    :param values: the values.
    :param of: ``np.mean`` or ``np.median``.
    """
    array = np.array(values)
    drawn = of(np.random.default_rng(0).choice(array, (2000, len(array))), axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(of(array)), float(low), float(high)


def _span(value: float, low: float, high: float) -> str:
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _pairs(results: Results) -> Iterator[Table]:
    rows, held, total = list[list[str]](), dict.fromkeys(METHODS, 0), 0
    for name, found in results.items():
        if not name.startswith("pair "):
            continue
        worst = dict.fromkeys(METHODS, 0.0)
        for one in found["jobs"]:
            truth, ours = _middle(one["ratios"], np.mean), one["estimates"][METHODS[0]]
            for method in METHODS:
                error = abs(one["estimates"][method]["performance"] - truth[0])
                worst[method] = max(worst[method], error)
            others = [f"{one['estimates'][method]['performance']:.3f}" for method in METHODS[1:]]
            rows.append([
                f"{one['job']} beside {one['beside']}",
                _span(*truth),
                _span(ours["performance"], ours["low"], ours["high"]),
                f"{100 * (ours['performance'] - truth[0]):+.1f}",
                *others,
                f"{ours['total']}",
                f"{one['drift']:.1%}",
                f"{one['daemon']:.1%}",
            ])  # fmt: skip
        held = {method: held[method] + (worst[method] <= GOAL) for method in METHODS}
        total += 1
    within = [f"**{held[method]} of {total}**" for method in METHODS]
    rows.append([f"**pairs with both jobs within {100 * GOAL:.0f} points**", "", within[0], "", *within[1:], *[""] * 3])
    head = (
        "job", "measured performance", "estimate `balanced`", "error, points", "`unfiltered`", "`filtered`", "`local`",
        "shutters", "drift alone", "daemon",
    )  # fmt: skip
    yield "poppa pairs", head, rows


def _recovery(results: Results) -> Iterator[Table]:
    found = {name.split()[1]: one for name, one in results.items() if name.startswith("recovery ")}
    rows = []
    for name, one in found.items():
        before, during, _ = (np.array(region) for region in one["windows"])
        at = [0, 1, 3, 7, 15, len(during) - 1]
        truth = _middle(one["ratios"], np.mean)
        rows.append([name, _span(*truth), f"{before.mean():.3f}", *(f"{during[k]:.3f}" for k in at if k < len(during))])
        rows.append(["", "", "ratio", *(f"{before.mean() / during[k]:.3f}" for k in at if k < len(during))])
    ends = ("3.2", "6.4", "13", "26", "51", "102")
    yield "poppa recovery", ("beside triad", "measured performance", "before", *(f"to {end} ms" for end in ends)), rows


def _evicted(results: Results) -> Iterator[Table]:
    rows = []
    names = ("with", "without")
    for one in (job for name, found in results.items() if name.startswith("evict ") for job in found["jobs"]):
        made = [one["estimates"][name] for name in names]
        spans = [_span(each["performance"], each["low"], each["high"]) for each in made]
        rows.append([f"{one['job']} beside {one['beside']}", _span(*_middle(one["ratios"], np.mean)), *spans])
    yield "poppa evict", ("job", "measured performance", *(f"{name} long shutters" for name in names)), rows


def _overhead(results: Results) -> Iterator[Table]:
    rows = []
    for length in LENGTHS:
        found = results.get(f"overhead {length:g}")
        if found is None:
            continue
        expected, dilation = asleep(length / 1e3, PAUSE / 1e3), dilated(1.0, length / 1e3, PAUSE / 1e3)
        value, low, high = _middle(np.array(found["ratios"]).mean(axis=1).tolist(), np.median)
        rows.append([
            f"{length:g}",
            f"{expected:.2%}",
            f"{found['stopped']:.2%}",
            f"{dilation:.4f}",
            f"{value:.4f} ({low:.4f} to {high:.4f})",
            f"{found['daemon']:.2%}",
        ])  # fmt: skip
    head = ("S, ms", "stopped, (9)", "stopped, log", "dilation, (10)", "dilation, measured", "daemon, of a core")
    yield "poppa overhead", head, rows


TABLES: dict[str, Callable[[Results], Iterator[Table]]] = {
    "pairs": _pairs,
    "recovery": _recovery,
    "evict": _evicted,
    "overhead": _overhead,
}
