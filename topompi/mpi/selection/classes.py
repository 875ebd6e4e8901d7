"""The classes of calls: calls with the same method, size class and needs of the operation get the same algorithm."""

from __future__ import annotations

from ..execution.specs import Needs

__all__ = ["Key", "class_bytes", "middle_of", "size_class"]

Key = tuple[str, int, Needs]  # a class of calls: method, size class, needs of a reduction's operation


def size_class(nbytes: int) -> int:
    """The class of a size in bytes: its bit length k. Class k has sizes from 2**(k - 1) to 2**k - 1, class 0 only 0."""
    return nbytes.bit_length()


def class_bytes(number: int) -> tuple[int, int]:
    """Smallest and largest size in bytes of a size class, which is a bit length."""
    return (1 << number >> 1, (1 << number) - 1)


def middle_of(number: int) -> int:
    """The size in bytes for which the cost model predicts the times of a size class, which is a bit length."""
    return (sum(class_bytes(number)) + 1) // 2
