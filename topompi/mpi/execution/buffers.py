"""Parsing of message specifications in mpi4py's forms: buffer, counts, displacements, datatype."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_void_p, py_object, pythonapi, string_at
from dataclasses import dataclass
from operator import index
from struct import calcsize, unpack
from typing import Any, SupportsIndex

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

__all__ = [
    "LARGEST_COUNT",
    "Block",
    "Blocks",
    "DeviceMemoryError",
    "Memory",
    "ShortMemoryError",
    "Specification",
    "address_of",
    "block",
    "blocks",
    "integers",
    "is_in_place",
    "message_at",
    "on_device",
    "vector",
    "whole",
]

LARGEST_COUNT = 2**31 - 1  # maximum bytes of one message that every MPI library can count (a C int)

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Memory = MPI.buffer | MPI.BottomType
Specification = tuple[Memory, int, MPI.Datatype]  # a message in mpi4py's form

# numpy's kind code, by DLPack type code and number of lanes (components of an item); a complex number may be described
# as an item of two real components.
DLPACK_KINDS = {(0, 1): "i", (1, 1): "u", (2, 1): "f", (5, 1): "c", (2, 2): "c", (6, 1): "b"}
HOST_KINDS = (1, 3, 11)  # DLPack device types whose memory the host may access: host, and host pinned for a device


class DeviceMemoryError(TypeError):
    """A message lies in a device's or unknown memory, which the host's processors may be unable to read.

    Only the MPI library can send it.
    """


class ShortMemoryError(ValueError):
    """A buffer has less memory than the message's count of entries needs, which mpi4py does not check."""


@dataclass(frozen=True, eq=False, slots=True)
class _Entries:
    """Entries of a datatype in a user's buffer."""

    buffer: Memory
    datatype: MPI.Datatype

    @property
    def dense(self) -> bool:
        """Whether the data of each block are contiguous bytes of one predefined type."""
        if isinstance(self.buffer, type(MPI.BOTTOM)) or not self.datatype.is_predefined:
            return False
        return self.datatype.Get_extent() == (0, self.datatype.Get_size())

    def bytes_of(self, first: int, last: int) -> Bytes:
        """The bytes of entries ``first`` to ``last`` - 1, which must be ``dense``."""
        extent = self.datatype.Get_size()
        memory: Any = self.buffer  # numpy's type hints do not count MPI.buffer as a buffer
        data: Bytes = np.frombuffer(memory, dtype=np.uint8)
        if last * extent > len(data):
            raise ValueError(f"message: expecting a buffer of {last * extent} bytes, got {len(data)}")
        return data[first * extent : last * extent]


