"""Parameters of the cost model that were fitted to measurements on real machines, a JSON file per machine.

A file has the fields that `Model.from_measured` reads, and says under ``origin`` where each number is from.
``python -m studies pico fit`` makes the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ....errors import SettingError
from ....schedules.analysis.model import Model

__all__ = ["machine_from", "machine_model", "machines"]

FOLDER = Path(__file__).parent


def machines() -> list[str]:
    """The names of the machines that have a file, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def machine_model(machine: str) -> Model:
    """The cost model of a machine, for ``Predictor(model=...)``.

    :param machine: name of a machine, or path of a file of one's own with the same fields.
    :raises ModelError: if there is neither, or if the file is malformed.
    """
    known = FOLDER / f"{machine}.json"
    return Model.from_measured(known if machine in machines() else machine)


def machine_from(environment: Mapping[str, str]) -> Model | None:
    """The cost model that ``TOPOMPI_MACHINE`` names; None if it is not set.

    :param environment: environment variables.
    :raises SettingError: if it names no machine and no file.
    :raises ModelError: if the file is malformed.
    """
    machine = environment.get("TOPOMPI_MACHINE", "")
    if not machine:
        return None
    if machine not in machines() and not Path(machine).is_file():
        raise SettingError(f"TOPOMPI_MACHINE: expecting one of {', '.join(machines())}, or a file, got {machine!r}")
    return machine_model(machine)
