"""``topompi doctor --variables``: every variable that topompi reads, with its value and the origin of the value."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches

import typer
from rich.table import Table

from ...errors import TopompiError
from ...inputs.settings import ALIKE, NATIVE_CALLS, VARIABLES, WORDS, check_settings
from ...inputs.slurm.environment import MEANINGS as SLURM
from ..terminal import console

__all__ = ["OURS", "Variable", "fault", "list_variables", "variables"]

# Meaning of each of topompi's variables in a line, by its name; docs/settings.md describes each in full.
OURS = {
    "TOPOMPI_TOPOLOGY": "topology source, where the program names none",
    "TOPOMPI_SERVER": "topology service that the source auto asks",
    "TOPOMPI_HOSTS": "virtual placement: a host list over the ranks of MPI.COMM_WORLD",
    "TOPOMPI_FALLBACK": f"where a host is not in the topology: {', '.join(WORDS['TOPOMPI_FALLBACK'])}",
    "TOPOMPI_PROFILE": "file for what a program of mpi4py sends",
    "TOPOMPI_PROFILE_COMMAND": f"of what ran in a profile: {', '.join(WORDS['TOPOMPI_PROFILE_COMMAND'])}",
    "TOPOMPI_PROFILE_GRANULARITY": f"of its peers: {', '.join(WORDS['TOPOMPI_PROFILE_GRANULARITY'])}",
    "TOPOMPI_RULES": "rules file",
    "TOPOMPI_MACHINE": "cost model: a machine of topompi/mpi/prediction/machines, or a JSON file with its fields",
    "TOPOMPI_LIMITS": "what one input may hold at most, such as hosts=1M,bytes=8G",
    "TOPOMPI_TUNE": f"what may be measured: nothing new (empty), {', '.join(WORDS['TOPOMPI_TUNE'])}",
    "TOPOMPI_REPRODUCIBLE": "1: calls alike run by one algorithm, from the first on and in every job",
    "TOPOMPI_VERBOSE": "1: a table of all calls at the end",
    "TOPOMPI_SHUTTER": "1: collective calls are counted, as progress for topompi shutter",
    "TOPOMPI_CHECK": "1, or seconds until a waiting rank says so: arguments are compared before each collective",
    "TOPOMPI_MAP": "communication graph for which the launcher re-orders the ranks of MPI.COMM_WORLD",
    "TOPOMPI_PRELOAD": "set by topompi run: shared library of Python for a compiled program",
    "TOPOMPI_PYTHON": "set by topompi run: Python's executable for a compiled program",
    "TOPOMPI_NATIVE_CALLS": "among how many first calls of a made communicator small ones are the MPI library's",
    "TOPOMPI_NEIGHBOURS": f"neighbourhood collectives: by the model, {', '.join(WORDS['TOPOMPI_NEIGHBOURS'])}",
    "TOPOMPI_MAP_QUALITY": "mapping stops at this part of the given order's objective, 0 to 1",
    "TOPOMPI_EMULATE_STATE": "folder in which emulated networks are kept",
    "TOPOMPI_SHARED_DATA": "folder of real data, for tests",
}
# Values that topompi uses for variables that are not set; variables without an entry are then empty.
DEFAULTS = {
    "TOPOMPI_FALLBACK": WORDS["TOPOMPI_FALLBACK"][0],
    "TOPOMPI_MAP_QUALITY": "0",
    "TOPOMPI_NATIVE_CALLS": str(NATIVE_CALLS),
    "TOPOMPI_PROFILE_COMMAND": WORDS["TOPOMPI_PROFILE_COMMAND"][0],
    "TOPOMPI_PROFILE_GRANULARITY": WORDS["TOPOMPI_PROFILE_GRANULARITY"][0],
    "TOPOMPI_REPRODUCIBLE": WORDS["TOPOMPI_REPRODUCIBLE"][0],
}
# Meaning of the variables of other programs that topompi reads, by name.
FOREIGN = {
    **SLURM,
    "XDG_CACHE_HOME": "folder in which what trials found is kept; else ~/.cache",
    "MPI4PY_MPIABI": "mpi4py: which MPI library's interface to take",
}


@dataclass(frozen=True)
class Variable:
    """A variable of the environment, as ``topompi doctor --variables`` lists it.

    :param name: name of the variable.
    :param value: value that topompi uses.
    :param origin: origin of the value: ``environment``, ``default``, or ``unknown`` if the name begins with
        ``TOPOMPI_``, but topompi has no variable of this name.
    :param meaning: meaning in a line.
    """

    name: str
    value: str
    origin: str
    meaning: str


def variables(environment: Mapping[str, str]) -> list[Variable]:
    """List topompi's variables, then those of other programs that it reads, then unknown ones named ``TOPOMPI_...``.

    :param environment: the environment variables.
    """
    known = {**OURS, **FOREIGN}
    strange = {name: _nearest(name) for name in sorted(environment) if name not in VARIABLES}
    rows = [
        Variable(name, environment.get(name) or DEFAULTS.get(name, ""), _origin(name, environment), meaning)
        for name, meaning in known.items()
    ]
    return rows + [
        Variable(
            name, environment[name], "unknown", f"topompi has no such variable{near and f'; the nearest is {near}'}"
        )
        for name, near in strange.items()
        if near or name.upper().startswith("TOPOMPI_")
    ]


def _nearest(name: str) -> str:
    """Return the variable of topompi's of which a name is a misspelling; empty if there is none."""
    head, stem = name.upper()[:1], name.upper().removeprefix("TOPOMPI_")
    stems = {one.removeprefix("TOPOMPI_"): one for one in sorted(VARIABLES)}
    if stem != name.upper():
        return next((stems[one] for one in get_close_matches(stem, stems, 1)), "")
    # Others' names, such as OMPI_HOSTS, resemble ours, too.
    return next(iter(get_close_matches(name.upper(), stems.values(), 1, ALIKE)), "") if head == "T" else ""


def fault(environment: Mapping[str, str]) -> str:
    """Return the error message that a program with topompi would print for the variables' values; "" if they are right.

    :param environment: the environment variables.
    """
    try:
        check_settings(environment, speaks=False)
        if environment.get("TOPOMPI_RULES"):
            from ...mpi.selection.rules import Rules  # imports all generators of schedules, and few jobs have rules

            Rules.read(environment["TOPOMPI_RULES"])
    except TopompiError as error:
        return str(error)
    return ""


def list_variables(*, as_json: bool) -> None:
    """Print every variable of the environment that topompi reads; end with exit code 1 if a value is wrong.

    :param as_json: whether to print JSON.
    """
    rows, wrong = variables(os.environ), fault(os.environ)
    if as_json:
        print(json.dumps({"variables": [asdict(row) for row in rows], "fault": wrong}))
    else:
        table = Table("variable", "value", "from", "meaning", box=None, pad_edge=False)
        for row in rows:
            table.add_row(row.name, row.value or "-", row.origin, row.meaning)
        screen = console()
        screen.print(table)
        if wrong:
            screen.print(f"wrong: {wrong}")
    if wrong:
        raise typer.Exit(1)


def _origin(name: str, environment: Mapping[str, str]) -> str:
    return "environment" if environment.get(name) else "default"
