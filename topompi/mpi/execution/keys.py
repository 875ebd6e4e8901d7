"""Keys of calls, computed faster than the arguments can be read. Calls with equal keys may run the same bound plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mpi4py import MPI

try:
    from ._keys import packed, placed
except ImportError:  # topompi was installed without a compiler

    def packed(arguments: tuple[object, ...], lasting: Mapping[int, object]) -> bytes | None:
        """Stand-in without the C extension: every key is made in Python."""
        return None

    def placed(arguments: tuple[object, ...], lasting: Mapping[int, object]) -> tuple[bytes | None, tuple[int, ...]]:
        """Stand-in without the C extension: no call has a key without addresses."""
        return None, ()


__all__ = ["LASTING", "lasting", "placed", "quick_key"]

MOST_COUNTS = 1024  # bytes; longer arrays of counts get no key, because comparing them takes longer than reading them

# Objects that exist as long as MPI does, by ``id``: no other object gets their ids.
LASTING: dict[int, object] = {id(one): one for one in vars(MPI).values() if isinstance(one, MPI.Op | MPI.Datatype)}
LASTING.update((id(one), one) for one in (None, MPI.IN_PLACE))
_LASTING_KIND = 24  # least number of a user's type in numpy; smaller numbers identify numpy's own types

_buffer = MPI.buffer.frombuffer


def quick_key(method: str, algorithm: str, arguments: tuple[object, ...]) -> tuple[object, ...] | None:
    """The key of a call: address, size in bytes and type of its arrays, and its other arguments.

    The result is None if an argument is anything but an array of numpy's own types, an integer, a predefined datatype
    or a predefined operation. Another array at the same address has the same key and may use the same bound plan,
    because a bound plan contains only addresses.

    :param method: name of the call, for example ``Bcast``.
    :param algorithm: name of the algorithm that runs the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    """
    if method != "Reduce_scatter" and (quick := packed(arguments, LASTING)) is not None:
        return method, algorithm, quick
    try:
        if method == "Reduce_scatter":
            sendbuf, recvbuf, counts, op = arguments
            return method, algorithm, _message(sendbuf), _message(recvbuf), _value(counts), _value(op)
        return (method, algorithm, *map(_message, arguments))
    except (KeyError, ValueError, BufferError):
        return None


def lasting(one: object) -> bool:
    """Whether an object is None or one of MPI's own constants, whose ``id`` no other object ever gets."""
    return id(one) in LASTING


def _message(one: Any) -> object:
    """The key of a message, or of another argument."""
    kind = type(one)
    if kind is np.ndarray:
        dtype = one.dtype
        if dtype.num >= _LASTING_KIND or not dtype.isnative:
            raise KeyError(dtype)
        memory = _buffer(one, False)  # False refuses read-only arrays; the reader of the arguments decides about them
        return memory.address, memory.nbytes, dtype.num
    if kind is list or kind is tuple:
        return (_message(one[0]), *map(_value, one[1:])) if one else ()
    return _value(one)


def _value(one: Any) -> object:
    """The key of a number, of a sequence of numbers, or of a constant."""
    kind = type(one)
    if kind is int:
        return one
    if kind is np.ndarray:
        if one.nbytes > MOST_COUNTS:
            raise KeyError(kind)
        return one.dtype.str, one.tobytes()
    if kind is list or kind is tuple:
        return tuple(map(_value, one))
    name = id(one)
    LASTING[name]
    return "constant", name
