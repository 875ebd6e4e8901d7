"""The files with which an MPI library chooses its algorithms for a job's network, by the cost model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import TopompiError
from ...mpi.prediction.libraries import Library
from ...mpi.prediction.libraries.mpich import MPICH
from ...mpi.prediction.libraries.mpich_forced import ALGORITHMS, INTEL
from ...mpi.prediction.libraries.openmpi import OpenMPI
from ...mpi.prediction.librarychoices import METHODS, OVER_HOSTS, LibraryChoice, choices, left_to_han, mean_gain
from ...mpi.prediction.machines import machine_from
from ...mpi.prediction.mpichchoices import intel_choices, mpich_choices
from ...mpi.prediction.predictor import Predictor
from ...mpi.tuning.intel_adjust import write_adjust
from ...mpi.tuning.mpich_tables import MPICHTables, find_library, write_compositions, write_table
from ...mpi.tuning.ompi_rules import Rules, of_choices, write_classic, write_json
from ...topology import Report, TopologyInterface

__all__ = ["FILES", "ChoiceFiles", "ExportError", "choice_files"]

# For each library the name of its file in a launch kit.
FILES = {"openmpi": "rules.conf", "openmpi6": "rules.json", "mpich": "tuning.json", "intel": "adjust.sh"}
TABLE, COMPOSITIONS = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"


class ExportError(TopompiError, ValueError):
    """The requested file cannot be made."""


@dataclass(frozen=True)
class ChoiceFiles:
    """The files for one library.

    :param files: text of each file by its name.
    :param gains: predicted times as fast as without the files, by method.
    :param notes: lines for the user.
    :param variables: name of the file by the variable that has its path.
    :param options: further options of ``mpirun``.
    """

    files: Mapping[str, str]
    gains: Mapping[str, float]
    notes: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()


def choice_files(
    mpi: str, interface: TopologyInterface, report: Report, *, library: Path | None = None, name: str | None = None
) -> ChoiceFiles:
    """The files for a job.

    :param mpi: a key of ``FILES``.
    :param interface: placement of the job's ranks.
    :param report: object that shows progress.
    :param library: path of the MPICH library whose tables are used; None for the one beside ``mpirun`` in PATH.
    :param name: name of the first file; None for that of ``FILES``.
    :raises ExportError: if the job's calls cannot be predicted.
    """
    name = name or FILES[mpi]
    if mpi.startswith("openmpi"):
        rules, gains, words, options = _rules(interface, report)
        text = write_classic(rules, words) if mpi == "openmpi" else write_json(rules)
        return ChoiceFiles({name: text}, gains, words[1:], options=options)
    if mpi == "intel":
        predictor = _predictor(interface, None)
        chosen = _every(INTEL, lambda method: intel_choices(predictor, method), report)
        words = _words(interface, gains := _gains(chosen), "the faster of Open MPI's and MPICH's own choice")
        return ChoiceFiles({name: write_adjust(chosen, interface.num_ranks, words)}, gains, words[1:])
    tables = MPICHTables.read(library or find_library())
    predictor = _predictor(interface, MPICH())
    chosen = _every(ALGORITHMS, lambda method: mpich_choices(predictor, method, tables.known(method)), report)
    files, variables = {name: write_table(tables, chosen, interface.num_ranks)}, {TABLE: name}
    if interface.num_hosts < interface.num_ranks and tables.compositions:
        over = f"{Path(name).stem}.ch4{Path(name).suffix}"
        files[over], variables[COMPOSITIONS] = write_compositions(tables, chosen, interface.num_ranks), over
    return ChoiceFiles(files, gains := _gains(chosen), _words(interface, gains)[1:], variables)


def _rules(interface: TopologyInterface, report: Report) -> tuple[Rules, dict[str, float], list[str], list[str]]:
    """Open MPI's rules for a job by the cost model, the gain by method, lines about them, and options of ``mpirun``."""
    predictor = _predictor(interface, OpenMPI((5, 0), "5.0"))
    chosen = _every(METHODS, lambda method: choices(predictor, method), report)
    left = left_to_han(predictor, chosen)
    chosen = [one for one in chosen if one.method not in left]
    words = _words(interface, gains := dict.fromkeys(METHODS, 1.0) | _gains(chosen))
    options: list[str] = []
    if interface.num_hosts < interface.num_ranks:
        moved = [method.lower() for method in OVER_HOSTS if method not in left]
        options = [f"--mca coll_han_{method}_dynamic_global_communicator_module tuned" for method in moved]
        listed = f"add {' '.join(options)}" if moved else "coll/han runs all calls that it knows"
        words.append(f"hosts have several ranks, for which coll/han runs and takes no rules: {listed}")
    return of_choices(chosen, interface.num_ranks), gains, words, options


def _predictor(interface: TopologyInterface, library: Library | None) -> Predictor:
    predictor = Predictor(interface, library, model=machine_from(os.environ))
    if predictor.inapplicable:
        raise ExportError(f"expecting a job whose calls can be predicted, got {predictor.inapplicable}")
    return predictor


def _every(methods: Iterable[str], choose: Callable[[str], list[LibraryChoice]], report: Report) -> list[LibraryChoice]:
    chosen: list[LibraryChoice] = []
    for method in methods:
        report.step(f"predicting {method}")
        chosen += choose(method)
    return chosen


def _gains(chosen: Sequence[LibraryChoice]) -> dict[str, float]:
    methods = dict.fromkeys(one.method for one in chosen)
    return {method: mean_gain([one for one in chosen if one.method == method]) for method in methods}


def _words(interface: TopologyInterface, gains: Mapping[str, float], than: str = "without this file") -> list[str]:
    listed = ", ".join(f"{method} {gain:.2f}" for method, gain in gains.items())
    return [interface.describe(), f"by the cost model; predicted times as fast as {than}: {listed}"]
