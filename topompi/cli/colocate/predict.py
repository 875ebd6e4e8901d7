"""``topompi colocate predict``: the cells of a matrix of speed-ups that were not measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...machine.colocation.prediction.cells import PredictedCells, expected_accuracy, left_out, next_cells
from ...machine.colocation.prediction.cells import predict as predict_cells
from ...machine.colocation.speedups.bands import CLASSES, classes
from ...machine.colocation.speedups.files import read_speedups, write_speedups
from ...machine.colocation.speedups.matrix import Speedups
from ..inputs import AsJson
from ..quantities import COUNT

__all__ = ["predict"]

_HEAT = "Measured speed-ups: JSON, a CSV matrix with empty cells, or CSV of run times."
_NEXT = "Number of cells to name that should be measured next."
LEVEL = 0.9  # share of values that an interval shall cover


def predict(
    heat: Annotated[Path, typer.Argument(help=_HEAT)],
    following: Annotated[int, COUNT("--next", help=_NEXT, min=0)] = 0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File for the completed matrix.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Predict each known cell from the others, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Predict how fast programs run beside each other if only some pairs were measured.

    Each unknown cell gets a speed-up, an interval and a class: good from 1.10, bad below 0.95, else stationary.
    """
    measured = read_speedups(heat)
    made = predict_cells(measured, level=LEVEL)
    if output is not None:
        write_speedups(output, _filled(measured, made))
    found: dict[str, object] = {"terms": made.terms, "level": made.level, "cells": _cells(measured, made)}
    if not measured.known.all():
        found["expected"] = round(expected_accuracy(made, ~measured.known), 3)
    found["next"] = [_names(measured, cell) for cell in next_cells(measured, made, following)]
    if check:
        found["check"] = _checked(measured)
    print(json.dumps(found, indent=1) if as_json else _text(found))


def _filled(measured: Speedups, made: PredictedCells) -> Speedups:
    ratio, low, high = (
        np.where(measured.known, old, new)
        for old, new in ((measured.ratio, made.speedup), (measured.low, made.low), (measured.high, made.high))
    )
    return replace(measured, ratio=ratio, low=low, high=high)


def _names(measured: Speedups, cell: tuple[int, int]) -> dict[str, str]:
    return {"program": measured.programs[cell[0]], "beside": measured.programs[cell[1]]}


def _cells(measured: Speedups, made: PredictedCells) -> list[dict[str, object]]:
    return [
        _names(measured, (row, column))
        | {
            "speedup": round(float(made.speedup[row, column]), 4),
            "interval": [round(float(made.low[row, column]), 4), round(float(made.high[row, column]), 4)],
            "class": CLASSES[made.label[row, column]],
            "chance": round(float(made.chance[row, column].max()), 3),
        }
        for row, column in np.argwhere(~measured.known).tolist()
    ]


def _checked(measured: Speedups) -> dict[str, object]:
    made, known = left_out(measured, level=LEVEL), measured.known
    right = (made.label == classes(measured.ratio))[known]
    inside = ((measured.ratio >= made.low) & (measured.ratio <= made.high))[known]
    return {"cells": int(known.sum()), "right": round(float(right.mean()), 3), "inside": round(float(inside.mean()), 3)}


def _text(found: dict[str, Any]) -> str:
    lines = [
        "{program} beside {beside}: {speedup:.2f} ({0:.2f} to {1:.2f}), {class} with chance {chance:.2f}".format(
            *cell["interval"], **cell
        )
        for cell in found["cells"]
    ] or ["every cell is known"]
    if "expected" in found:
        lines.append(f"expected: {found['expected']:.1%} of these classes right")
    lines += [f"measure next: {cell['program']} beside {cell['beside']}" for cell in found["next"]]
    if "check" in found:
        lines.append(
            "each of {cells} known cells from the others: {right:.1%} of classes right, {inside:.1%} inside the "
            "interval".format(**found["check"])
        )
    return "\n".join(lines)
