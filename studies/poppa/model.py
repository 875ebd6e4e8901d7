"""The source's table beside simulated jobs with phases: ``python -m studies poppa model [-o docs/lab]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.tables import Table, show_many
from topompi.machine.colocation.estimates.estimators import Estimate, estimate
from topompi.machine.colocation.estimates.nodes import estimate_nodes
from topompi.machine.colocation.estimates.records import groups_of
from topompi.machine.colocation.prices.rules import Run, price

from .applications import ESTIMATORS, IDLE, SHUTTER, Cell, applications, cells_of
from .coupled import groups_on_nodes
from .dilation import asleep, dilated
from .jobmodel import Phase, Shutter, simulate
from .pictures import draw_errors, draw_prices, draw_windows

__all__ = ["PAGE", "main", "pairs", "tables"]

PAGE = "prices-model.md"
WINDOWS = (200, 400, 800, 1600, 3200, 6400, 12800, 25600)  # microseconds of a region (S)
FIT = tuple(200 * 2**power for power in range(12))
SLEEPS = {  # S in microseconds -> percent of the time asleep at n = 2 and P = 200 ms, as the source's formula has them
    200: 0.05, 400: 0.10, 800: 0.20, 1600: 0.39, 3200: 0.763, 6400: 1.46, 12800: 2.69, 25600: 4.62, 51200: 7.24,
    102400: 10.1, 204800: 12.6, 409600: 14.3,
}  # fmt: skip


def pairs(nodes: int = 512) -> list[Cell]:
    """Simulate the 78 pairs of the twelve applications, and return 144 cells by application and neighbour."""
    found = {}
    for one, other in combinations_with_replacement(applications(), 2):
        first, second = cells_of([one, other], nodes=nodes)
        found[one.name, other.name], found[other.name, one.name] = first, second
    names = [one.name for one in applications()]
    return [found[name, beside] for name in names for beside in names]


def mean_error(cells: Sequence[Cell], estimator: str) -> float:
    """Mean absolute error of the predicted run time alone."""
    return float(np.mean([abs(cell.error(estimator)) for cell in cells]))


def _percent(value: float, sign: bool = False, digits: int = 1) -> str:
    return f"{100 * value:{'+' if sign else ''}.{digits}f} %"


def _summary(cells: Sequence[Cell]) -> Iterator[Sequence[str]]:
    """Yield the rows of the source's table beside ours; prices are shares of the price alone."""
    truth = np.array([cell.truth for cell in cells])
    usual, ours, literal = 1 / truth, _of(cells, "balanced"), _of(cells, "algorithm 4")
    online, crude = ours**2 / truth, literal**2 / truth
    yield (
        "mean error of the run time",
        "4.0 %",
        *(_percent(mean_error(cells, one)) for one in ("balanced", "algorithm 4")),
    )
    largest = (max(abs(cell.error(one)) for cell in cells) for one in ("balanced", "algorithm 4"))
    yield "largest error of a pair", "not stated", *map(_percent, largest)
    yield "mean price as usual", "+14 %", *[_percent(usual.mean() - 1, sign=True)] * 2
    yield "worst price as usual", "+62 %", *[_percent(usual.max() - 1, sign=True)] * 2
    yield "mean discount", "9.5 %", _percent(1 - ours.mean()), _percent(1 - literal.mean())
    yield (
        "mean discount without the true run time",
        "not stated",
        _percent(1 - online.mean()),
        _percent(1 - crude.mean()),
    )
    yield "mean discount of the oracle", "11.5 %", *[_percent(1 - truth.mean())] * 2
    yield "largest discount", "39.6 %", _percent(1 - ours.min()), _percent(1 - literal.min())
    yield "largest discount of the oracle", "38.3 %", *[_percent(1 - truth.min())] * 2
    yield "highest price", "99.1 %", _percent(ours.max()), _percent(literal.max())
    yield "highest price of the oracle", "99.8 %", *[_percent(truth.max())] * 2
    yield "overhead at S = 3.2 ms, P = 200 ms", "below 1 %", *[_percent(_stopped(3200), digits=2)] * 2


def _of(cells: Sequence[Cell], estimator: str) -> NDArray[np.float64]:
    """Return the estimates, of which none above 1 is charged."""
    return np.array([min(1.0, cell.found[estimator]) for cell in cells])


def _by_application(cells: Sequence[Cell]) -> Iterator[Sequence[str]]:
    """Yield for each application its errors as the measured one and as the neighbour: mean absolute, and mean."""
    for one in applications():
        own = [cell for cell in cells if cell.name == one.name]
        beside = [cell for cell in cells if cell.beside == (one.name,)]
        row = [one.name, _percent(1 - float(np.mean([cell.truth for cell in own])))]
        for estimator in ESTIMATORS:
            row += [f"{100 * mean_error(own, estimator):.1f} ({_bias(own, estimator):+.1f})"]
            row += [f"{100 * mean_error(beside, estimator):.1f} ({_bias(beside, estimator):+.1f})"]
        yield row


