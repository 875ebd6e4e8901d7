"""Reading message specifications as mpi4py's collectives take them: buffer, counts, displacements, datatype."""

from __future__ import annotations

from ctypes import c_char_p, c_void_p, py_object, pythonapi, string_at
from dataclasses import dataclass
from operator import index
from struct import calcsize, unpack
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

__all__ = [
    "LARGEST_COUNT",
    "Block",
    "Blocks",
    "DeviceMemoryError",
    "ShortMemoryError",
    "address_of",
    "block",
    "blocks",
    "is_in_place",
    "message_at",
    "on_device",
    "vector",
    "whole",
]

LARGEST_COUNT = 2**31 - 1  # bytes of one message that every MPI can count

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

# Kinds of items as DLPack numbers them, and their lanes: a complex number may be two real ones.
DLPACK_KINDS = {(0, 1): "i", (1, 1): "u", (2, 1): "f", (5, 1): "c", (2, 2): "c", (6, 1): "b"}
HOST_KINDS = (1, 3, 11)  # of memory, as DLPack numbers them: the host's, also where it is pinned for a device


class DeviceMemoryError(TypeError):
    """A message that lies where the host's processors may not read: the MPI library's to send."""


class ShortMemoryError(ValueError):
    """A buffer with less memory than its count says: mpi4py does not compare them."""


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """One block of a datatype in a user's buffer.

    :param buffer: what MPI takes as address: the user's buffer as bytes, or MPI.BOTTOM.
    :param count: entries of the block.
    :param displ: its first entry, in extents from the buffer's start.
    """

    buffer: Any
    datatype: MPI.Datatype
    count: int
    displ: int = 0

    @property
    def size(self) -> int:
        """Bytes of data in the block."""
        return self.count * self.datatype.Get_size()

    @property
    def dense(self) -> bool:
        """Whether the data of the block are its bytes in memory."""
        return _is_dense(self.buffer, self.datatype)

    @property
    def message(self) -> list[Any]:
        """The block as mpi4py takes it."""
        if self.displ:
            return message_at(self.address, self.count, self.datatype)
        return [self.buffer, self.count, self.datatype]

    @property
    def address(self) -> int:
        """Address of the first entry."""
        return address_of(self.buffer) + self.displ * self.datatype.extent

    def require_memory(self) -> None:
        """Refuse a buffer that is too short; one at ``MPI.BOTTOM`` has no length.

        :raises ShortMemoryError: for a buffer that is shorter; where the datatype has gaps, by more than one extent.
        """
        if not isinstance(self.buffer, type(MPI.BOTTOM)):
            extent = self.datatype.extent
            length, have = self.count * extent, self.buffer.nbytes - self.displ * extent
            if length > have + (0 if self.dense else extent):
                raise ShortMemoryError(f"message: expecting a buffer of {length} bytes, got {have}")

    def memory(self) -> MPI.buffer:
        """The memory from the first entry to the last one's extent, by address: it does not keep the buffer alive.

        :raises ShortMemoryError: as ``require_memory``.
        """
        self.require_memory()
        return MPI.buffer.fromaddress(self.address, self.count * self.datatype.extent)

    def view(self) -> Bytes:
        """The block's bytes; only where ``dense``."""
        return _bytes(self.buffer, self.datatype, self.displ, self.displ + self.count)

    def copy_to(self, target: Bytes, alone: MPI.Intracomm) -> None:
        """Copy the block to bytes elsewhere.

        :param alone: a communicator of this rank only, which copies what is not dense: MPI knows every datatype.
        """
        if self.dense:
            source = self.view()[: len(target)]
            target[: len(source)] = source
        else:
            alone.Sendrecv(self.message, 0, 0, [target, len(target), MPI.PACKED], 0, 0)

    def copy_from(self, source: Bytes, alone: MPI.Intracomm) -> None:
        """Copy bytes from elsewhere to the block; they may be fewer than it holds."""
        if self.dense:
            self.view()[: len(source)] = source
        else:
            count = len(source) // max(1, self.datatype.Get_size())
            alone.Sendrecv([source, len(source), MPI.PACKED], 0, 0, [*self.message[:1], count, self.datatype], 0, 0)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of a datatype in a user's buffer, one for each rank of a communicator.

    :param buffer: what MPI takes as address: the user's buffer as bytes, or MPI.BOTTOM.
    :param counts: entries of each block, shape (blocks,).
    :param displs: first entry of each block, in extents from the buffer's start, shape (blocks,).
    """

    buffer: Any
    datatype: MPI.Datatype
    counts: Integers
    displs: Integers

    @property
    def sizes(self) -> Integers:
        """Bytes of data in each block, shape (blocks,)."""
        return self.counts * self.datatype.Get_size()

    @property
    def dense(self) -> bool:
        """Whether the data of a block are its bytes in memory."""
        return _is_dense(self.buffer, self.datatype)

    @property
    def side_by_side(self) -> bool:
        """Whether each block begins where the one before it ends."""
        return bool((self.displs[1:] == self.displs[:-1] + self.counts[:-1]).all())

    def view(self) -> Bytes:
        """The bytes of all blocks; only where ``dense`` and ``side_by_side``."""
        return _bytes(self.buffer, self.datatype, int(self.displs[0]), int(self.displs[-1] + self.counts[-1]))

    def block(self, index: int) -> Block:
        """One of the blocks."""
        return Block(self.buffer, self.datatype, int(self.counts[index]), int(self.displs[index]))

    def of_sizes(self, sizes: Integers) -> Blocks:
        """The same blocks with other sizes in bytes, for senders that send less than was expected; shape (blocks,)."""
        entry = max(1, self.datatype.Get_size())
        return Blocks(self.buffer, self.datatype, sizes // entry, self.displs)

    def pack(self, packed: Bytes, order: Integers, alone: MPI.Intracomm) -> None:
        """Copy the blocks, in the given order, one after the other into ``packed``.

        :param packed: bytes, as many as the blocks have together.
        :param order: number of each block to copy, shape (blocks,).
        :param alone: a communicator of this rank only, which does the copying: MPI knows every datatype.
        """
        layout = self._indexed(order)
        try:
            alone.Sendrecv([self.buffer, 1, layout], 0, 0, [packed, packed.nbytes, MPI.PACKED], 0, 0)
        finally:
            layout.Free()

    def unpack(self, packed: Bytes, order: Integers, alone: MPI.Intracomm) -> None:
        """Copy the bytes in ``packed`` to the blocks, in the given order.

        :param packed: bytes, as many as the blocks have together.
        :param order: number of each block to fill, shape (blocks,).
        :param alone: a communicator of this rank only, which does the copying: MPI knows every datatype.
        """
        layout = self._indexed(order)
        try:
            alone.Sendrecv([packed, packed.nbytes, MPI.PACKED], 0, 0, [self.buffer, 1, layout], 0, 0)
        finally:
            layout.Free()

    def _indexed(self, order: Integers) -> MPI.Datatype:
        counts: Any = self.counts[order]  # mpi4py takes arrays for sequences, though its types do not say so
        displs: Any = self.displs[order]
        return self.datatype.Create_indexed(counts, displs).Commit()


def _is_dense(buffer: Any, datatype: MPI.Datatype) -> bool:
    """A predefined type without holes in a real buffer."""
    if isinstance(buffer, type(MPI.BOTTOM)) or not datatype.is_predefined:
        return False
    return datatype.Get_extent() == (0, datatype.Get_size())


def _bytes(buffer: Any, datatype: MPI.Datatype, first: int, last: int) -> Bytes:
    """The bytes of the entries ``first:last`` of a dense datatype."""
    extent = datatype.Get_size()
    data = np.frombuffer(buffer, dtype=np.uint8)
    if last * extent > len(data):
        raise ValueError(f"message: expecting a buffer of {last * extent} bytes, got {len(data)}")
    return data[first * extent : last * extent]


def address_of(buffer: Any) -> int:
    """Address of a buffer's first byte."""
    return 0 if isinstance(buffer, type(MPI.BOTTOM)) else int(buffer.address)


