"""Models of common MPI libraries: the algorithm that each chooses for a call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from . import mpich, openmpi
from .base import CallShape, Library, LibraryAlgorithm

__all__ = ["KNOWN", "CallShape", "Library", "LibraryAlgorithm", "model_of"]

# The model of one version of each library. If a job's library has no model, the fastest of these is assumed.
KNOWN: tuple[Library, ...] = (openmpi.OpenMPI((5, 0), "5.0"), mpich.MPICH())

# Functions of a version text and an environment, one per library; each returns the model of its library, or None if the
# text or the environment is not that of a version whose choices are known.
_MODELS: tuple[Callable[[str, Mapping[str, str]], Library | None], ...] = (openmpi.recognise, mpich.recognise)


def model_of(version: str, environment: Mapping[str, str] | None = None) -> Library | None:
    """The model of an MPI library; None if there is none for this library, version or environment.

    :param version: text that ``MPI.Get_library_version()`` returns.
    :param environment: environment variables of the ranks, by default those of this process. There is no model if one
        of them changes the library's choices.
    """
    known = os.environ if environment is None else environment
    return next((model for recognise in _MODELS if (model := recognise(version, known)) is not None), None)