def _bias(cells: Sequence[Cell], estimator: str) -> float:
    return 100 * float(np.mean([cell.error(estimator) for cell in cells]))


def _crowds(nodes: int = 256, draws: int = 3) -> dict[int, list[Cell]]:
    """Simulate draws of 2 to 8 of the applications on one node."""
    rng, every = np.random.default_rng(7), applications()
    return {
        jobs: [
            cell
            for draw in range(draws)
            for cell in cells_of(
                [every[at] for at in rng.choice(12, jobs, replace=False)], nodes=nodes, rounds=4, seed=draw
            )
        ]
        for jobs in range(2, 9)
    }


def _stopped(microseconds: int, jobs: int = 2) -> float:
    """Return the share of time that a job stands still in the model, beside NULL, at P = 200 ms."""
    shutter = Shutter(microseconds / 1e6, 1, 0.2, jitter=0)
    return float(simulate([IDLE.phases] * jobs, 2, shutter, nodes=1).stopped[0])


def _sweep(nodes: int = 128) -> dict[int, dict[str, float]]:
    """Return the mean error of each estimator by S, for the applications beside the one that slows most."""
    every = applications()
    loud = max(every, key=lambda one: sum(phase.seconds * phase.aggressiveness for phase in one.phases) / sum(
        phase.seconds for phase in one.phases
    ))  # fmt: skip
    found = {}
    for microseconds in WINDOWS:
        shutter = Shutter(microseconds / 1e6, 16, 0.05, poisson=True)
        cells = [cells_of([one, loud], shutter, nodes=nodes, rounds=4)[0] for one in every[::2]]
        found[microseconds] = {name: mean_error(cells, name) for name in ESTIMATORS}
    return found


def _undisturbed(noise: float) -> dict[str, float]:
    """Return the mean error of the applications beside NULL, at a noise."""
    cells = [cells_of([one, IDLE], noise=noise)[0] for one in applications()]
    return {name: float(np.mean([cell.error(name) for cell in cells])) for name in ESTIMATORS}


def _halved() -> tuple[Estimate, float]:
    """Return the estimate of a job that its partner slows to half, and its price as a share of that alone."""
    found = simulate([[Phase(1.0, 3.0, 0.5)], [Phase(1.0, aggressiveness=1.0)]], 20, SHUTTER, nodes=4)
    half = estimate(groups_of(found.records, "0"))
    return half, price(Run("half", 200.0, 1), 1.0, half).amount / 100


def tables(cells: Sequence[Cell], sweep: dict[int, dict[str, float]]) -> Iterator[Table]:
    """Yield the study's tables.

    :param cells: cells of all pairs.
    :param sweep: mean errors by S and estimator.
    """
    yield "poppa summary", ("", "source", "`balanced`", "algorithm 4"), _summary(cells)
    crowds, quiet = _crowds(), {noise: _undisturbed(noise) for noise in (0.005, 0.02)}
    head = ("the model's numbers", "demand", "here", "")
    yield "poppa numbers", head, _numbers(cells, crowds, quiet)
    own = [f"{name}, {place}" for name in ESTIMATORS for place in ("measured", "neighbour")]
    yield "poppa applications", ("application", "mean loss", *own), _by_application(cells)
    rows = (
        [str(jobs), *(_percent(mean_error(of, one)) for one in ESTIMATORS), *_loss(of)] for jobs, of in crowds.items()
    )
    yield (
        "poppa crowds",
        ("jobs", *ESTIMATORS, "mean loss", "asleep, model", "equation 9"),
        (
            [
                *row,
                _percent(_stopped(3200, int(row[0])), digits=2),
                _percent(asleep(0.0032, 0.2, int(row[0])), digits=2),
            ]
            for row in rows
        ),
    )
    yield (
        "poppa windows",
        ("S, ms", *ESTIMATORS, "asleep at P = 200 ms"),
        (
            [f"{at / 1000:g}", *(_percent(of[name]) for name in ESTIMATORS), _percent(asleep(at / 1e6, 0.2), digits=2)]
            for at, of in sweep.items()
        ),
    )
    yield (
        "poppa bias",
        ("noise", *ESTIMATORS),
        (
            [_percent(noise), *(_percent(of[name], sign=True, digits=2) for name in ESTIMATORS)]
            for noise, of in quiet.items()
        ),
    )
    yield "poppa nodes", ("speeds of the nodes", "step, ms", "truth", "slowest", "least", "mean", "product"), _nodes()