@dataclass(frozen=True, eq=False, slots=True)
class Block(_Entries):
    """One block of a datatype in a user's buffer.

    :param buffer: the user's buffer as bytes, or MPI.BOTTOM.
    :param datatype: datatype of the entries.
    :param count: number of entries in the block.
    :param displ: displacement of the first entry from the begin of the buffer, in extents of the datatype.
    """

    count: int
    displ: int = 0

    @property
    def size(self) -> int:
        """Bytes of data in the block, without gaps."""
        return self.count * self.datatype.Get_size()

    @property
    def message(self) -> Specification:
        """The message of the block, in mpi4py's form."""
        if self.displ:
            return message_at(self.address, self.count, self.datatype)
        return self.buffer, self.count, self.datatype

    @property
    def address(self) -> int:
        """Address of the first entry."""
        return address_of(self.buffer) + self.displ * self.datatype.extent

    def require_memory(self) -> None:
        """Raise an error if the buffer is too short. A buffer at ``MPI.BOTTOM`` has no length and is not checked.

        :raises ShortMemoryError: if the buffer is too short; if the datatype has gaps, only if more than one extent is
            missing, because the last entry's gap needs no memory.
        """
        if not isinstance(self.buffer, type(MPI.BOTTOM)):
            extent = self.datatype.extent
            length, have = self.count * extent, self.buffer.nbytes - self.displ * extent
            if length > have + (0 if self.dense else extent):
                raise ShortMemoryError(f"message: expecting a buffer of {length} bytes, got {have}")

    def memory(self) -> MPI.buffer:
        """The memory of all entries, as a buffer object made from its address, which does not keep the memory alive.

        :raises ShortMemoryError: if the buffer is too short.
        """
        self.require_memory()
        return MPI.buffer.fromaddress(self.address, self.count * self.datatype.extent)

    def view(self) -> Bytes:
        """The bytes of the block, which must be ``dense``."""
        return self.bytes_of(self.displ, self.displ + self.count)

    def copy_to(self, target: Bytes, alone: MPI.Intracomm) -> None:
        """Copy the block's data to contiguous bytes.

        :param target: the contiguous bytes, as many as the block has, or fewer.
        :param alone: a communicator of this rank only; a message on it copies data with gaps, by their datatype.
        """
        if self.dense:
            source = self.view()[: len(target)]
            target[: len(source)] = source
        else:
            alone.Sendrecv(self.message, 0, 0, [target, len(target), MPI.PACKED], 0, 0)

    def copy_from(self, source: Bytes, alone: MPI.Intracomm) -> None:
        """Copy contiguous bytes to the block.

        :param source: the contiguous bytes, as many as the block has, or fewer.
        :param alone: a communicator of this rank only; a message on it copies data with gaps, by their datatype.
        """
        if self.dense:
            self.view()[: len(source)] = source
        else:
            count = len(source) // max(1, self.datatype.Get_size())
            alone.Sendrecv([source, len(source), MPI.PACKED], 0, 0, (self.message[0], count, self.datatype), 0, 0)


