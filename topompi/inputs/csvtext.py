"""Parsing of CSV from outside, with errors that name file and line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from ..errors import TopompiError

__all__ = ["csv_fields", "csv_rows"]


def csv_rows(
    lines: Iterable[str], name: str, error: type[TopompiError], delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line, from 1, and the fields of each row that is not empty.

    Blanks after a separator are left out. A field in quotes may have separators and ends of lines.

    :param lines: the lines.
    :param name: the file's name, for messages.
    :param error: class of the error that is raised.
    :param delimiter: the separator.
    :raises TopompiError: ``error``, if a line is no CSV, for example because a field has more than 131,072 characters.
    """
    rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    while True:
        try:
            row = next(rows, None)
        except csv.Error as problem:
            raise error(f"{name}:{rows.line_num}: expecting CSV, got {problem}") from None
        if row is None:
            return
        if row:
            yield rows.line_num, row


def csv_fields(line: str, place: str, error: type[TopompiError], delimiter: str = ",") -> list[str]:
    """Return the fields of one line; none of an empty line.

    :param line: the line.
    :param place: file and line, for messages.
    :param error: class of the error that is raised.
    :param delimiter: the separator.
    :raises TopompiError: ``error``, if the line is no CSV.
    """
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error as problem:
        raise error(f"{place}: expecting CSV, got {problem}") from None
