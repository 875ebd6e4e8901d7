"""A fitted prediction as JSON, by which the same matrix is not fitted again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ...inputs.files import read_text
from ...inputs.jsontext import parse_json
from ...inputs.writing import write_text
from ..errors import ColocationError
from .cells import Prediction

__all__ = ["read_model", "write_model"]

HEADER = {"format": "topompi prediction", "version": 1}
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
    content = parse_json(read_text(path, ColocationError, "a prediction"), str(path), ColocationError)
    if not isinstance(content, dict) or not HEADER.items() <= content.items():
        raise ColocationError(f"{path}: expecting an object with {json.dumps(HEADER)}, got other content")
    names = content.get("programs")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ColocationError(f"{path}: programs: expecting a list of names, got {names!r:.60}")
    n = len(names)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_SQUARE, (n, n))
    shapes |= {"chance": (n, n, 3), "scores": (-1,), "terms": (), "level": ()}
    made = {name: _array(content, name, shape, str(path)) for name, shape in shapes.items()}
    terms, level = int(made.pop("terms")), float(made.pop("level"))
    return tuple(names), Prediction(terms=terms, level=level, **made)


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