def message_at(address: int, count: int, datatype: MPI.Datatype) -> list[Any]:
    """The message of entries at an address, as mpi4py takes it: with a count it uses only the address of the buffer.

    An address may lie anywhere. Displacements may not: mpi4py refuses those from MPI.BOTTOM, negative ones and those
    beyond a buffer's end, all of which the v-forms allow.

    :param address: of the first entry.
    :param count: number of entries.
    :param datatype: of the entries.
    """
    return [MPI.buffer.fromaddress(address, 1), count, datatype]


def is_in_place(message: Any) -> bool:
    """Whether a message asks for the in-place variant, in either spelling of mpi4py."""
    return message is None or message is MPI.IN_PLACE


def block(message: Any, *, readonly: bool) -> Block:
    """The block of a message: ``buf``, ``[buf, count]``, ``[buf, (count, displ), type]``, and so on.

    :raises ValueError, TypeError, BufferError: where mpi4py would, for a message that says nothing sensible.
    """
    return Block(*_simple(message, 1, readonly))


def blocks(message: Any, number: int, *, readonly: bool) -> Blocks:
    """The blocks of a message that is divided equally.

    :param message: a specification as ``block`` takes it; without a count the whole buffer is divided.
    :param number: of blocks; a count in the message is that of one of them.
    :param readonly: whether the buffer may be read-only, as that of what is sent.
    :raises ValueError, TypeError, BufferError: where mpi4py would, for a message that says nothing sensible.
    """
    data, entry, count, displ = _simple(message, number, readonly)
    counts = np.full(number, count, dtype=np.int64)
    return Blocks(data, entry, counts, displ + count * np.arange(number, dtype=np.int64))


