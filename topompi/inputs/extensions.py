"""Imports by name: a user's ``module:function``, mpi4py's ``MPI``, and public names of a package at their first use."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ..errors import MPILibraryError, TopompiError
from ..guard import intrusion

__all__ = [
    "NO_LIBRARY",
    "imported",
    "library_hint",
    "names_function",
    "require_mpi",
    "result_of",
    "when_used",
]

NO_LIBRARY = "expecting an MPI library, got none"
_WANTED = "expecting module:function, such as mine:ring, with the module in the current directory or installed"
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def names_function(name: str) -> bool:
    """True if a name has the form ``module:function``. Nothing is imported."""
    return _FUNCTION.fullmatch(name) is not None


def imported(name: str) -> Callable[..., Any]:
    """Import the function that ``module:function`` names; the current directory is searched first, as by ``python -m``.

    :raises ValueError: if the name has another form, or the module cannot be imported or lacks the function; for the
        superuser also if other users may write in the current directory, because the module could be theirs.
    """
    module, _, function = name.partition(":")
    if not names_function(name):
        raise ValueError(f"{name}: {_WANTED}, got another form")
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        others = intrusion(here, any_owner=True) if os.geteuid() == 0 else ""
        if others:
            raise ValueError(f"{name}: expecting, as root, a directory that nobody else may write, got {others}")
        sys.path.insert(0, here)
    try:
        found: object = getattr(import_module(module), function, None)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{name}: {_WANTED}, got no module {module!r}") from error
        raise ValueError(f"{name}: cannot be imported: {error}") from error
    except Exception as error:  # the module is a user's program, so its import may raise anything
        raise ValueError(f"{name}: cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ValueError(f"{name}: expecting a function {function!r} in {module}, got none")
    taken: Callable[..., Any] = found
    return taken


def result_of(name: str, error: type[TopompiError]) -> object:
    """Call the function, or class, that ``module:function`` names, without arguments, and return its result.

    :param name: ``module:function``; the current directory is searched first.
    :param error: class of the error that is raised if the function is missing or fails.
    """
    try:
        function = imported(name)
    except ValueError as problem:
        raise error(str(problem)) from problem
    try:
        return function()
    except TopompiError as problem:
        raise error(f"{name}: {problem}") from problem
    except Exception as problem:  # a user's function may raise anything
        raise error(f"{name}: {type(problem).__name__}: {problem}") from problem


def require_mpi() -> None:
    """Import mpi4py's ``MPI``, which initialises MPI.

    :raises MPILibraryError: if mpi4py is not installed or finds no MPI library; the message has one line.
    """
    try:
        import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # mpi4py raises RuntimeError, with a line per library that it tried
        raise MPILibraryError(library_hint(error)) from None


def library_hint(said: object) -> str:
    """The advice for a machine without an MPI library, in one line.

    :param said: the error that mpi4py raised, or a text that describes the problem; its first line is quoted.
    """
    first = str(said).strip().partition("\n")[0].rstrip(":")
    return (
        f"{NO_LIBRARY} ({first}): load one (module load openmpi), install one "
        "(pip install 'topompi[mpi]', or '.[mpi]' in a checkout), or name one to mpi4py (MPI4PY_MPIABI)"
    )


def when_used(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A ``__getattr__`` for a package, which imports each public name when it is first used.

    :param package: full name of the package.
    :param homes: mapping from a public name to the package's module that defines it.
    """

    def found(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return found
