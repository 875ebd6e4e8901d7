"""Messages about files that a command could not read, with the kind of a file that another program wrote."""

from __future__ import annotations

import os
import re

from ..errors import TopompiError
from .files import open_inputs
from .kinds import foreign

__all__ = ["in_words"]


def in_words(error: BaseException) -> str:
    """Return the message of an error; if it is about a file of another program, the message names the kind of the file.

    What the reader met in the file is left out then, because it says less than the kind.

    :param error: the error; its message begins with the file's name, as those of all readers do.
    """
    words, classes = str(error), set[str]()
    cause: BaseException | None = error
    while cause is not None:
        classes.add(type(cause).__name__)
        cause = cause.__cause__
    data = _beginning(words)
    kind = foreign(data, classes)
    if not kind or kind in words:
        return words
    wanted = words.rpartition(", got ")[0]
    kind = foreign(data, classes, wanted.rpartition("expecting ")[2])
    return f"{wanted}, got {kind}" if wanted else f"{words}; the file is {kind}"


def _beginning(words: str) -> bytes:
    """Return the first bytes of the file that a message names before one of its colons; nothing if it names none."""
    for colon in re.finditer(":", words[:4096]):
        name = words[: colon.start()]
        for path in (name, name.rpartition(" ")[2]):
            if os.path.isfile(path):  # False also for what cannot be a path, because it is too long
                return _first_bytes(path)
    return b""


def _first_bytes(path: str) -> bytes:
    try:
        return open_inputs(path)[0].first_bytes()
    except (TopompiError, IndexError):  # what cannot be read has been said, and an archive may be empty
        return b""
