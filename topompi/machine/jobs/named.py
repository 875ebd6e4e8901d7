"""Policies named by the function that makes them, ``module:function``: a user's own, and those of rooms above."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from typing import Any, TypeVar

from ...errors import TopompiError
from ...inputs.extensions import result_of
from .errors import JobsError

__all__ = ["for_one_run", "imported_late", "made_by"]

Made = TypeVar("Made")


def made_by(name: str, kind: type[Made], error: type[TopompiError]) -> Made:
    """Call the named function, or class, without arguments and return the object that it makes.

    :param name: ``module:function``; the current directory is searched first.
    :param kind: class of the object.
    :param error: class of the error that is raised if the function is missing, fails, or makes an object of another
        class.
    """
    made = result_of(name, error)
    if not isinstance(made, kind):
        raise error(f"{name}: expecting a function that makes one {kind.__name__}, got {type(made).__name__}")
    return made


def imported_late(name: str) -> Callable[[str], Any]:
    """Return a function that imports a function of topompi when it is called, and calls it.

    Tables of policies name with it those of rooms above, which this room cannot import.

    :param name: ``module:function`` below ``topompi``; the function takes the word after the policy's name.
    """
    module, _, function = name.partition(":")

    def call(word: str) -> Any:
        return getattr(import_module(f"topompi.{module}"), function)(word)

    return call


def for_one_run(policy: Made) -> Made:
    """Return a copy of a policy for one simulation, in which what the simulation changes in it stays.

    :raises JobsError: if the policy has a part that cannot be copied, for example an open file.
    """
    try:
        return deepcopy(policy)
    except TypeError as error:
        what = "a policy that can be copied, because what a run changes belongs to the run"
        raise JobsError(f"simulate: expecting {what}, got {type(policy).__name__}: {error}") from error
