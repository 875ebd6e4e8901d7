"""Communicators with nothing left to choose, count or check: their methods are the MPI library's own.

A method of ours costs a call of 8 bytes between two ranks a tenth, where it does no more than to call the library's. So
a settled communicator is of a class of its own, derived from that which it had, in which our methods are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mpi4py import MPI

__all__ = ["kind_of", "settle", "settled_kind", "unsettle"]

_settled: dict[type, type] = {}  # of a class of ours


def settled_kind(kind: type[MPI.Intracomm], methods: Iterable[str]) -> None:
    """Make the class of settled communicators of a kind.

    :param methods: names of those that are to be the MPI library's.
    """
    native = next(base for base in kind.__mro__ if base.__module__ == MPI.__name__)
    own = {name: getattr(native, name) for name in methods}
    about = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    _settled[kind] = type(kind.__name__, (kind,), {"__slots__": (), **about, **own})


def settle(handle: Any) -> None:
    """Make a communicator's methods the MPI library's; those of a user's class stay, for their own would be lost."""
    handle._settled = True
    handle.__class__ = _settled.get(type(handle), type(handle))


def unsettle(handle: Any) -> None:
    """Give a settled communicator its methods back."""
    handle.__class__ = kind_of(handle)
    handle._settled = False


def kind_of(handle: Any) -> type:
    """The class of a communicator, were it not settled."""
    kind = type(handle)
    base = kind.__mro__[1]
    return base if _settled.get(base) is kind else kind
