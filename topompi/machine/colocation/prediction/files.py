"""Fitted models as JSON: predictions by their numbers, and classifiers by all that fits them again.

No file holds code: scikit-learn's own files are pickles, which may run any program when they are read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ....inputs.files import read_text
from ....inputs.jsontext import parse_json
from ....inputs.limits import current_limits
from ....inputs.writing import write_text
from ..errors import ColocationError
from ..speedups.bands import CLASSES
from .cells import Prediction
from .classifiers import MODELS, Classifier, fit_classifier
from .features import PROGRAMS, SETS, Pairs

__all__ = ["read_classifier", "read_model", "write_classifier", "write_model"]

HEADER = {"format": "topompi prediction", "version": 1}
CLASSIFIER = {"format": "topompi classifier", "version": 1}
_SQUARE = ("speedup", "low", "high", "error")


def write_model(path: str | os.PathLike[str], programs: tuple[str, ...], prediction: Prediction) -> None:
    """Write a prediction as JSON.

    :param path: the file.
    :param programs: names of the n programs.
    :param prediction: prediction of all n x n cells.
    """
    content: dict[str, Any] = HEADER | {
        "programs": list(programs), "terms": prediction.terms, "level": prediction.level,
    }  # fmt: skip
    content |= {name: getattr(prediction, name).tolist() for name in (*_SQUARE, "chance", "scores")}
    write_text(Path(path), json.dumps(content) + "\n")


def read_model(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], Prediction]:
    """Read the programs and the prediction that ``write_model`` wrote.

    :param path: the file.
    :raises ColocationError: if the file is malformed.
    """
    content = _read(path, HEADER, "a prediction")
    names = content.get("programs")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ColocationError(f"{path}: programs: expecting a list of names, got {names!r:.60}")
    n = len(names)
    current_limits().check("rows", n * n, f"{path}: programs", ColocationError)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_SQUARE, (n, n))
    shapes |= {"chance": (n, n, 3), "scores": (-1,), "terms": (), "level": ()}
    made = {name: _array(content, name, shape, str(path)) for name, shape in shapes.items()}
    terms, level = int(made.pop("terms")), float(made.pop("level"))
    return tuple(names), Prediction(terms=terms, level=level, **made)


def write_classifier(path: str | os.PathLike[str], classifier: Classifier) -> None:
    """Write a classifier's rows, parameters and seed as JSON.

    :param path: the file.
    :param classifier: the classifier.
    """
    pairs = classifier.pairs
    content = CLASSIFIER | {
        "model": classifier.model, "parameters": dict(classifier.parameters), "seed": classifier.seed,
        "features": pairs.features,
        "rows": [
            {"program": one, "beside": other, "class": CLASSES[label], "features": row}
            for one, other, label, row in zip(
                pairs.program.tolist(), pairs.beside.tolist(), pairs.label.tolist(), pairs.x.tolist(), strict=True
            )
        ],
    }  # fmt: skip
    write_text(Path(path), json.dumps(content) + "\n")


def read_classifier(path: str | os.PathLike[str]) -> Classifier:
    """Read what ``write_classifier`` wrote, and fit the classifier again: it answers as the written one.

    Another version of scikit-learn may fit another classifier.

    :param path: the file.
    :raises ColocationError: if the file is malformed, or scikit-learn is absent.
    """
    content = _read(path, CLASSIFIER, "a classifier")
    wanted = {"model": list(MODELS), "features": list(SETS)}
    for name, values in wanted.items():
        if content.get(name) not in values:
            raise ColocationError(
                f"{path}: {name}: expecting one of {', '.join(values)}, got {content.get(name)!r:.60}"
            )
    for name, kind, of in (("parameters", dict, "an object"), ("rows", list, "a list"), ("seed", int, "a number")):
        if type(content.get(name)) is not kind or (name == "seed" and not 0 <= content[name] < 2**32):
            raise ColocationError(f"{path}: {name}: expecting {of}, got {content.get(name)!r:.60}")
    try:
        pairs = _pairs(content["features"], content["rows"])
        return fit_classifier(content["model"], pairs, content["parameters"], seed=content["seed"])
    except ColocationError as error:
        raise ColocationError(f"{path}: {error}") from error.__cause__


def _pairs(features: str, rows: list[Any]) -> Pairs:
    """Return the table of a classifier's file."""
    kind, width = str if features == PROGRAMS else float, None
    for at, row in enumerate(rows):
        values = row.get("features") if isinstance(row, dict) else None
        names = [row.get("program"), row.get("beside")] if isinstance(row, dict) else []
        if not isinstance(values, list) or not all(type(one) is kind and one == one for one in values):
            raise ColocationError(f"rows[{at}]: features: expecting a list of {kind.__name__}, got {values!r:.60}")
        width = len(values) if width is None else width
        if len(values) != width or not width or row.get("class") not in CLASSES:
            wanted = f"{width or 1} features and a class of {', '.join(CLASSES)}"
            raise ColocationError(f"rows[{at}]: expecting {wanted}, got {len(values)} and {row.get('class')!r:.60}")
        if not all(isinstance(one, str) for one in names):
            raise ColocationError(f"rows[{at}]: expecting names of program and neighbour, got {names!r:.60}")
    return Pairs(
        features,
        np.array([row["features"] for row in rows], dtype=object if kind is str else np.float64),
        np.array([CLASSES.index(row["class"]) for row in rows], np.int8),
        *(np.array([row[name] for row in rows], dtype=object) for name in ("program", "beside")),
    )


def _read(path: str | os.PathLike[str], header: dict[str, Any], wanted: str) -> dict[str, Any]:
    content = parse_json(read_text(path, ColocationError, wanted), str(path), ColocationError)
    if not isinstance(content, dict) or not header.items() <= content.items():
        raise ColocationError(f"{path}: expecting an object with {json.dumps(header)}, got other content")
    return content


def _array(content: dict[str, Any], name: str, shape: tuple[int, ...], path: str) -> Any:
    try:
        made = np.asarray(content.get(name), np.float64)
    except (TypeError, ValueError):
        made = np.array(np.nan)
    right = made.ndim == len(shape) if -1 in shape else made.shape == shape
    if not right or not np.isfinite(made).all():
        raise ColocationError(
            f"{path}: {name}: expecting finite numbers of shape {shape}, got {content.get(name)!r:.60}"
        )
    return made
