"""The input of a log, its lines, and its numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...inputs import InputFile, open_inputs
from ..errors import WorkloadError
from .workload import LATEST

__all__ = ["Source", "lines", "open_log", "whole"]

Source = str | os.PathLike[str] | InputFile


def open_log(source: Source) -> InputFile:
    """The one input at a path, unpacked; what is open already stays as it is.

    :raises WorkloadError: where nothing is there, for damage, beyond a limit, and for a folder of several files.
    """
    if isinstance(source, InputFile):
        return source
    found = open_inputs(source, WorkloadError, "a workload")
    if len(found) != 1:
        raise WorkloadError(f"{source}: expecting one file, got {len(found)}")
    return found[0]


def lines(log: InputFile) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines of a log; read as a stream.

    :raises WorkloadError: where it is empty, damaged or not text.
    """
    log.head()  # says what a file is that is no text
    for number, line in log.lines():
        if "\0" in line:
            raise WorkloadError(f"{log.name}: line {number}: expecting text, got binary data")
        yield number, line


def whole(where: str, word: str, text: str, least: int = -LATEST) -> int:
    """A whole number between ``least`` and ``LATEST``, written with or without a fraction of zeros.

    :param where: file and line.
    :param word: the field.
    :param text: its content.
    :param least: the smallest number that is taken.
    :raises WorkloadError: for anything else.
    """
    try:
        value = int(text) if len(text) <= 20 else LATEST
    except ValueError:
        try:
            real = float(text)
        except ValueError:
            real = float("nan")
        value = int(real) if abs(real) < LATEST and real == int(real) else LATEST
    if not least <= value < LATEST:
        raise WorkloadError(f"{where}: {word}: expecting a whole number from {least} below {LATEST}, got {text[:40]!r}")
    return value
