"""Access to a workload log: its file, its lines, and the numbers in them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ....inputs import InputFile, open_inputs
from ....inputs.slurm.accounting import moment, span
from ..errors import WorkloadError
from .workload import LATEST

__all__ = ["Source", "lines", "open_log", "read_moment", "read_span", "whole"]

Source = str | os.PathLike[str] | InputFile


def open_log(source: Source) -> InputFile:
    """Open the one file at a path, unpacked; an open file is returned unchanged.

    :raises WorkloadError: if there is no file, it is damaged or too large, or the path is a folder of several files.
    """
    if isinstance(source, InputFile):
        return source
    found = open_inputs(source, WorkloadError, "a workload")
    if len(found) != 1:
        raise WorkloadError(f"{source}: expecting one file, got {len(found)}")
    found[0].refuse_foreign()
    return found[0]


def lines(log: InputFile) -> Iterator[tuple[int, str]]:
    """Yield line numbers, from 1, and lines of a log, read as a stream.

    :raises WorkloadError: if the log is empty, damaged or not text.
    """
    log.head()  # raises an error if the file is not text, and names its kind
    for number, line in log.lines():
        if "\0" in line:
            raise WorkloadError(f"{log.name}: line {number}: expecting text, got binary data")
        yield number, line


def whole(where: str, word: str, text: str, least: int = -LATEST) -> int:
    """Convert text to a whole number from ``least`` to below ``LATEST``; a fraction of zeros (``5.00``) is allowed.

    :param where: file and line, for error messages.
    :param word: name of the field, for error messages.
    :param text: content of the field.
    :param least: smallest number that is accepted.
    :raises WorkloadError: if the text is anything else.
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


def read_moment(where: str, word: str, text: str) -> int:
    """Return seconds since 1970, from a number of seconds or a time in the form 2014-08-01T12:00:00.

    :param where: file and line, for error messages.
    :param word: name of the field, for error messages.
    :param text: content of the field.
    :raises WorkloadError: if the text is anything else.
    """
    found = text if text.isascii() and text.isdigit() else moment(text)
    if found is None:
        wanted = "a time such as 2014-08-01T12:00:00"
        raise WorkloadError(f"{where}: {word}: expecting {wanted}, got {text[:40]!r}")
    return whole(where, word, str(found), 0)


def read_span(where: str, word: str, text: str) -> int:
    """Return the seconds of a duration: a number of them, or in the form 1-02:03:04 (days first), 02:03:04, 03:04.

    :param where: file and line, for error messages.
    :param word: name of the field, for error messages.
    :param text: content of the field.
    :raises WorkloadError: if the text is anything else.
    """
    if text.isascii() and text.isdigit():
        return whole(where, word, text, 0)
    found = span(text)
    if found is None:
        raise WorkloadError(f"{where}: {word}: expecting a time such as 1-02:03:04, got {text[:40]!r}")
    return found