@dataclass(frozen=True, eq=False)
class Blocks(_Entries):
    """Blocks of a datatype in a user's buffer, one per rank of a communicator.

    :param buffer: the user's buffer as bytes, or MPI.BOTTOM.
    :param datatype: datatype of the entries.
    :param counts: number of entries in each block, shape (blocks,).
    :param displs: displacement of each block's first entry from the begin of the buffer, in extents of the datatype,
        shape (blocks,).
    """

    counts: Integers
    displs: Integers

    @property
    def sizes(self) -> Integers:
        """Bytes of data in each block, without gaps, shape (blocks,)."""
        return self.counts * self.datatype.Get_size()

    @property
    def side_by_side(self) -> bool:
        """Whether each block begins at the end of the previous one."""
        return bool((self.displs[1:] == self.displs[:-1] + self.counts[:-1]).all())

    def view(self) -> Bytes:
        """The bytes of all blocks, which must be ``dense`` and ``side_by_side``."""
        return self.bytes_of(int(self.displs[0]), int(self.displs[-1] + self.counts[-1]))

    def block(self, index: int) -> Block:
        """The block with number ``index``."""
        return Block(self.buffer, self.datatype, int(self.counts[index]), int(self.displs[index]))

    def of_sizes(self, sizes: Integers) -> Blocks:
        """Blocks that begin at the same places, but have the given sizes; used if less data arrive than expected.

        :param sizes: bytes of data in each new block, shape (blocks,).
        """
        entry = max(1, self.datatype.Get_size())
        return Blocks(self.buffer, self.datatype, sizes // entry, self.displs)

    def pack(self, packed: Bytes, order: Integers, alone: MPI.Intracomm) -> None:
        """Copy the blocks one after the other into contiguous bytes.

        :param packed: the bytes, as many as all blocks have together.
        :param order: numbers of the blocks in the order of copying, shape (blocks,).
        :param alone: a communicator of this rank only, which makes the copy, because MPI knows the datatype.
        """
        with self._as_one_entry(order) as message:
            alone.Sendrecv(message, 0, 0, [packed, packed.nbytes, MPI.PACKED], 0, 0)

    def unpack(self, packed: Bytes, order: Integers, alone: MPI.Intracomm) -> None:
        """Copy contiguous bytes to the blocks.

        :param packed: the bytes, as many as all blocks have together.
        :param order: numbers of the blocks in the order of copying, shape (blocks,).
        :param alone: a communicator of this rank only, which makes the copy, because MPI knows the datatype.
        """
        with self._as_one_entry(order) as message:
            alone.Sendrecv([packed, packed.nbytes, MPI.PACKED], 0, 0, message, 0, 0)

    @contextmanager
    def _as_one_entry(self, order: Integers) -> Iterator[Specification]:
        """Provide the message of the blocks in an order, as one entry of a datatype made for them."""
        counts: Any = self.counts[order]  # mpi4py accepts arrays, though its type hints ask for sequences
        displs: Any = self.displs[order]
        layout = self.datatype.Create_indexed(counts, displs).Commit()
        try:
            yield self.buffer, 1, layout
        finally:
            layout.Free()


def address_of(buffer: Memory) -> int:
    """Address of a buffer's first byte; 0 for ``MPI.BOTTOM``."""
    return 0 if isinstance(buffer, type(MPI.BOTTOM)) else int(buffer.address)


def message_at(address: int, count: int, datatype: MPI.Datatype) -> Specification:
    """The message of entries at an address, in mpi4py's form.

    Its buffer has one byte, because mpi4py uses only the buffer's address if a count is given. A displacement would not
    do: mpi4py refuses displacements from MPI.BOTTOM, negative displacements, and displacements beyond a buffer's end,
    all of which calls such as ``Alltoallv`` allow.

    :param address: address of the first entry.
    :param count: number of entries.
    :param datatype: datatype of the entries.
    """
    return MPI.buffer.fromaddress(address, 1), count, datatype


def is_in_place(message: object) -> bool:
    """Whether a message asks for the in-place form: mpi4py takes ``None`` and ``MPI.IN_PLACE``."""
    return message is None or message is MPI.IN_PLACE


def block(message: object, *, readonly: bool) -> Block:
    """The block of a message: ``buf``, ``[buf, count]``, ``[buf, (count, displ), type]``, ...

    :param message: the specification.
    :param readonly: True if the buffer may be read-only, as a send buffer may.
    :raises ValueError, TypeError, BufferError: if the message is malformed; the same errors as mpi4py's.
    """
    return Block(*_simple(message, 1, readonly))


def blocks(message: object, number: int, *, readonly: bool) -> Blocks:
    """The blocks of a message that is divided equally.

    :param message: a specification in the forms that ``block`` takes; without a count the whole buffer is divided.
    :param number: number of blocks; a count in the message is the count of one block.
    :param readonly: True if the buffer may be read-only, as a send buffer may.
    :raises ValueError, TypeError, BufferError: if the message is malformed; the same errors as mpi4py's.
    """
    data, entry, count, displ = _simple(message, number, readonly)
    counts = np.full(number, count, dtype=np.int64)
    return Blocks(data, entry, counts, displ + count * np.arange(number, dtype=np.int64))


def whole(message: object, number: int, *, readonly: bool) -> Block:
    """All blocks of a message that is divided equally, as one block.

    :param message: a specification in the forms that ``block`` takes; without a count the whole buffer is divided.
    :param number: number of blocks; a count in the message is the count of one block.
    :param readonly: True if the buffer may be read-only, as a send buffer may.
    :raises ValueError, TypeError, BufferError: if the message is malformed; the same errors as mpi4py's.
    """
    data, entry, count, displ = _simple(message, number, readonly)
    return Block(data, entry, count * number, displ)


def _simple(message: object, number: int, readonly: bool) -> tuple[Memory, MPI.Datatype, int, int]:
    """Buffer, datatype, entries per block and first entry of a message of ``number`` equal blocks."""
    buffer, count, displ, datatype = _split(message)
    data, entry = _buffer(buffer, datatype, readonly)
    displ = 0 if displ is None else _index(displ, "displacement")
    if displ:
        _check_within(data, entry, displ)
    if count is not None:
        count = _index(count, "count")
        if count and buffer is None:
            raise ValueError(f"message: buffer is None but count is {count}")
        return _believed(buffer, data, entry, displ + count * number), entry, count, displ
    length = _entries(data, entry) - displ
    if length % number:
        raise ValueError(
            f"message: cannot infer count, number of entries {length} is not a multiple of "
            f"required number of blocks {number}"
        )
    return data, entry, length // number, displ


def _check_within(data: Memory, datatype: MPI.Datatype, displ: int) -> None:
    """Raise mpi4py's error for a displacement beyond the buffer's end. Counts are not compared with the length."""
    length, extent = _length(data), datatype.extent
    if extent <= 0:
        raise ValueError(f"message: cannot handle displacement, datatype extent {extent}")
    if displ * extent > length:
        raise ValueError(f"message: displacement {displ} out of bounds, number of entries {length // extent}")


def _believed(given: object, data: Memory, datatype: MPI.Datatype, entries: int) -> Memory:
    """The buffer; if the program gave an address, with ``entries`` entries, because mpi4py then trusts any count."""
    length = entries * datatype.extent
    if isinstance(given, MPI.buffer) and isinstance(data, MPI.buffer) and length > data.nbytes:
        return MPI.buffer.fromaddress(data.address, length, data.readonly)
    return data


def vector(message: object, number: int, *, readonly: bool) -> Blocks:
    """The blocks of a message with counts: ``[buf, counts]``, ``[buf, (counts, displs), type]``, ...

    If counts are missing, the buffer is divided as evenly as possible, and the first blocks have one entry more. If
    displacements are missing, the blocks follow each other; a single displacement is the distance between blocks.

    :param message: the specification; counts and displacements are in entries.
    :param number: number of blocks, one per rank.
    :param readonly: True if the buffer may be read-only, as a send buffer may.
    :raises ValueError, TypeError, BufferError: if the message is malformed; the same errors as mpi4py's.
    """
    buffer, counts, displs, datatype = _split(message, vector=True)
    data, entry = _buffer(buffer, datatype, readonly)
    if counts is None:
        whole, more = divmod(_entries(data, entry), number)
        counts = whole + (np.arange(number) < more)
    counts = integers(counts, number)
    if displs is None:
        displs = np.concatenate(([0], np.cumsum(counts)[:-1]))
    elif np.ndim(displs) == 0:
        displs = _index(displs, "displacement", signed=True) * np.arange(number)
    counts, displs = integers(counts, number), integers(displs, number)
    return Blocks(_believed(buffer, data, entry, int((displs + counts).max(initial=0))), entry, counts, displs)


def _split(message: object, vector: bool = False) -> tuple[Any, Any, Any, Any]:
    """Buffer, count(s), displacement(s) and datatype of a message; None for a part that it does not have."""
    if message is None:
        raise TypeError("message: expecting buffer or list/tuple")
    if not isinstance(message, (list, tuple)):
        return message, None, None, None
    if len(message) == 4:
        return message[0], message[1], message[2], message[3]
    if len(message) == 3:
        buffer, count, datatype = message
    elif len(message) == 2:
        buffer, count = message
        datatype = None
        if isinstance(count, (MPI.Datatype, str)):
            count, datatype = None, count
    else:
        raise ValueError("message: expecting 2 to 4 items")
    pairs = tuple if vector else (tuple, list)  # if blocks have counts, a list has the counts
    count, displ = count if isinstance(count, pairs) else (count, None)
    return buffer, count, displ, datatype


def _buffer(buffer: Any, datatype: MPI.Datatype | str | None, readonly: bool) -> tuple[Memory, MPI.Datatype]:
    if datatype is not None and not isinstance(datatype, MPI.Datatype):
        datatype = MPI.Datatype.fromcode(datatype)
    if isinstance(buffer, type(MPI.BOTTOM)):
        if datatype is None:
            raise TypeError("message: expecting a datatype with MPI.BOTTOM")
        return buffer, datatype
    if buffer is MPI.IN_PLACE:
        raise TypeError("message: expecting a buffer, got MPI.IN_PLACE")
    if buffer is None:
        return MPI.buffer.fromaddress(0, 0), MPI.BYTE if datatype is None else datatype
    data = MPI.buffer.frombuffer(buffer, readonly=readonly)
    try:
        code = memoryview(buffer).format
    except TypeError:
        code = _code_on_host(buffer)
    except ValueError:  # host memory of items without a code, for example numpy's dates: the datatype describes them
        if datatype is None:
            raise
        return data, datatype
    return data, MPI.Datatype.fromcode(code.lstrip("@=<")) if datatype is None else datatype


def on_device(message: object) -> bool:
    """Whether a message's buffer lies in a device's memory, or in unknown memory.

    :param message: a specification in any form.
    """
    buffer: Any = message[0] if isinstance(message, (list, tuple)) and message else message
    if is_in_place(buffer) or isinstance(buffer, type(MPI.BOTTOM)):
        return False
    try:
        memoryview(buffer)
    except TypeError:
        try:
            _code_on_host(buffer)
        except DeviceMemoryError:
            return hasattr(buffer, "__dlpack_device__") or hasattr(buffer, "__cuda_array_interface__")
        except Exception:  # the reader of the message raises the error
            return False
    except ValueError:  # the array is in host memory, but its items have no type code
        return False
    return False


def _code_on_host(buffer: Any) -> str:
    """The type code of the items of an array that shares its memory only by DLPack.

    :raises DeviceMemoryError: if its memory is a device's, or unknown.
    """
    where = getattr(buffer, "__dlpack_device__", None)
    if where is None or where()[0] not in HOST_KINDS:
        raise DeviceMemoryError("message: expecting memory of the host")
    kind, bits, lanes = _type_of(buffer.__dlpack__())
    try:
        return np.dtype(f"{DLPACK_KINDS[kind, lanes]}{bits * lanes // 8}").char
    except (KeyError, TypeError):
        return "B"  # bytes, which mpi4py assumes for a type without a code


def _type_of(capsule: object) -> tuple[int, int, int]:
    """Type code, bits and number of lanes (components) of the items of a DLPack tensor.

    They are read from memory, because numpy refuses tensors of types that it lacks.

    The tensor begins with an address, two numbers for the device and the number of dimensions (20 bytes); the type
    follows.
    """
    get = pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    kind, bits, lanes = unpack("=BBH", string_at(get(capsule, b"dltensor") + calcsize("Piii"), 4))
    return kind, bits, lanes


def _length(data: Memory) -> int:
    """Bytes of a buffer; 0 for ``MPI.BOTTOM``."""
    return 0 if isinstance(data, type(MPI.BOTTOM)) else int(data.nbytes)


def _entries(data: Memory, datatype: MPI.Datatype) -> int:
    length = _length(data)
    if not length:
        return 0
    _, extent = datatype.Get_extent()
    if extent <= 0 or length % extent:
        raise ValueError(
            f"message: cannot infer count, buffer length {length} is not a multiple of datatype extent {extent}"
        )
    return length // extent


def _index(value: SupportsIndex, what: str, signed: bool = False) -> int:
    number = index(value)
    if number < 0 and not signed:
        raise ValueError(f"message: negative {what} {number}")
    return number


def integers(values: Any, number: int) -> Integers:
    """Counts or displacements as mpi4py takes them: whole numbers, one per block, or one number for all blocks.

    :param values: the numbers.
    :param number: number of blocks.
    :raises ValueError, TypeError: if these are other than so many whole numbers.
    """
    if np.ndim(values) == 0:
        return np.full(number, _index(values, "count"), dtype=np.int64)
    array = np.asarray(values)
    if array.shape != (number,):
        raise ValueError(f"expecting {number} items, got {array.size}")
    if array.dtype.kind not in ("iu" if array is values else "iub"):  # mpi4py takes lists of bools, and no arrays
        raise TypeError(f"expecting whole numbers, got {array.dtype}")
    return array.astype(np.int64, copy=False)
