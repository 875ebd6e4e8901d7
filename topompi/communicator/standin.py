"""Classes of communicators that answer as mpi4py's own: by name, by module, and where they are asked for a kind."""

from __future__ import annotations

import copyreg
from abc import ABCMeta
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

__all__ = ["StandIn", "is_derived", "pickle_by_place", "take_places"]


class StandIn(ABCMeta):
    """The class of our classes, any of which may stand in the place of one of mpi4py's.

    petsc4py and others ask ``type(comm).__module__ == "mpi4py.MPI"``, others ``type(comm) is MPI.Intracomm``. Compiled
    code makes communicators of mpi4py's own classes; these have to be of the kind that has the name now, and a class
    equals the one whose place it has: programs compare types, and look them up. It is derived from ``ABCMeta`` because
    programs derive abstract classes from mpi4py's.
    """

    # The class of mpi4py's in whose place this very class stands; None in classes derived from it.
    _replaces: type | None = None

    def __eq__(cls, other: object) -> bool:
        return cls is other or (other is not None and vars(cls).get("_replaces") is other)

    def __hash__(cls) -> int:
        return type.__hash__(vars(cls).get("_replaces") or cls)

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, kind: type) -> bool:
        if (replaced := vars(cls).get("_replaces")) is not None:
            return type.__subclasscheck__(cls, kind) or issubclass(kind, replaced)
        return super().__subclasscheck__(kind)


def is_derived(kind: type, base: type) -> bool:
    """Whether a class is another one or derived from it, as compiled code asks: equal ones are two."""
    return type.__subclasscheck__(base, kind)


def take_places(kinds: dict[str, StandIn]) -> None:
    """Put classes of ours in the places of mpi4py's.

    :param kinds: name of the class in ``mpi4py.MPI`` -> ours.
    """
    for name, kind in kinds.items():
        kind._replaces = getattr(MPI, name)
        setattr(MPI, name, kind)


_named: dict[str, StandIn] = {}  # ours, by the names of mpi4py's


def pickle_by_place(kinds: dict[str, StandIn]) -> None:
    """Let classes be pickled by mpi4py's names where they stand in its classes' places, else by ours.

    :param kinds: name of the class in ``mpi4py.MPI`` -> ours.
    """
    _named.update(kinds)

    def reduced(kind: StandIn) -> str | tuple[Callable[..., Any], tuple[str]]:
        named = _named.get(kind.__name__) is kind and getattr(MPI, kind.__name__) is not kind
        return (_ours, (kind.__name__,)) if named else kind.__qualname__

    copyreg.pickle(StandIn, reduced)


def _ours(name: str) -> StandIn:
    return _named[name]
