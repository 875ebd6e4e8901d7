"""Parsing of CSV from outside, with errors that name file and line, and writing of CSV without formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import IO

from ..errors import TopompiError
from ..visible import csv_cell

__all__ = ["csv_fields", "csv_rows", "write_csv"]


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


def write_csv(stream: IO[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows; text that a spreadsheet would take for a formula begins with an apostrophe.

    :param stream: stream of the text.
    :param rows: numbers, texts and None, row by row.
    """
    csv.writer(stream, lineterminator="\n").writerows([csv_cell(value) for value in row] for row in rows)
