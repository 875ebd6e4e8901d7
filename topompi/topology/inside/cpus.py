"""Sets of CPUs as integers (bit i for CPU i), in the text formats of the Linux kernel and of hwloc."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["MOST_CPUS", "cpu_mask", "lowest", "numbers_of", "read_bitmap", "read_cpu_list", "write_cpu_list"]

MOST_CPUS = 1 << 16  # CPU numbers are below it; limits the memory of a set, and Linux supports at most 8,192 CPUs
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_BITMAP = re.compile(r"(0x)?[0-9a-fA-F]{1,16384}|(0x[0-9a-fA-F]{1,8}|)(,(0x[0-9a-fA-F]{1,8}|)){1,2048}")


def cpu_mask(cpus: Iterable[int]) -> int:
    """The set of the CPUs with the given numbers, as an integer with bit i for CPU i."""
    mask = 0
    for cpu in cpus:
        mask |= 1 << cpu
    return mask


def numbers_of(mask: int) -> list[int]:
    """The numbers of the CPUs in a set (bit i for CPU i), ascending."""
    return [cpu for cpu, digit in enumerate(reversed(f"{mask:b}")) if digit == "1"]


def lowest(mask: int) -> int:
    """The number of the lowest CPU in a set (bit i for CPU i), -1 if the set is empty."""
    return (mask & -mask).bit_length() - 1


def read_cpu_list(text: str) -> int:
    """Parse a list of CPUs in the Linux kernel's format, for example ``0-3,8``, into a set (bit i for CPU i).

    :raises ValueError: if the text is no list, or contains a CPU number of MOST_CPUS or more.
    """
    mask = 0
    for entry in filter(None, text.strip().split(",")):
        match = _RANGE.fullmatch(entry)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < MOST_CPUS:
            raise ValueError(f"expecting a list of CPUs below {MOST_CPUS:,} such as 0-3,8, got {entry[:40]!r}")
        mask |= (1 << last + 1) - (1 << first)
    return mask


def write_cpu_list(mask: int) -> str:
    """Write a set of CPUs (bit i for CPU i) in the Linux kernel's list format, for example ``0-3,8``."""
    entries = []
    while mask:
        first = lowest(mask)
        last = first + lowest(~(mask >> first)) - 1
        entries.append(str(first) if first == last else f"{first}-{last}")
        mask &= -1 << last + 1
    return ",".join(entries)


def read_bitmap(text: str) -> int:
    """Parse a bitmap of CPUs in hwloc's format: hexadecimal 32-bit words, highest first, empty for 0 (``0x1,,0xff``).

    :raises ValueError: if the text is no bitmap, is infinite, or contains a CPU number of MOST_CPUS or more.
    """
    if not _BITMAP.fullmatch(text):
        raise ValueError(f"expecting a set of CPUs below {MOST_CPUS:,} such as 0x000000ff, got {text[:40]!r}")
    words = text.split(",")
    mask = int(words[0] or "0", 16)
    for word in words[1:]:
        mask = mask << 32 | int(word or "0", 16)
    return mask
