"""Parsing of sizes in bytes (64K, 1M) on the command line."""

from __future__ import annotations

import re

from ..errors import TopompiError

__all__ = ["parse_bytes"]

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,18})([KMG]?)I?B?")


def parse_bytes(text: str, option: str, error: type[TopompiError]) -> int:
    """Convert a size such as ``64``, ``8K`` or ``1M`` to bytes.

    :param text: a number of at least 1, with K, M or G for powers of 1,024, and optionally B or iB.
    :param option: name of the option, for the error message.
    :param error: class of the error that is raised if the text has another form.
    """
    match = _SIZE.fullmatch(text.strip().upper())
    if match is None or int(match[1]) < 1:
        raise error(f"{option}: expecting a number of bytes such as 64, 8K or 1M, got {text!r}")
    return int(match[1]) * UNITS[match[2]]
