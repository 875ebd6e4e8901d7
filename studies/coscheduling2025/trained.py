"""Classifiers, rules and our model on the pairs of NAS and SPEC: rows to learn from, and rows to answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topompi.machine.colocation.prediction.cells import predict
from topompi.machine.colocation.prediction.classifiers import MODELS, Classifier, search
from topompi.machine.colocation.prediction.features import FeatureRows, joined, pairs_of
from topompi.machine.colocation.profiles.system import Tag
from topompi.machine.colocation.rules.kinds import Kind
from topompi.machine.colocation.rules.labels import Labels, labels
from topompi.machine.colocation.speedups.matrix import Speedups

from .published import NAS, SPEC, Predicted
from .rules import AXES, measured
from .scoring import Score, held_out, score, unseen

__all__ = [
    "OURS", "RULES", "Run", "classes_of_rules", "family", "from_suite", "implied_axes", "ours", "random_split", "rows",
    "unseen_programs", "with_two_runs",
]  # fmt: skip

OURS, RULES = "ours", "rules"  # names of the model of speed-ups and of the empirical rules, beside those of MODELS
LIGHTEST = 0.8  # memory axis of the memory-bound program with the least bandwidth; AXES has 0.75 for irregular ones
Codes = NDArray[np.int8]
Mask = NDArray[np.bool_]


class Run(NamedTuple):
    """A model's answers on a test part.

    :ivar predicted: predicted classes, shape (m,).
    :ivar score: their score.
    :ivar classifier: the fitted classifier; None for the rules and for our model.
    :ivar seconds: time in which the classifier answered for all rows; NaN for the rules and for our model.
    """

    predicted: Codes
    score: Score
    classifier: Classifier | None = None
    seconds: float = np.nan


def family(program: str) -> str:
    """Return the benchmark of which a program is one size: ``cg`` of ``cg.D.64``."""
    return program.partition(".")[0]


@cache
def _suites() -> tuple[tuple[Predicted, Speedups], ...]:
    return tuple((one, measured(name)) for name, one in (("NAS", NAS), ("SPEC", SPEC)))


def _ordered(published: Predicted) -> list[Labels]:
    """Return the characters with their ranks by bandwidth on the scale from 0 to 1."""
    most = max(one.memory for one in published.characters)
    return [replace(one, memory=one.memory / most) for one in published.characters]


def implied_axes(published: Predicted) -> list[Tag]:
    """Return tags with the axes that kinds and the order by bandwidth imply. Hits are unknown, and 0 for all.

    :param published: programs and their kinds.
    """
    tags = []
    for one in _ordered(published):
        flops, memory, mpi = AXES[one.kind]
        if one.kind is Kind.M:
            memory = LIGHTEST + (1 - LIGHTEST) * one.memory
        tags.append(Tag(one.program, flops, memory, mpi, hits=0.0, misses=float(one.kind is Kind.M_IRR)))
    return tags


@cache
def rows(features: str) -> FeatureRows:
    """Return the 169 rows of NAS, then the 49 of SPEC.

    :param features: name of a set of features.
    """
    one, other = (
        pairs_of(speedups, features, implied_axes(published), _ordered(published)) for published, speedups in _suites()
    )
    return joined(one, other)


@cache
def classes_of_rules() -> Codes:
    """Return the classes that the empirical rules give, in the order of ``rows``."""
    return np.concatenate([labels(published.characters).ravel() for published, _ in _suites()])


def ours(known: Mask) -> Codes:
    """Return the classes of all rows that our model of speed-ups predicts from some.

    :param known: mask of the rows that it learns from, shape (218,).
    """
    found, start = list[Codes](), 0
    for _, speedups in _suites():
        mask = known[start : start + speedups.ratio.size].reshape(speedups.ratio.shape)
        made = predict(replace(speedups, ratio=np.where(mask, speedups.ratio, np.nan)))
        found.append(made.label.ravel().astype(np.int8))
        start += mask.size
    return np.concatenate(found)


@cache
def random_split(features: str, seed: int) -> dict[str, Run]:
    """Return what each model answers on 30 % of the rows, drawn at random, having learnt from the others.

    :param features: name of a set of features.
    :param seed: seed of the split and of the models.
    """
    pairs = rows(features)
    test = unseen(len(pairs), seed)
    true = pairs.label[test]
    found = {
        name: Run(label[test], score(label[test], true))
        for name, label in ((RULES, classes_of_rules()), (OURS, ours(~test)))
    }
    for model in MODELS:
        made, start = search(model, pairs.only(~test), seed=seed), perf_counter()
        label = made.predict(pairs.x[test])
        found[model] = Run(label, score(label, true), made, perf_counter() - start)
    return found


@cache
def unseen_programs(model: str, features: str) -> Score:
    """Return the score on pairs with a program of which no size was learnt from, over all benchmarks in turn.

    :param model: name of a classifier, or ``RULES``.
    :param features: name of a set of features.
    """
    pairs, answers = rows(features), list[tuple[Codes, Codes]]()
    for _, train, test in held_out(pairs, family):
        if model == RULES:
            answers.append((classes_of_rules()[test], pairs.label[test]))
        else:
            answers.append((search(model, pairs.only(train)).predict(pairs.x[test]), pairs.label[test]))
    return score(*(np.concatenate(one) for one in zip(*answers, strict=True)))


def from_suite(model: str, features: str, learnt: str) -> Score:
    """Return the score on one suite of what was learnt from the other.

    :param model: name of a classifier, or ``RULES``.
    :param features: name of a set of features.
    :param learnt: ``NAS`` or ``SPEC``, from which it learns.
    """
    pairs = rows(features)
    nas = np.arange(len(pairs)) < len(NAS.programs) ** 2
    train = nas if learnt == "NAS" else ~nas
    if model == RULES:
        return score(classes_of_rules()[~train], pairs.label[~train])
    return score(search(model, pairs.only(train)).predict(pairs.x[~train]), pairs.label[~train])


def with_two_runs(seed: int) -> Score:
    """Return our model's score on pairs with a benchmark of which each size ran beside two others, drawn at random.

    :param seed: seed of the draws.
    """
    pairs, rng, answers = rows("kinds"), np.random.default_rng(seed), list[tuple[Codes, Codes]]()
    at = {(one, other): row for row, (one, other) in enumerate(zip(pairs.program, pairs.beside, strict=True))}
    for name, train, test in held_out(pairs, family):
        known = train.copy()
        for one, other in _runs(pairs, name, rng):
            known[[at[one, other], at[other, one]]] = True
        left = test & ~known
        answers.append((ours(known)[left], pairs.label[left]))
    return score(*(np.concatenate(one) for one in zip(*answers, strict=True)))


def _runs(pairs: FeatureRows, name: str, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Yield two runs for each size of a benchmark, beside programs of its suite that are not of this benchmark."""
    for one in dict.fromkeys(pairs.program):
        if family(one) == name:
            others = [other for other in pairs.beside[pairs.program == one] if family(other) != name]
            yield from ((one, str(other)) for other in rng.choice(others, 2, replace=False))
