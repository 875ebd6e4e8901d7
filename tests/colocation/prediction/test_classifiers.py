"""Classifiers of pairs: rows of features, the search, refitting from a file, and their absence."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.support import refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.prediction.classifiers import MODELS, search
from topompi.machine.colocation.prediction.features import PROGRAMS, SETS, FeatureRows, joined, pairs_of
from topompi.machine.colocation.profiles.system import Tag
from topompi.machine.colocation.rules.kinds import Kind
from topompi.machine.colocation.rules.labels import Labels
from topompi.machine.colocation.speedups.matrix import Speedups

NAMES = tuple("abcdef")


def _programs() -> tuple[list[Tag], list[Labels]]:
    values = np.random.default_rng(0).random((len(NAMES), 5)).round(3)
    tags = [Tag(name, *row) for name, row in zip(NAMES, values.tolist(), strict=True)]
    return tags, [Labels(name, kind, 0.5) for name, kind in zip(NAMES, Kind, strict=False)]


def _pairs(features: str = "axes") -> FeatureRows:
    """Pairs whose class follows from the memory axes of program and neighbour."""
    tags, characters = _programs()
    memory = np.array([tag.memory for tag in tags])
    ratio = np.exp(0.3 * (memory[:, None] - memory))
    return pairs_of(Speedups.of(NAMES, ratio), features, tags, characters)


@pytest.fixture
def sklearn():
    return pytest.importorskip("sklearn")


def test_a_row_has_the_features_of_the_program_before_those_of_its_neighbour():
    pairs, (tags, _) = _pairs(), _programs()
    row = NAMES.index("b") * len(NAMES) + NAMES.index("e")
    assert (pairs.program[row], pairs.beside[row]) == ("b", "e")
    assert pairs.x[row].tolist() == [*tags[1].axes, *tags[4].axes]
    assert {of: _pairs(of).x.shape[1] for of in SETS} == {
        "axes": 10, "no-hits": 8, "no-misses": 8, "kinds": 16, PROGRAMS: 2,
    }  # fmt: skip


def test_an_unknown_axis_is_refused_if_the_set_needs_it():
    tags, characters = _programs()
    tags[2] = Tag("c", 0.1, 0.2, 0.3, misses=0.4)
    speedups = Speedups.of(NAMES, np.ones((6, 6)))
    assert pairs_of(speedups, "no-hits", tags, characters).x.shape == (36, 8)
    assert "c: hits: expecting" in refusal(pairs_of, speedups, "axes", tags, characters, error=ColocationError)
    assert "axes, no-hits" in refusal(pairs_of, speedups, "luck", tags, characters, error=ColocationError)
    assert "axes twice, got kinds" in refusal(joined, _pairs(), _pairs("kinds"), error=ColocationError)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("features", ["axes", PROGRAMS])
def test_each_model_learns(sklearn, model: str, features: str):
    pairs = _pairs(features)
    made = search(model, pairs, seed=3)
    assert set(made.parameters) == set(MODELS[model].grid)
    assert 0 <= made.accuracy <= 1
    most = np.bincount(pairs.label).max() / len(pairs)
    assert (made.predict(pairs.x) == pairs.label).mean() >= most


def test_a_search_sees_nothing_of_the_rows_that_it_is_not_given(sklearn):
    pairs = _pairs()
    train = np.arange(len(pairs)) % 3 > 0
    other = replace(pairs, x=np.where(train[:, None], pairs.x, 9.0), label=np.where(train, pairs.label, np.int8(0)))
    one, two = (search("forest", of.only(train), seed=1) for of in (pairs, other))
    assert one.predict(pairs.x).tolist() == two.predict(pairs.x).tolist()


def test_names_that_were_never_seen_are_answered(sklearn):
    pairs = _pairs(PROGRAMS)
    new = np.array([["new", "a"], ["new", "other"]], dtype=object)
    assert search("logistic", pairs).predict(new).shape == (2,)


def test_wrong_models_and_rows_are_refused(sklearn):
    pairs = _pairs()
    for given, message in (
        (("luck", pairs), "model: expecting one of mlp, gbm"),
        (("svm", pairs.only(np.arange(36) < 14)), "at least 15 measured pairs"),
        (("svm", pairs.only(pairs.label == 1)), "of two classes or more"),
    ):
        assert message in refusal(search, *given, error=ColocationError)
    made = search("bayes", pairs)
    assert "rows of 10, got shape (36, 4)" in refusal(made.predict, pairs.x[:, :4], error=ColocationError)


def test_without_scikit_learn_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    for name in [one for one in sys.modules if one.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    message = refusal(search, "forest", _pairs(), error=ColocationError)
    assert message == "classifiers: expecting scikit-learn, got none; pip install 'topompi[predict]' brings it"