def whole(message: Any, number: int, *, readonly: bool) -> Block:
    """All blocks of a message that is divided equally, as one block.

    :param message: a specification as ``blocks`` takes it.
    :param number: of blocks; a count in the message is that of one of them.
    :param readonly: whether the buffer may be read-only, as that of what is sent.
    :raises ValueError, TypeError, BufferError: where mpi4py would, for a message that says nothing sensible.
    """
    data, entry, count, displ = _simple(message, number, readonly)
    return Block(data, entry, count * number, displ)


def _simple(message: Any, number: int, readonly: bool) -> tuple[Any, MPI.Datatype, int, int]:
    """Buffer, datatype, entries of each of ``number`` blocks, and the first entry."""
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


def _check_within(data: Any, datatype: MPI.Datatype, displ: int) -> None:
    """Refuse a displacement behind the buffer's end, as mpi4py; a count it does not compare with the length."""
    length, extent = _length(data), datatype.extent
    if extent <= 0:
        raise ValueError(f"message: cannot handle displacement, datatype extent {extent}")
    if displ * extent > length:
        raise ValueError(f"message: displacement {displ} out of bounds, number of entries {length // extent}")


def _believed(given: Any, data: Any, datatype: MPI.Datatype, entries: int) -> Any:
    """Memory that a program names by its address is as long as its count says; mpi4py believes any count."""
    length = entries * datatype.extent
    if not isinstance(given, MPI.buffer) or length <= data.nbytes:
        return data
    return MPI.buffer.fromaddress(data.address, length, data.readonly)


def vector(message: Any, number: int, *, readonly: bool) -> Blocks:
    """The blocks of a message with counts: ``[buf, counts]``, ``[buf, (counts, displs), type]``, ...

    Without counts the buffer is divided as evenly as possible, with one entry more in the first blocks; without
    displacements the blocks follow one another; one number for all displacements is a stride.

    :param message: the specification; counts and displacements are in entries.
    :param number: of blocks, one for each rank.
    :param readonly: whether the buffer may be read-only, as that of what is sent.
    :raises ValueError, TypeError, BufferError: where mpi4py would, for a message that says nothing sensible.
    """
    buffer, counts, displs, datatype = _split(message, vector=True)
    data, entry = _buffer(buffer, datatype, readonly)
    if counts is None:
        whole, more = divmod(_entries(data, entry), number)
        counts = whole + (np.arange(number) < more)
    counts = _integers(counts, number)
    if displs is None:
        displs = np.concatenate(([0], np.cumsum(counts)[:-1]))
    elif np.ndim(displs) == 0:
        displs = _index(displs, "displacement", signed=True) * np.arange(number)
    counts, displs = _integers(counts, number), _integers(displs, number)
    return Blocks(_believed(buffer, data, entry, int((displs + counts).max(initial=0))), entry, counts, displs)


