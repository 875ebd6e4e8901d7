"""Which of Open MPI's components runs a call, and when nobody can know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base import Decision, Question
from .han import han
from .tuned import tuned

__all__ = ["OpenMPI", "recognise"]

_VERSION = re.compile(r"^Open MPI v(\d+)\.(\d+)\.(\d+)")
_KNOWN = ((4, 1), (5, 0))
# Parameters of the collective components that change no decision.
_HARMLESS = re.compile(r"_(verbose|stream|output|output_mpi_t)$")


@dataclass(frozen=True)
class OpenMPI:
    """The decisions of an Open MPI whose parameters have their default values.

    Where all ranks are on one host, or each host has one, coll/tuned decides, and so it always does in 4.1. In 5.0
    coll/han, of a higher priority, takes part elsewhere. Where it then leaves a call to coll/tuned, it may look at the
    hosts first, with a few messages of up to 12 bytes, which are left out here.

    :param release: its first two numbers, such as (5, 0).
    :param version: as it says itself, such as ``5.0.11``.
    """

    release: tuple[int, int]
    version: str

    @property
    def name(self) -> str:
        """The library and its version."""
        return f"Open MPI {self.version}"

    def decide(self, question: Question) -> Decision | None:
        """What runs for a call; None for an unknown one."""
        ranks = np.unique(question.rank_host, return_counts=True)[1]
        if self.release >= (5, 0) and len(ranks) > 1 and ranks.max() > 1:
            return han(question) or tuned(question)
        return tuned(question)


def recognise(version: str, environment: Mapping[str, str]) -> OpenMPI | None:
    """The model of a library that says so of itself; None for another library or release, or changed parameters.

    :param version: what ``MPI.Get_library_version()`` says.
    :param environment: of the ranks: ``OMPI_MCA_coll*`` asks for other decisions than the default ones, as ``mpirun
        --mca`` does, which sets it. Parameters in files are not seen.
    """
    found = _VERSION.match(version)
    if found is None:
        return None
    major, minor, patch = map(int, found.groups())
    if (major, minor) not in _KNOWN or any(map(_changes, environment)):
        return None
    return OpenMPI((major, minor), f"{major}.{minor}.{patch}")


def _changes(variable: str) -> bool:
    """Whether an environment variable can change what collective components decide."""
    return variable.startswith("OMPI_MCA_coll") and _HARMLESS.search(variable) is None
