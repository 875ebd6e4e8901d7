"""Communicator classes that pass for mpi4py's own: by name, by module, and in type checks."""

from __future__ import annotations

import copyreg
from abc import ABCMeta
from collections.abc import Callable

from mpi4py import MPI

__all__ = ["StandIn", "is_derived", "pickle_by_place", "take_places"]


class StandIn(ABCMeta):
    """The metaclass of topompi's communicator classes, each of which can take the place of one of mpi4py's.

    Programs test ``type(comm).__module__ == "mpi4py.MPI"`` (petsc4py) or ``type(comm) is MPI.Intracomm``. Compiled code
    makes communicators of mpi4py's own classes, which must count as instances of the class of topompi that replaces
    theirs under its name. A class compares equal to the class that it replaces, because programs compare types and use
    them as keys. The metaclass derives from ``ABCMeta``, because programs derive abstract classes from mpi4py's.
    """

    # The class of mpi4py that this class itself replaces; classes derived from this one replace none.
    _topompi_replaces: type | None = None

    def __eq__(cls, other: object) -> bool:
        return cls is other or (other is not None and vars(cls).get("_topompi_replaces") is other)

    def __hash__(cls) -> int:
        return type.__hash__(vars(cls).get("_topompi_replaces") or cls)

    def __setattr__(cls, name: str, value: object) -> None:
        """Refuse attributes as mpi4py's own class does, on a class that has its place."""
        if "_topompi_replaces" in vars(cls):
            raise TypeError(f"cannot set {name!r} attribute of immutable type '{cls.__module__}.{cls.__qualname__}'")
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        if "_topompi_replaces" in vars(cls):
            raise TypeError(f"cannot set {name!r} attribute of immutable type '{cls.__module__}.{cls.__qualname__}'")
        super().__delattr__(name)

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, kind: type) -> bool:
        if (replaced := vars(cls).get("_topompi_replaces")) is not None:
            return type.__subclasscheck__(cls, kind) or issubclass(kind, replaced)
        return super().__subclasscheck__(kind)


def is_derived(kind: type, base: type) -> bool:
    """Whether a class is ``base`` or derived from it, as compiled code checks: by identity, not equality."""
    return type.__subclasscheck__(base, kind)


def take_places(kinds: dict[str, StandIn]) -> None:
    """Replace classes in ``mpi4py.MPI`` by topompi's, under the same names.

    :param kinds: topompi's classes, by name of the class in ``mpi4py.MPI``.
    """
    for name, kind in kinds.items():
        kind._topompi_replaces = getattr(MPI, name)
        setattr(MPI, name, kind)


_named: dict[str, StandIn] = {}  # topompi's classes, by name of mpi4py's class


def pickle_by_place(kinds: dict[str, StandIn]) -> None:
    """Make topompi's classes picklable: by mpi4py's name while they replace mpi4py's classes, else by their own name.

    :param kinds: topompi's classes, by name of the class in ``mpi4py.MPI``.
    """
    _named.update(kinds)

    def reduced(kind: StandIn) -> str | tuple[Callable[..., StandIn], tuple[str]]:
        named = _named.get(kind.__name__) is kind and getattr(MPI, kind.__name__) is not kind
        return (_ours, (kind.__name__,)) if named else kind.__qualname__

    copyreg.pickle(StandIn, reduced)


def _ours(name: str) -> StandIn:
    return _named[name]
