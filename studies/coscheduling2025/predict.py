"""Prediction of classes, section 4.4: seven classifiers, pairs of models, and our model of speed-ups.

``--quick`` takes one seed, two models for the slow tables, and few steps of the curves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.tables import Table
from topompi.machine.colocation.prediction.classifiers import MODELS
from topompi.machine.colocation.prediction.features import SETS
from topompi.machine.colocation.speedups.bands import CLASSES

from .active import POLICIES, Step, curve
from .bounds import NEAR, left_out_rows, repeated_classes
from .matrices import marconi
from .prediction_pictures import draw_combinations, draw_curves
from .rules import measured
from .scoring import both_good, frontier, score, unseen
from .trained import OURS, RULES, from_suite, random_split, rows, unseen_programs, with_two_runs

__all__ = ["combined", "curves", "draw", "tables"]

SEEDS, DRAWS = range(5), range(6)  # of splits, and of the order of measurements
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
BATCH = {"NAS": 6, "SPEC": 2, "Marconi": 2}  # runs between two predictions
PUBLISHED = (("forest", "logistic"), ("logistic", "gbm"), ("svm", "gbm"), ("forest", "gbm"))  # on or near the frontier
NAMES = (*MODELS, RULES, OURS)
FIGURES = ("accuracy", "precision", "recall")
LEAST_SURE = next(iter(POLICIES))
Reals = NDArray[np.float64]


def _spread(values: Sequence[float], digits: str = ".2f") -> str:
    """Return the median with the least and the largest value."""
    found = np.array(values)
    words = f"{np.nanmedian(found):{digits}}"
    least, most = (f"{one:{digits}}" for one in (np.nanmin(found), np.nanmax(found)))
    return words if least == most else f"{words} ({least} to {most})"


def _source(seeds: Sequence[int]) -> Iterator[list[str]]:
    """Yield a row per model: the source's figures, by the five axes."""
    for name in NAMES:
        runs = [random_split("axes", seed)[name] for seed in seeds]
        cells = [_spread([getattr(run.score, of) for run in runs]) for of in FIGURES]
        made = [run.classifier for run in runs if run.classifier is not None]
        if not made:
            yield [name, "-", *cells, "-", "-"]
            continue
        accuracy = _spread([one.accuracy for one in made])
        seconds = [1000 * np.median(times) for times in ([one.seconds for one in made], [run.seconds for run in runs])]
        yield [name, accuracy, *cells, *(f"{one:.1f}" for one in seconds)]


