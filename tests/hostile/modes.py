"""How programs are started natively and with ours: as it is, on a virtual network, with what rules force."""

import json
from pathlib import Path

from topompi.mpi.execution.specs import COLLECTIVES
from topompi.schedules import ALGORITHMS

__all__ = ["ENVIRONMENT", "LAUNCHERS", "MODES", "NEIGHBOURS", "variables", "words", "write_rules"]

PLACED = ("--topology", "xgft:2,2,2;1,1,1", "--hosts", "h[0000,0001,0005]")
LAUNCHERS = {
    "native": ("mpi4py",),
    "default": ("topompi",),
    "virtual": ("topompi", *PLACED),
    "schedules": ("topompi", *PLACED, "--rules", "schedules"),
}
MODES = tuple(mode for mode in LAUNCHERS if mode != "native")
# Modes of neighbourhood collectives, called after the words of TOPOMPI_NEIGHBOURS that they set.
NEIGHBOURS = ("hosts", "leaves")
LAUNCHERS |= {"hosts": ("topompi", *PLACED[:-1], "h[0000,0005]"), "leaves": ("topompi", *PLACED)}
ENVIRONMENT = {
    "TOPOMPI_TOPOLOGY": "",
    "TOPOMPI_HOSTS": "",
    "TOPOMPI_TUNE": "",
    "TOPOMPI_RULES": "",
    "TOPOMPI_NATIVE_CALLS": "0",
}


def variables(mode: str) -> dict[str, str]:
    """The environment of a mode."""
    return {**ENVIRONMENT, "TOPOMPI_NEIGHBOURS": mode if mode in NEIGHBOURS else ""}


def write_rules(folder: Path, forced: dict[str, str] | None = None) -> None:
    """A rules file ``schedules``, with another one for each class of sizes, so that all have turns.

    :param folder: where they are put.
    :param forced: a schedule for each of some methods; all calls of the method that can run it do, at any size.
    """
    names = {one: list(ALGORITHMS[one]) for one in COLLECTIVES if one in ALGORITHMS}
    turns = [
        {"collective": one, "bytes": [(1 << digits) >> 1, (1 << digits) - 1], "algorithm": of_one[digits % len(of_one)]}
        for one, of_one in names.items()
        for digits in range(24)
    ]
    rest = [{"collective": one, "algorithm": name} for one, of_one in names.items() for name in of_one]
    first = [{"methods": [method], "algorithm": name} for method, name in (forced or {}).items()]
    rules = [*first, *turns, *rest]
    (folder / "schedules").write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": rules}))


def words(mode: str, folder: Path) -> list[str]:
    """The launcher's words in a mode, with the rules file of a folder."""
    return [str(folder / word) if word == "schedules" else word for word in LAUNCHERS[mode]]
