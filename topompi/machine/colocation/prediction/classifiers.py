"""Classifiers of pairs by scikit-learn, which is imported at first use (extra ``predict``).

The seven models and the search of their parameters are those of A. Tsoukleidis-Karydakis, diploma thesis, NTUA 2025,
section 4.4. It prints no parameters: the grids here are ours, and small.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from .features import PROGRAMS, FeatureRows

__all__ = ["LEAST_PAIRS", "MODELS", "Classifier", "search"]

LEAST_PAIRS = 15  # a class has five of them if there are three classes, one for each fold
FOLDS = 5


class ClassifierKind(NamedTuple):
    """A kind of classifier.

    :ivar words: its name in words.
    :ivar place: module and class in scikit-learn.
    :ivar fixed: parameters that are not searched.
    :ivar grid: parameters that are, with their values.
    :ivar scaled: whether features are scaled to mean 0 and variance 1, because distances or gradients depend on it.
    :ivar seeded: whether it draws.
    """

    words: str
    place: str
    fixed: dict[str, object]
    grid: dict[str, tuple[object, ...]]
    scaled: bool = False
    seeded: bool = False


MODELS = {
    "mlp": ClassifierKind(
        "multi-layer perceptron", "neural_network.MLPClassifier", {"solver": "lbfgs", "max_iter": 150},
        {"hidden_layer_sizes": (8, 16), "alpha": (0.01, 1.0)}, scaled=True, seeded=True,
    ),
    "gbm": ClassifierKind(
        "gradient boosting", "ensemble.GradientBoostingClassifier", {},
        {"n_estimators": (20, 40), "max_depth": (2, 3)}, seeded=True,
    ),
    "forest": ClassifierKind(
        "random forest", "ensemble.RandomForestClassifier", {"n_estimators": 30},
        {"max_depth": (None, 4), "min_samples_leaf": (1, 3)}, seeded=True,
    ),
    "logistic": ClassifierKind(
        "logistic regression", "linear_model.LogisticRegression", {"max_iter": 1000},
        {"C": (0.1, 1.0, 10.0), "class_weight": (None, "balanced")}, scaled=True,
    ),
    "knn": ClassifierKind(
        "nearest neighbours", "neighbors.KNeighborsClassifier", {},
        {"n_neighbors": (3, 5, 9), "weights": ("uniform", "distance")}, scaled=True,
    ),
    "bayes": ClassifierKind("Gaussian naive Bayes", "naive_bayes.GaussianNB", {}, {"var_smoothing": (1e-9, 1e-3, 0.1)}),
    "svm": ClassifierKind(
        "support vectors", "svm.SVC", {}, {"C": (1.0, 10.0, 100.0), "gamma": ("scale", 0.1)}, scaled=True
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted classifier, its table, parameters and seed.

    :ivar model: name of its model, of ``MODELS``.
    :ivar parameters: chosen parameters.
    :ivar seed: seed of the search and of the model.
    :ivar pairs: rows that it learnt from.
    :ivar fitted: the estimator of scikit-learn.
    :ivar accuracy: mean accuracy over the folds of the search.
    :ivar seconds: time of the last fit.
    """

    model: str
    parameters: Mapping[str, float | str | None]
    seed: int
    pairs: FeatureRows
    fitted: Any
    accuracy: float
    seconds: float

    def predict(self, x: NDArray[np.generic]) -> NDArray[np.int8]:
        """Return the class of each row, a place in ``CLASSES``.

        :param x: features, shape (m, k).
        :raises ColocationError: if the number of features is another than that of the table.
        """
        if x.ndim != 2 or x.shape[1] != self.pairs.x.shape[1]:
            raise ColocationError(f"features: expecting rows of {self.pairs.x.shape[1]}, got shape {x.shape}")
        return np.asarray(self.fitted.predict(x), np.int8)


def search(model: str, pairs: FeatureRows, *, seed: int = 0) -> Classifier:
    """Choose a model's parameters by cross-validation over five folds, and fit it to all rows.

    :param model: name of a model of ``MODELS``.
    :param pairs: rows with known classes.
    :param seed: seed of the folds and of the model.
    :raises ColocationError: if scikit-learn is absent, the model unknown, or the rows are too few or of one class.
    """
    _require(model, pairs)
    selection = _sklearn("model_selection")
    grid = {f"model__{name}": list(values) for name, values in MODELS[model].grid.items()}
    folds = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    found = selection.GridSearchCV(_pipeline(model, pairs, seed), grid, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rare classes, and networks that have not converged
        try:
            found.fit(pairs.x, pairs.label.astype(np.int64))
        except ValueError as problem:  # each fold lacks a class, or an axis is NaN
            raise ColocationError(f"{model}: expecting pairs that it can learn from: {problem!s:.80}") from problem
    parameters = {name.removeprefix("model__"): value for name, value in found.best_params_.items()}
    return Classifier(
        model, parameters, seed, pairs, found.best_estimator_, float(found.best_score_), float(found.refit_time_)
    )


def _require(model: str, pairs: FeatureRows) -> None:
    if model not in MODELS:
        raise ColocationError(f"model: expecting one of {', '.join(MODELS)}, got {model!r}")
    kinds = len(np.unique(pairs.label[pairs.measured]))
    if len(pairs) < LEAST_PAIRS or kinds < 2 or not pairs.measured.all():
        wanted = f"at least {LEAST_PAIRS} measured pairs of two classes or more"
        raise ColocationError(f"{model}: expecting {wanted}, got {int(pairs.measured.sum())} of {kinds}")


def _pipeline(model: str, pairs: FeatureRows, seed: int) -> Any:
    of = MODELS[model]
    steps, pipeline, preprocessing = [], _sklearn("pipeline"), _sklearn("preprocessing")
    if pairs.features == PROGRAMS:  # by the classes of a name's other pairs, never a row's own (cross-fitting)
        steps.append(("names", preprocessing.TargetEncoder(target_type="multiclass", random_state=seed)))
    if of.scaled:
        steps.append(("scale", preprocessing.StandardScaler()))
    module, name = of.place.split(".")
    more = {"random_state": seed} if of.seeded else {}
    steps.append(("model", getattr(_sklearn(module), name)(**of.fixed, **more)))
    return pipeline.Pipeline(steps)


def _sklearn(module: str) -> Any:
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as problem:
        raise ColocationError(
            "classifiers: expecting scikit-learn, got none; pip install 'topompi[predict]' brings it"
        ) from problem
