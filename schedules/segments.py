"""Algorithms whose messages are cut: ``ring/32K`` is ``ring`` with messages of at most 32 KiB."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["CUTTABLE", "DIVIDING", "can_be_cut", "cut", "segments_of", "variants"]

# Algorithms that can be cut, by collective: those that divide a message into as many blocks as one likes, and those
# each of whose transfers is one block, whole, all the way: the parts of the blocks then travel on lanes of their own.
CUTTABLE: dict[str, tuple[str, ...]] = {
    "bcast": ("chain", "circulant"),
    "reduce": ("chain", "circulant"),
    "allgather": ("ring",),
    "reduce_scatter": ("ring",),
    "allreduce": ("ring",),
    "scan": ("chain",),
    "exscan": ("chain",),
    "alltoall": ("pairwise", "shift", "tacs2", "even", "joint"),
}
DIVIDING = ("chain", "circulant")  # the former
MOST = 256  # parts of a message
# Bytes to cut to, and for how many parts. Long messages wait for the receiver's word before they go, which waits in the
# queues of loaded links. 32 KiB are below where MPI libraries begin to ask over TCP; shorter ones fill a chain of some
# dozen ranks sooner. Those that divide have 8 parts by themselves; fewer spare a short message some start-ups.
_OFFERED = {
    "chain": {8 << 10: range(9, MOST + 1), 16 << 10: range(9, MOST + 1)},
    "circulant": {4 << 10: range(3, 8), 16 << 10: range(9, MOST + 1)},
}
_ELSE = {32 << 10: range(2, MOST + 1)}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def cut(algorithm: str) -> tuple[str, int | None]:
    """The name of an algorithm, and the bytes of its messages at most; None where it is not cut.

    :raises ValueError: for a size that is none.
    """
    name, slash, size = algorithm.partition("/")
    if not slash:
        return name, None
    number, unit = (size[:-1], size[-1:]) if size[-1:] in ("K", "M") else (size, "")
    if not number.isdecimal() or int(number) == 0:
        raise ValueError(f"expecting bytes as 32K behind the slash, got {algorithm!r}")
    return name, int(number) * _UNITS[unit]


def can_be_cut(collective: str, algorithm: object) -> bool:
    """Whether this is the name of an algorithm of a collective, and of a size of its messages."""
    try:
        name, size = cut(algorithm) if isinstance(algorithm, str) else ("", None)
    except ValueError:
        return False
    return size is not None and name in CUTTABLE.get(collective, ())


def segments_of(nbytes: int, most: int) -> int:
    """Into how many parts a message of so many bytes is cut, of at most so many bytes each; 256 parts at most."""
    return min(max(-(-nbytes // most), 1), MOST)


def variants(collective: str, names: Iterable[str], nbytes: int, ranks: int) -> list[str]:
    """The algorithms of these names that are worth cutting, cut.

    :param nbytes: as ``Selector.choose`` counts them.
    """
    message = nbytes // ranks if collective in ("allreduce", "reduce_scatter") else nbytes
    some = [name for name in names if name in CUTTABLE.get(collective, ())]
    return [
        f"{name}/{size >> 10}K"
        for name in some
        for size, parts in _OFFERED.get(name, _ELSE).items()
        if segments_of(message, size) in parts
    ]
