"""How many bytes a call moves, as far as all ranks know it alike: what selection goes by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..execution.buffers import block, blocks, is_in_place, vector

__all__ = ["UNEVEN", "nbytes", "own_bytes"]

UNEVEN = ("Alltoallv", "Alltoallw")  # each rank has blocks of its own sizes, for every other


def nbytes(method: str, arguments: tuple[Any, ...], size: int) -> int:
    """Bytes of a call: of the message of a broadcast or the vector of a reduction, else of one block.

    Where ranks cannot know alike (counts of each rank's own), it is 0; see ``own_bytes``.

    :param arguments: of the mpi4py method, all of them.
    :param size: number of ranks.
    :raises ValueError, TypeError, BufferError: for a message that says nothing sensible.
    """
    measure = _MEASURES.get(method)
    return 0 if measure is None else measure(arguments, size)


def own_bytes(method: str, arguments: tuple[Any, ...], size: int) -> int:
    """Mean bytes of the blocks that this rank sends, or in place receives, in a call of ``UNEVEN``; 0 of what is not
    understood, for all ranks have to say something."""
    from ..execution.operands import typed  # as late as in ``collectives``
    from ..execution.program import Pieces

    sendbuf, recvbuf = arguments[:2]
    message = recvbuf if is_in_place(sendbuf) else sendbuf
    try:
        pieces = (
            typed(message, size, True) if method == "Alltoallw" else Pieces.of(vector(message, size, readonly=True))
        )
    except Exception:  # whatever it is, the call itself will say so
        return 0
    return int(sum(piece[1] * piece[2].Get_size() for piece in pieces.messages if piece)) // size


def _bytes(message: Any, number: int = 1) -> int:
    """Bytes of one of so many equal blocks."""
    if not isinstance(message, (list, tuple)):
        try:
            return memoryview(message).nbytes // number
        except TypeError:
            pass  # it may still be a buffer of another kind
    if number == 1:
        return block(message, readonly=True).size
    return blocks(message, number, readonly=True).block(0).size


def _first(arguments: tuple[Any, ...], size: int) -> int:
    return _bytes(arguments[0])


def _own_block(arguments: tuple[Any, ...], size: int) -> int:
    """A gather's block: this rank's own, or, in place, the root's room for one."""
    sendbuf, recvbuf = arguments[:2]
    return _bytes(recvbuf, size) if is_in_place(sendbuf) else _bytes(sendbuf)


def _wanted_block(arguments: tuple[Any, ...], size: int) -> int:
    """A scatter's block: the one this rank gets, or, in place, one of the root's."""
    sendbuf, recvbuf = arguments[:2]
    return _bytes(sendbuf, size) if is_in_place(recvbuf) else _bytes(recvbuf)


def _received_block(arguments: tuple[Any, ...], size: int) -> int:
    return _bytes(arguments[1], size)


def _received(arguments: tuple[Any, ...], size: int) -> int:
    return _bytes(arguments[1])


def _vector(arguments: tuple[Any, ...], size: int) -> int:
    """A reduction's vector, which stands in the receive buffer in the in-place variant."""
    sendbuf, recvbuf = arguments[:2]
    return _bytes(recvbuf if is_in_place(sendbuf) else sendbuf)


def _vector_of_blocks(arguments: tuple[Any, ...], size: int) -> int:
    sendbuf, recvbuf = arguments[:2]
    return size * _bytes(recvbuf if is_in_place(sendbuf) else sendbuf, size)


_MEASURES: dict[str, Callable[[tuple[Any, ...], int], int]] = {
    "Bcast": _first,
    "Gather": _own_block,
    "Scatter": _wanted_block,
    "Allgather": _received_block,
    "Alltoall": _received_block,
    "Allreduce": _received,
    "Reduce": _vector,
    "Reduce_scatter": _vector,
    "Reduce_scatter_block": _vector_of_blocks,
}
