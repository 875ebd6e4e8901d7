"""All mappers by name; each is called as ``mapper(graph, machine, seed)``."""

from __future__ import annotations

from typing import Protocol

from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from .cartesian import cartesian
from .multilevel import scheme1, scheme2, single_step
from .plain import cyclic, identity, plane
from .portfolio import best
from .refine import refine

__all__ = ["MAPPERS", "Mapper", "mapper"]


class Mapper(Protocol):
    """A mapper as a function; some take further parameters, by name."""

    def __call__(self, graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
        """A mapping of the graph's ranks on the machine's slots."""


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
    """The mapper of this name.

    :raises MappingError: for a name that there is not.
    """
    if name not in MAPPERS:
        raise MappingError(f"mapping: expecting one of {', '.join(MAPPERS)}, got {name!r}")
    return MAPPERS[name]
