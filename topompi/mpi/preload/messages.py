"""Messages, datatypes and operations as mpi4py takes them, from a compiled program's addresses and handles."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

__all__ = ["MASK", "counted", "datatype", "integer", "integers", "known_handles", "message", "operation", "typed"]

IN_PLACE = int(MPI.IN_PLACE) % 2**64
WIDTH = MPI._sizeof(MPI.COMM_NULL)  # bytes of a handle
MASK = 256**WIDTH - 1
OPERATION = -1  # stands for the size of a predefined operation
MOST = 4096  # arrays held at most
# Codes of items that are numbers. Reductions of characters or truths as numpy's arrays could differ from the library's.
NUMBERS = "bhilqBHILQfdFD"

_types: dict[int, MPI.Datatype] = {}  # the predefined ones; a derived one's handle may come again after it is freed
_ops: dict[int, MPI.Op] = {}
_items: dict[int, np.dtype[Any]] = {}  # numpy's type of the predefined datatypes that it has
_arrays: dict[tuple[int, int, int], NDArray[Any]] = {}


def known_handles() -> NDArray[np.int64]:
    """Predefined datatypes and operations, shape (number, 2): the handle, and the bytes of an item or ``OPERATION``.

    MPI.COMM_WORLD and MPI.COMM_SELF must return errors, because a library may lack some of them.
    """
    rows: dict[int, int] = {}
    for one in map(MPI.__dict__.get, dir(MPI)):
        if isinstance(one, MPI.Datatype) and (size := _size(one)) > 0:
            rows[one.handle & MASK] = size
            _know_type(one, size)
        elif isinstance(one, MPI.Op) and one not in (MPI.OP_NULL, MPI.REPLACE, MPI.NO_OP):
            rows[one.handle & MASK] = OPERATION
            _ops[one.handle & MASK] = one
    return np.array(list(rows.items()), dtype=np.int64)


def _size(kind: MPI.Datatype) -> int:
    """Bytes of an item; 0 if the library lacks the datatype."""
    try:
        return kind.Get_size() if kind != MPI.DATATYPE_NULL and kind.is_named else 0
    except MPI.Exception:
        return 0


def _know_type(kind: MPI.Datatype, size: int) -> None:
    _types[kind.handle & MASK] = kind
    if len(kind.typechar) == 1 and kind.typechar in NUMBERS:
        item: np.dtype[Any] = np.dtype(kind.typestr)
        if item.itemsize == size == kind.extent:
            _items[kind.handle & MASK] = item


def datatype(handle: int) -> MPI.Datatype:
    """The datatype of a handle."""
    return _types.get(handle & MASK) or MPI.Datatype.fromhandle(handle & MASK)


def operation(handle: int) -> MPI.Op:
    """The operation of a handle."""
    return _ops.get(handle & MASK) or MPI.Op.fromhandle(handle & MASK)


def integer(word: int) -> int:
    """The C integer in the lower half of an argument's machine word."""
    return (word & 0x7FFFFFFF) - (word & 0x80000000)


def integers(address: int, number: int) -> NDArray[np.int32]:
    """A copy of C integers in memory, shape (number,).

    :raises ValueError: if there is no memory.
    """
    if not address:
        raise ValueError("expecting the address of counts, got none")
    return np.frombuffer(_view(address, 4 * number), np.int32).copy()


def message(address: int, count: int, handle: int, blocks: int = 1, *, of_all: bool = False) -> Any:
    """A message of equal blocks.

    :param address: where it begins; 0 if the datatype has addresses.
    :param count: items of each block, as the machine word of the argument.
    :param handle: the datatype, as the machine word of the argument.
    :param blocks: number of blocks.
    :param of_all: whether mpi4py takes the count of all blocks in this call, and not of one.
    :raises ValueError: if the count is negative.
    """
    if address == IN_PLACE:
        return MPI.IN_PLACE
    key = address, integer(count) * blocks, handle & MASK
    found = _arrays.get(key)
    return _message(key, blocks, of_all) if found is None else found


def _message(key: tuple[int, int, int], blocks: int, of_all: bool) -> Any:
    address, number, handle = key
    if number < 0:
        raise ValueError(f"expecting a count, got {number}")
    item = _items.get(handle)
    if item is None or not address:
        kind = datatype(handle)
        return [_memory(address, number * _step(kind)), number if of_all else number // blocks, kind]
    if len(_arrays) >= MOST:
        _arrays.clear()
    made: NDArray[Any] = np.ndarray(number, item, _view(address, number * item.itemsize))
    _arrays[key] = made
    return made


def _view(address: int, nbytes: int) -> memoryview:
    return memoryview(MPI.buffer.fromaddress(address, nbytes))  # type: ignore[arg-type]  # typed from Python 3.12 on


def _step(kind: MPI.Datatype) -> int:
    return max(kind.extent, kind.true_extent, 0)


def _memory(address: int, nbytes: int) -> Any:
    return MPI.buffer.fromaddress(address, nbytes) if address else MPI.BOTTOM


def counted(address: int, counts: int, displacements: int, handle: int, ranks: int) -> Any:
    """A message with a block for each rank, of its own count.

    :param address: where displacements begin.
    :param counts: address of the items of each block.
    :param displacements: address of the begin of each block, in items.
    :param handle: the datatype.
    :param ranks: number of blocks.
    :raises ValueError: if counts are missing or negative.
    """
    if address == IN_PLACE:
        return MPI.IN_PLACE
    items, places = _counts(counts, displacements, ranks)
    kind = datatype(handle)
    return [_memory(address, max(0, int((items + places).max())) * _step(kind)), (items, places), kind]


def typed(address: int, counts: int, displacements: int, handles: int, ranks: int) -> Any:
    """A message with a block for each rank, of its own count and datatype.

    :param address: where displacements begin.
    :param counts: address of the items of each block.
    :param displacements: address of the begin of each block, in bytes.
    :param handles: address of the datatypes.
    :param ranks: number of blocks.
    :raises ValueError: if counts are missing or negative.
    """
    if address == IN_PLACE:
        return MPI.IN_PLACE
    items, places = _counts(counts, displacements, ranks)
    words = np.frombuffer(_view(handles, WIDTH * ranks), f"u{WIDTH}").tolist()
    kinds = [datatype(word) for word in words]
    ends = places + items.astype(np.int64) * [_step(kind) for kind in kinds]
    return [_memory(address, max(0, int(ends.max()))), (items, places), kinds]


def _counts(counts: int, displacements: int, ranks: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    items, places = integers(counts, ranks), integers(displacements, ranks)
    if (items < 0).any():
        raise ValueError(f"expecting counts, got {int(items.min())}")
    return items, places
