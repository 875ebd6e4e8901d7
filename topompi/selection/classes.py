"""The classes of calls that share a choice: by method, size and the needs of the operation."""

from __future__ import annotations

from ..execution.specs import Needs

__all__ = ["Key", "class_bytes", "size_class"]

Key = tuple[str, int, Needs]  # method, size class, the demands of a reduction's operation


def size_class(nbytes: int) -> int:
    """Class of a size in bytes: its bit length, so that a class holds 2**(k - 1) to 2**k - 1 bytes; 0 holds 0."""
    return nbytes.bit_length()


def class_bytes(number: int) -> tuple[int, int]:
    """Smallest and largest size in bytes of a class."""
    return (1 << number >> 1, (1 << number) - 1)
