"""Algorithms whose messages are cut: ``ring/32K`` is ``ring`` with messages of at most 32 KiB."""

from __future__ import annotations

from collections.abc import Iterable

from .registry import ALGORITHMS, MOST_PARTS

__all__ = ["can_be_cut", "cut", "cuttable", "divides", "segments_of", "variants"]

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


def cuttable(collective: str) -> list[str]:
    """Names of the algorithms of a collective whose messages may be cut."""
    return [name for name, one in ALGORITHMS.get(collective, {}).items() if one.cut]


def can_be_cut(collective: str, algorithm: object) -> bool:
    """Whether this is the name of an algorithm of a collective, and of a size of its messages."""
    try:
        name, size = cut(algorithm) if isinstance(algorithm, str) else ("", None)
    except ValueError:
        return False
    return size is not None and name in cuttable(collective)


def divides(collective: str, name: str) -> bool:
    """Whether an algorithm divides a message into as many blocks as one asks for."""
    return ALGORITHMS[collective][name].cut == "blocks"


def segments_of(nbytes: int, most: int) -> int:
    """Into how many parts a message of so many bytes is cut, of at most so many bytes each; 256 parts at most."""
    return min(max(-(-nbytes // most), 1), MOST_PARTS)


def variants(collective: str, names: Iterable[str], nbytes: int, ranks: int) -> list[str]:
    """The algorithms of these names that are worth cutting, cut.

    :param collective: a key of ``ALGORITHMS``.
    :param names: of algorithms; others than those of the collective are passed over.
    :param nbytes: as ``Selector.choose`` counts them.
    :param ranks: among which reductions divide a vector.
    """
    message = nbytes // ranks if collective in ("allreduce", "reduce_scatter") else nbytes
    known = ALGORITHMS.get(collective, {})
    return [
        f"{name}/{size >> 10}K"
        for name in names
        if name in known
        for size, parts in known[name].segments.items()
        if segments_of(message, size) in parts
    ]
