"""Files of the kernel in /proc and /sys, which have no size and may vanish at any time."""

from __future__ import annotations

import os

__all__ = ["kernel_bytes", "kernel_text"]

_MOST = 1 << 16


def kernel_bytes(path: str | os.PathLike[str], most: int = _MOST) -> bytes | None:
    """Return the first bytes of a file of the kernel; None if it cannot be read.

    :param path: path of the file.
    :param most: largest number of bytes to read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            found = bytearray()
            while len(found) < most and (chunk := os.read(fd, most - len(found))):
                found += chunk
        finally:
            os.close(fd)
    except OSError:
        return None
    return bytes(found)


def kernel_text(path: str | os.PathLike[str], most: int = _MOST) -> str:
    """Return the same as text without blanks at its ends; empty if the file cannot be read.

    :param path: path of the file.
    :param most: largest number of bytes to read.
    """
    return (kernel_bytes(path, most) or b"").decode("utf-8", errors="replace").strip()