def _nodes() -> Iterator[Sequence[str]]:
    """Yield what the shutters of a job's nodes find together, by speeds and steps."""
    for speeds in ((0.5, 1), (0.5, 0.7), (0.6, 0.6), (0.5, 0.7, 0.9, 1), (0.8, 0.8, 0.8, 1)):
        for step in (0.0001, 0.0005, 0.005, 0.5):
            nodes = groups_on_nodes(speeds, step)
            each = [estimate(one, "local").performance for one in nodes]
            found = estimate_nodes(nodes).performance, min(each), np.mean(each), np.prod(each)
            named = ", ".join(f"{one:g}" for one in speeds)
            yield named, f"{1000 * step:g}", f"{min(speeds):.2f}", *(f"{one:.2f}" for one in found)


def _loss(cells: Sequence[Cell]) -> tuple[str]:
    return (_percent(1 - float(np.mean([cell.truth for cell in cells]))),)


def _numbers(
    cells: Sequence[Cell], crowds: dict[int, list[Cell]], quiet: dict[float, dict[str, float]]
) -> Iterator[Sequence[str]]:
    """Yield each number that the model has to reach, and whether it does."""
    units = [_last_digit(value) for value in SLEEPS.values()]
    away = [
        abs(round(100 * asleep(at / 1e6, 0.2) / unit) - round(value / unit))
        for unit, (at, value) in zip(units, SLEEPS.items(), strict=True)
    ]
    told = f"{away.count(0)} of 12 equal, the rest by {max(away)} in the last digit"
    yield _row("equation 9 at the source's twelve S", "the digits", told, max(away) <= 1)
    fit = max(abs(1 / (1 - _stopped(at)) / dilated(1, at / 1e6, 0.2) - 1) for at in FIT)
    yield _row("equation 10, model beside NULL", "the model's run time", f"within {fit:.1e}", fit < 1e-6)
    mean = mean_error(cells, "balanced")
    yield _row("mean error, 144 pairs", "at most 2 %", _percent(mean, digits=2), mean <= 0.02)
    finest = mean_error([cell for cell in cells if ", 1 ms" in cell.name], "balanced")
    yield _row("mean error with phases of 1 ms", "at most 2 %", _percent(finest, digits=2), finest <= 0.02)
    many = max(mean_error(of, "balanced") for of in crowds.values())
    yield _row("mean error, 2 to 8 jobs, the worst", "at most 2 %", _percent(many, digits=2), many <= 0.02)
    bias = max((of["balanced"] for of in quiet.values()), key=abs)
    yield _row("bias without interference", "below 0.5 %", _percent(bias, sign=True, digits=2), abs(bias) < 0.005)
    half, share = _halved()
    told = f"{half.performance:.3f}, {half.degradation:.3f}, {share:.3f}"
    equal = bool(np.allclose((half.performance, half.degradation, share), 0.5, atol=5e-4))
    yield _row("a partner that halves the speed: performance, degradation, charge", "0.5, 0.5, 0.5", told, equal)
    gap = float(np.mean([cell.truth for cell in cells]) - _of(cells, "balanced").mean())
    yield _row("mean discount against the oracle's", "within 2 points", f"{100 * gap:+.2f} points", abs(gap) <= 0.02)


def _last_digit(value: float) -> float:
    return float(10.0 ** -len(f"{value:g}".partition(".")[2]))


def _row(name: str, demand: str, here: str, good: bool) -> Sequence[str]:
    return name, demand, here, "pass" if good else "**fail**"


def main(arguments: Sequence[str]) -> int:
    """Run the study: print its tables, and with ``-o`` put them into the page, and draw its pictures.

    :param arguments: ``-o DIR``, ``--quick`` for few simulations, which fill no page, and ``--only TABLE``.
    :returns: exit code; 2 if no table has the name of ``--only``.
    """
    cells, sweep = list[Cell](), dict[int, dict[str, float]]()

    def make(quick: bool) -> Iterator[Table]:
        cells.extend(pairs(16 if quick else 512))
        sweep.update(_sweep(8 if quick else 128))
        return tables(cells, sweep)

    def draw(figures: Path) -> None:
        draw_errors(cells, [one.name for one in applications()], figures / "prices-model-errors.svg")
        draw_windows(sweep, {at: 1 / (1 - _stopped(at)) for at in FIT}, figures / "prices-model-windows.svg")
        draw_prices(cells, [one.name for one in applications()], figures / "prices-model-prices.svg")

    return show_many("poppa model", PAGE, make, arguments, draw)
