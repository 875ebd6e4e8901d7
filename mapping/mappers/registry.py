"""All mappers by name, each called as ``mapper(graph, machine, seed)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...inputs.extensions import imported, names_function
from ..graph import CommunicationGraph
from ..machine import Machine, allocation_digest
from ..mapping import Mapping, MappingError
from .cartesian import cartesian
from .multilevel import scheme1, scheme2, single_step
from .plain import cyclic, identity, plane
from .portfolio import best
from .refine import refine

__all__ = ["MAPPERS", "Mapper", "mapper"]


class Mapper(Protocol):
    """An interface for mappers, which are functions; some have further keyword parameters."""

    def __call__(self, graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
        """Map the graph's ranks to the machine's slots."""


MAPPERS: dict[str, Mapper] = {
    "best": best,
    "given": identity,
    "cyclic": cyclic,
    "plane": plane,
    "cartesian": cartesian,
    "single-step": single_step,
    "scheme1": scheme1,
    "scheme2": scheme2,
    "refine": refine,
}


def mapper(name: str) -> Mapper:
    """The mapper of a name.

    :param name: a key of ``MAPPERS``, or ``module:function`` for a user's mapper with the same parameters, whose result
        is checked against the machine; the current directory is searched first.
    :raises MappingError: if the name is unknown, or the function cannot be imported.
    """
    if name in MAPPERS:
        return MAPPERS[name]
    if not names_function(name):
        raise MappingError(f"expecting a mapper of {', '.join(MAPPERS)}, or a module:function, got {name!r}")
    try:
        return _Function(name, imported(name))
    except ValueError as error:
        raise MappingError(str(error)) from error


@dataclass(frozen=True)
class _Function:
    """A mapper that calls a user's function."""

    name: str
    function: Callable[..., object]

    def __call__(self, graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
        try:
            made = self.function(graph, machine, seed)
        except MappingError as error:
            raise MappingError(f"{self.name}: {error}") from error
        except Exception as error:
            raise MappingError(f"{self.name}: {type(error).__name__}: {error}") from error
        if not isinstance(made, Mapping):
            raise MappingError(f"{self.name}: expecting a Mapping, got {type(made).__name__}")
        for what, wanted, got in (
            ("ranks", graph.size, made.size),
            ("allocation", allocation_digest(machine.hosts, machine.slots), made.digest),
        ):
            if wanted != got:
                raise MappingError(f"{self.name}: {what}: expecting {wanted}, got {got}")
        return made