def _sets(seeds: Sequence[int], sets: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row per classifier: accuracy by set of features."""
    for name in MODELS:
        yield [name, *(_spread([random_split(of, seed)[name].score.accuracy for seed in seeds]) for of in sets)]


def _unseen(models: Sequence[str], seeds: Sequence[int]) -> Iterator[list[str]]:
    """Yield a row per model: accuracy on random rows, on unseen programs and on the other suite."""
    for name in (*models, RULES):
        held = unseen_programs(name, "kinds")
        suites = [f"{from_suite(name, 'kinds', one).accuracy:.2f}" for one in ("NAS", "SPEC")]
        yield [name, _random(name, seeds), f"{held.accuracy:.2f}", f"{held.precision:.2f}", *suites]
    found = [with_two_runs(seed) for seed in seeds]
    two = [_spread([getattr(one, of) for one in found]) for of in ("accuracy", "precision")]
    yield ["ours, two runs of each new program", _random(OURS, seeds), *two, "-", "-"]


def _random(name: str, seeds: Sequence[int]) -> str:
    return _spread([random_split("kinds", seed)[name].score.accuracy for seed in seeds])


def _confusion(models: Sequence[str]) -> Iterator[list[object]]:
    """Yield rows of classes on unseen programs: measured, and predicted good, stationary, bad."""
    for name in models:
        counts = unseen_programs(name, "kinds").confusion
        for at in (2, 1, 0):
            yield [name, CLASSES[at], *counts[at, ::-1].tolist()]


@cache
def combined(seeds: tuple[int, ...], features: str) -> dict[tuple[str, ...], Reals]:
    """Return accuracy, precision and recall of each model and of each pair of models, means over seeds, shape (3,).

    :param seeds: seeds of the splits.
    :param features: name of a set of features.
    """
    members = [(name,) for name in NAMES] + list(combinations(NAMES, 2))
    found: dict[tuple[str, ...], Reals] = {}
    for one in members:
        figures = []
        for seed in seeds:
            runs = random_split(features, seed)
            both = both_good(runs[one[0]].predicted, runs[one[-1]].predicted)
            made = score(both, rows(features).label[unseen(len(rows(features)), seed)])
            figures.append([getattr(made, of) for of in FIGURES])
        found[one] = np.mean(figures, axis=0)
    return found


def _pairs(seeds: tuple[int, ...]) -> Iterator[list[str]]:
    """Yield a row per pair or model that nothing beats, then the source's pairs, then the rules with classifiers."""
    points = combined(seeds, "kinds")
    best = frontier([one[:2] for one in points.values()])
    on = [name for name, is_best in zip(points, best, strict=True) if is_best]
    on.sort(key=lambda name: -points[name][0])
    further = [*PUBLISHED, *((one, RULES) for one in MODELS)]
    for name in dict.fromkeys([*on, *(tuple(sorted(one, key=NAMES.index)) for one in further)]):
        larger = max(points[one,][2] for one in name)
        lost = f"{1 - points[name][2] / larger:.1%}" if len(name) > 1 else "-"
        yield [" and ".join(name), *(f"{one:.3f}" for one in points[name]), lost, "yes" if name in on else "no"]


@cache
def curves(draws: tuple[int, ...], factor: int) -> dict[str, dict[str, list[list[Step]]]]:
    """Return the curves of each matrix and policy, one per draw.

    :param draws: seeds of the first cells and of random choices.
    :param factor: number by which there are fewer predictions.
    """
    matrices = {"NAS": measured("NAS"), "SPEC": measured("SPEC"), "Marconi": marconi()}
    return {
        name: {
            policy: [curve(one, choose, seed=seed, batch=factor * BATCH[name]) for seed in draws]
            for policy, choose in POLICIES.items()
        }
        for name, one in matrices.items()
    }


def _active(found: dict[str, dict[str, list[list[Step]]]]) -> Iterator[list[str]]:
    """Yield a row per matrix and share of measured cells: accuracy on the others by policy, and as expected."""
    for name, policies in found.items():
        total = {"NAS": 169, "SPEC": 49, "Marconi": 64}[name]
        for share in SHARES:
            near = {
                policy: [min(steps, key=lambda one: abs(one.cells - share * total)) for steps in draws]
                for policy, draws in policies.items()
            }
            cells = f"{share:.0%} ({np.median([one.cells for one in near[LEAST_SURE]]):.0f})"
            right = [_spread([one.accuracy for one in near[policy]]) for policy in POLICIES]
            yield [name, cells, *right, _spread([one.expected for one in near[LEAST_SURE]])]


def tables(quick: bool) -> Iterator[Table]:
    """Yield the tables.

    :param quick: whether there is one seed, and few models and predictions.
    """
    seeds, draws, factor = ((0,), (0,), 5) if quick else (tuple(SEEDS), tuple(DRAWS), 1)
    figures = "accuracy", "precision of good", "recall of good"
    heads: tuple[str, ...] = "model", "cross-validation", *figures, "fit, ms", "answer, ms"
    yield "coscheduling classifiers", heads, _source(seeds)
    sets = ("axes", "kinds") if quick else tuple(one for one in SETS if one != "no-hits")  # which are 0 for all
    yield "coscheduling features", ("model", *sets), _sets(seeds, sets)
    heads = "model", "random rows", "unseen programs", "precision of good", "SPEC from NAS", "NAS from SPEC"
    yield "coscheduling unseen", heads, _unseen(("logistic", "bayes") if quick else tuple(MODELS), seeds)
    heads = "model", "measured", "predicted good", "stationary", "bad"
    yield "coscheduling unseen confusion", heads, _confusion(("logistic",) if quick else ("gbm", RULES))
    heads = "models", *figures, "recall lost", "frontier"
    yield "coscheduling combinations", heads, _pairs(seeds)
    heads = "cells", "number", "classes right", "wrong", f"wrong within {NEAR:.0%} of a border"
    yield "coscheduling left out", heads, left_out_rows(with_all=not quick)
    heads = "programs", "repetitions", "same class", "all cells", "same class, expected"
    yield "coscheduling repeated", heads, repeated_classes()
    heads = "programs", "cells measured", *POLICIES, f"{LEAST_SURE}, as expected"
    yield "coscheduling active", heads, _active(curves(draws, factor))


def draw(folder: Path) -> None:
    """Draw the two pictures of the page.

    :param folder: folder for them.
    """
    draw_combinations(combined(tuple(SEEDS), "kinds"), folder / "prediction-pairs.svg")
    draw_curves(curves(tuple(DRAWS), 1), folder / "prediction-curves.svg")
