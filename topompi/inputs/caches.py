"""Files that topompi keeps for itself: written as a whole, for their owner only, and ignored where damaged."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import SourceError, TopompiError
from .files import read_text
from .jsontext import parse_json
from .writing import write_text

__all__ = ["read_cache", "replace_file", "write_cache"]

_noted: set[Path] = set()


def replace_file(path: Path, text: str) -> None:
    """Write a file that its owner alone can read: other processes see all of the old one or all of the new one.

    :raises OSError: if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_text(path, text, private=True)


def write_cache(path: Path, text: str) -> None:
    """As `replace_file`, but a full disk or a folder that cannot be written is no error: the cache stays as it was."""
    with suppress(OSError):
        replace_file(path, text)


def read_cache(path: Path, sound: Callable[[Any], bool]) -> Any:
    """The JSON value of a cache file, None where there is none.

    A damaged one counts as none; a line on standard error says so, once for each file.

    :param path: the file's path.
    :param sound: whether a value is of the form that was written.
    """
    if not os.path.lexists(path):
        return None
    try:
        value = parse_json(read_text(path, SourceError, "a cache"), str(path), SourceError)
        if sound(value):
            return value
        raise SourceError(f"{path}: expecting what this version of topompi writes, got something else")
    except TopompiError as error:
        if path not in _noted:
            _noted.add(path)
            print(f"topompi: {error}; ignored", file=sys.stderr, flush=True)
        return None
