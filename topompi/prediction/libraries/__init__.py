"""Models of common MPI libraries: the algorithm that each chooses for a call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from . import mpich, openmpi
from .base import Decision, Library, Question

__all__ = ["KNOWN", "Decision", "Library", "Question", "model_of"]

# One version of each library, to take the place of a library that is not known.
KNOWN: tuple[Library, ...] = (openmpi.OpenMPI((5, 0), "5.0"), mpich.MPICH())

# Each function returns its library's model, if version text and environment are those of a library that it knows.
_MODELS: tuple[Callable[[str, Mapping[str, str]], Library | None], ...] = (openmpi.recognise, mpich.recognise)


def model_of(version: str, environment: Mapping[str, str] | None = None) -> Library | None:
    """The model of an MPI library; None if there is none for this library, version or environment.

    :param version: text that ``MPI.Get_library_version()`` returns.
    :param environment: environment variables of the ranks, by default those of this process. There is no model if one
        of them changes the library's choices.
    """
    known = os.environ if environment is None else environment
    return next((model for recognise in _MODELS if (model := recognise(version, known)) is not None), None)
