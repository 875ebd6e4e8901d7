"""The files of fitted parameters in `topompi.mpi.prediction.machines`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from topompi.inputs.writing import write_text
from topompi.mpi.prediction import machines

from .data import Row
from .machines import MACHINES
from .times import NAMES, START, Calibration, layer_of

__all__ = ["read_calibration", "shipped", "write_machines"]

MEANING = {
    "call": "constant seconds of a call, without use in the cost model",
    "host": "levels 0, t_s",
    "near": "first level between hosts, t_s",
    "group": "second level between hosts, t_s beyond the first",
    "far": "third level between hosts, t_s beyond the second",
    "message": "t_o",
    "inside": "levels 0, t_w",
    "adapter": "levels between hosts, t_w",
    "reduce": "t_r",
    "copy": "seconds per byte of local copies, without use in the cost model",
}


def write_machines(calibrations: Mapping[str, Calibration], rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write a file per layer, with the origin of each number, and return the paths.

    :param calibrations: fitted parameters by layer.
    :param rows: the rows to which they were fitted.
    :param folder: folder of the files.
    """
    found = []
    for layer, calibration in sorted(calibrations.items()):
        mine = [row for row in rows if layer_of(row) == layer]
        system, runs = mine[0].system, {row.run for row in mine}
        fitted = f"fitted to {len(mine)} medians of {len(runs)} runs of PICO (HLC-Lab/pico, 413bc5d0)"
        alone = "not fitted, because no run shows it; where all fits begin"
        rounded = Calibration(tuple(float(f"{value:.4g}") for value in calibration.values))
        data = {
            "machine": layer,
            **rounded.model(system).as_dict(),
            "parameters": dict(zip(NAMES, rounded.values, strict=True)),
            "network": {"adapter": MACHINES[system].adapter, "note": "bytes/s of a host's links, for which t_w holds"},
            "origin": {
                name: f"{MEANING[name]}: {fitted if calibration[name] != START[name] else alone}" for name in NAMES
            },
        }
        path = folder / f"{layer}.json"
        write_text(path, json.dumps(data, indent=1) + "\n")
        found.append(path)
    return found


def read_calibration(path: Path) -> Calibration:
    """The parameters that a file holds."""
    known = json.loads(path.read_text(encoding="utf-8"))["parameters"]
    return Calibration(tuple(float(known[name]) for name in NAMES))


def shipped() -> dict[str, Calibration]:
    """The parameters of all files, by layer."""
    return {name: read_calibration(machines.FOLDER / f"{name}.json") for name in machines.machines()}