def _split(message: Any, vector: bool = False) -> tuple[Any, Any, Any, Any]:
    """Buffer, count(s), displacement(s) and datatype of a message; None for what it does not say."""
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
    pairs = tuple if vector else (tuple, list)  # with counts, a list is the counts
    count, displ = count if isinstance(count, pairs) else (count, None)
    return buffer, count, displ, datatype


def _buffer(buffer: Any, datatype: Any, readonly: bool) -> tuple[Any, MPI.Datatype]:
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
    except ValueError:  # the host's, of items that have no code, as numpy's dates: the datatype says what they are
        if datatype is None:
            raise
        return data, datatype
    return data, MPI.Datatype.fromcode(code.lstrip("@=<")) if datatype is None else datatype


def on_device(message: Any) -> bool:
    """Whether the buffer of a message lies in a device's memory, or says nothing of where it lies.

    :param message: a specification of any form.
    """
    buffer = message[0] if isinstance(message, (list, tuple)) and message else message
    if is_in_place(buffer) or isinstance(buffer, type(MPI.BOTTOM)):
        return False
    try:
        memoryview(buffer)
    except TypeError:
        try:
            _code_on_host(buffer)
        except DeviceMemoryError:
            return hasattr(buffer, "__dlpack_device__") or hasattr(buffer, "__cuda_array_interface__")
        except Exception:  # for the reader of the message to say
            return False
    except ValueError:  # the host's, of items that have no code
        return False
    return False


def _code_on_host(buffer: Any) -> str:
    """The type of the items of an array that shares its memory by DLPack only.

    :raises DeviceMemoryError: where it is not the host's, or nothing says that it is.
    """
    where = getattr(buffer, "__dlpack_device__", None)
    if where is None or where()[0] not in HOST_KINDS:
        raise DeviceMemoryError("message: expecting memory of the host")
    kind, bits, lanes = _type_of(buffer.__dlpack__())
    try:
        return np.dtype(f"{DLPACK_KINDS[kind, lanes]}{bits * lanes // 8}").char
    except (KeyError, TypeError):
        return "B"  # bytes, as mpi4py, where a type has no code


def _type_of(capsule: Any) -> tuple[int, int, int]:
    """Kind, bits and lanes of the items of a DLPack tensor, which numpy does not tell of all kinds.

    The tensor begins with an address, two numbers for the device and one of dimensions: 20 bytes, then the type.
    """
    get = pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    kind, bits, lanes = unpack("=BBH", string_at(get(capsule, b"dltensor") + calcsize("Piii"), 4))
    return kind, bits, lanes


def _length(data: Any) -> int:
    """Bytes of a buffer; 0 at ``MPI.BOTTOM``."""
    return 0 if isinstance(data, type(MPI.BOTTOM)) else int(data.nbytes)


def _entries(data: Any, datatype: MPI.Datatype) -> int:
    length = _length(data)
    if not length:
        return 0
    _, extent = datatype.Get_extent()
    if extent <= 0 or length % extent:
        raise ValueError(
            f"message: cannot infer count, buffer length {length} is not a multiple of datatype extent {extent}"
        )
    return length // extent


def _index(value: Any, what: str, signed: bool = False) -> int:
    value = index(value)
    if value < 0 and not signed:
        raise ValueError(f"message: negative {what} {value}")
    return int(value)


def _integers(values: Any, number: int) -> Integers:
    if np.ndim(values) == 0:
        return np.full(number, _index(values, "count"), dtype=np.int64)
    array = np.asarray(values)
    if array.shape != (number,):
        raise ValueError(f"expecting {number} items, got {array.size}")
    if array.dtype.kind not in "iub":
        raise TypeError(f"expecting whole numbers, got {array.dtype}")
    return array.astype(np.int64, copy=False)
