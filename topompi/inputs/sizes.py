"""Sizes in bytes as users write them: K, M, G and T are powers of 1,024, whether or not ``i`` or ``B`` follows."""

from __future__ import annotations

import re

__all__ = ["size_in", "unit_bytes"]

_UNITS = {"": 1, "B": 1, "BYTES": 1} | {
    f"{unit}{end}": 1024**power for power, unit in enumerate("KMGT", 1) for end in ("", "I", "B", "IB")
}
_SIZE = re.compile(r"\s*+([0-9]{1,18})\s*+([A-Za-z]*+)\s*+")


def unit_bytes(word: str) -> int | None:
    """The bytes of a unit such as ``k``, ``KiB``, ``bytes`` or, empty, of a byte; None if the word is no unit."""
    return _UNITS.get(word.upper()) if word.isascii() else None


def size_in(text: str) -> int | None:
    """The bytes of a size such as ``64``, ``64k`` or ``64 KiB``; None if the text is no size below 2^63."""
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * (unit_bytes(match[2]) or -1) if match else -1
    return size if 0 <= size < 2**63 else None
