"""The component of Open MPI that runs a call, and the cases in which it cannot be known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base import CallShape, LibraryAlgorithm
from .han import han
from .tuned import tuned

__all__ = ["OpenMPI", "recognise"]

_VERSION = re.compile(r"^Open MPI v(\d+)\.(\d+)\.(\d+)")
_KNOWN = ((4, 1), (5, 0))
# Parameters of the collective components that change no choice.
_HARMLESS = re.compile(r"_(verbose|stream|output|output_mpi_t)$")


@dataclass(frozen=True)
class OpenMPI:
    """The choices of an Open MPI whose parameters have their default values.

    coll/tuned chooses in 4.1, and in 5.0 if all ranks are on one host or each host has one rank. In other jobs of 5.0,
    coll/han has a higher priority. Before it leaves a call to coll/tuned it may compare the hosts, by a few messages of
    up to 12 bytes, which are not modelled.

    :param release: first two numbers of the version, for example (5, 0).
    :param version: the full version, for example ``5.0.11``.
    """

    release: tuple[int, int]
    version: str

    @property
    def name(self) -> str:
        """Name of the library, and its version."""
        return f"Open MPI {self.version}"

    def decide(self, question: CallShape) -> LibraryAlgorithm | None:
        """The algorithm that runs for a call; None for an unknown call."""
        ranks = np.unique(question.rank_host, return_counts=True)[1]
        if self.release >= (5, 0) and len(ranks) > 1 and ranks.max() > 1:
            return han(question) or tuned(question)
        return tuned(question)


def recognise(version: str, environment: Mapping[str, str]) -> OpenMPI | None:
    """The model of Open MPI for a library's version text; None for another library or release, or changed parameters.

    :param version: text that ``MPI.Get_library_version()`` returns.
    :param environment: environment variables of the ranks: ``OMPI_MCA_coll*``, which ``mpirun --mca`` sets, may change
        choices. Parameters in files are not seen.
    """
    found = _VERSION.match(version)
    if found is None:
        return None
    major, minor, patch = map(int, found.groups())
    if (major, minor) not in _KNOWN or any(map(_changes, environment)):
        return None
    return OpenMPI((major, minor), f"{major}.{minor}.{patch}")


def _changes(variable: str) -> bool:
    """Whether an environment variable can change the choices of collective components."""
    return variable.startswith("OMPI_MCA_coll") and _HARMLESS.search(variable) is None
