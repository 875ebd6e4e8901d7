"""Models of the MPI libraries that people run: which algorithm each takes for which call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from . import mpich, openmpi
from .base import Decision, Library, Question

__all__ = ["KNOWN", "Decision", "Library", "Question", "model_of"]

KNOWN: tuple[Library, ...] = (openmpi.OpenMPI((5, 0), "5.0"), mpich.MPICH())  # one of each library

# Each says from a library's own words and the environment whether it knows that library.
_MODELS: tuple[Callable[[str, Mapping[str, str]], Library | None], ...] = (openmpi.recognise, mpich.recognise)


def model_of(version: str, environment: Mapping[str, str] | None = None) -> Library | None:
    """The model of an MPI library; None where no model knows it.

    :param version: what ``MPI.Get_library_version()`` says.
    :param environment: variables of the ranks, with which users change what a library decides: then no model knows
        it. By default this process's own.
    """
    known = os.environ if environment is None else environment
    return next((model for recognise in _MODELS if (model := recognise(version, known)) is not None), None)
