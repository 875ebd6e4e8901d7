"""Docstrings of public functions: with three or more parameters, a docstring describes each of them.

A method that a class of MPI has under the same name is exempt, because mpi4py's reference describes it.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_type_hints

import pytest

# Packages and modules without MPI, and with it.
PURE = (
    "topompi.cli",
    "topompi.machine.colocation",
    "topompi.machine.daemon",
    "topompi.errors",
    "topompi.machine.interference",
    "topompi.machine.shutter",
    "topompi.machine.jobs",
    "topompi.mapping",
    "topompi.netsim",
    "topompi.schedules",
    "topompi.topology",
    "topompi.views",
)
MPI = "mpi4py.MPI"
FEW = 2  # parameters that a sentence can name

_FIELD = re.compile(r"^\s*:(\w+)(?: ([^:]*))?:", re.M)
# A further parameter in a joint form: ":param a: ...; likewise ``b`` and ``c``" or "...; ``b``: ...".
_LIKEWISE = re.compile(r"\blikewise\b((?:[\s,]|and|``\w+``)+)")
_FURTHER = re.compile(r"[;.]\s+``(\w+)``:")


def documented(docstring: str) -> set[str]:
    """The parameters that a docstring's ``:param`` fields describe."""
    names: set[str] = set()
    _, *fields = _FIELD.split(docstring)
    for kind, of, text in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        if kind == "param":
            names.update(re.findall(r"\w+", of or ""))
            names.update(name for part in _LIKEWISE.findall(text) for name in re.findall(r"``(\w+)``", part))
            names.update(_FURTHER.findall(text))
    return names


def missing(function: Callable[..., Any]) -> list[str]:
    """The parameters that a docstring owes its reader: all but ``self``, and but options that carry their own help."""
    hints = get_type_hints(function, include_extras=True) if "typer" in inspect.unwrap(function).__globals__ else {}
    names = [
        name
        for name in inspect.signature(function).parameters
        if name not in ("self", "cls") and not hasattr(hints.get(name), "__metadata__")
    ]
    if len(names) <= FEW:
        return []
    return [name for name in names if name not in documented(inspect.getdoc(function) or "")]


def modules(name: str) -> Iterator[ModuleType]:
    """A module and, where it is a package, all below it."""
    module = importlib.import_module(name)
    yield module
    for below in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
        yield importlib.import_module(below.name)


def is_of_mpi(owner: Any, name: str) -> bool:
    """Whether a class has a base among mpi4py's that has a method of this name."""
    return inspect.isclass(owner) and any(hasattr(base, name) for base in owner.__mro__ if base.__module__ == MPI)


def public_functions(name: str) -> dict[str, Callable[..., Any]]:
    """The functions in ``__all__`` of a package's modules, and the public methods of the classes there."""
    found: dict[str, Callable[..., Any]] = {}
    for module in modules(name):
        for public in (getattr(module, word) for word in getattr(module, "__all__", ())):
            members = [public, *vars(public).values()] if inspect.isclass(public) else [public]
            for member in (getattr(member, "__func__", member) for member in members):
                if not inspect.isfunction(member) or member.__name__.startswith("_"):
                    continue
                if not is_of_mpi(public, member.__name__):
                    found[f"{member.__module__}.{member.__qualname__}"] = member
    return {where: one for where, one in found.items() if where.startswith(f"{name}.")}


def owed(package: str) -> dict[str, list[str]]:
    """Of a package's public functions the parameters that no word describes."""
    return {where: names for where, one in public_functions(package).items() if (names := missing(one))}


@pytest.mark.parametrize("package", PURE)
def test_public_functions_of_three_or_more_parameters_describe_each(package: str) -> None:
    assert owed(package) == {}


def test_the_functions_of_a_package_are_found_in_its_modules() -> None:
    assert len(public_functions("topompi.topology")) > 50
    assert "topompi.topology.sources.load" in public_functions("topompi.topology")


def test_a_parameter_without_a_word_is_found_and_joint_forms_count() -> None:
    def joint(a: int, b: int, c: int, d: int, e: int) -> None:
        """Add.

        :param a, b: numbers.
        :param c: a number; likewise ``d``. See ``e``.
        :raises ValueError: where ``e`` is odd.
        """

    assert missing(joint) == ["e"]
