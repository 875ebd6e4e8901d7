"""Cache files of topompi, which are replaced as a whole, readable by their owner only, and ignored if damaged."""

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
    """Write a file that only its owner can read, in place of an older one.

    Other processes see either the old content or the new, never a part of it.

    :raises OSError: if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_text(path, text, private=True)


def write_cache(path: Path, text: str) -> None:
    """Write a file as `replace_file` does; if it cannot be written, leave it unchanged and raise no error."""
    with suppress(OSError):
        replace_file(path, text)


def read_cache(path: Path, sound: Callable[[Any], bool]) -> Any:
    """Return the JSON value in a cache file, or None if there is no file.

    If the file is damaged, the result is None, too, and a line on standard error reports it, once per file.

    :param path: path of the file.
    :param sound: function that returns whether a value has the form that this version of topompi writes; if not, the
        file counts as damaged.
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
