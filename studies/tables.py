"""Tables, printed as Markdown, and put into a page between marks or into a CSV file beside it."""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs.writing import write_text

from .stamps import MADE, Stamp, cells_of, csv_of, stamp_of, table_lines

__all__ = ["Table", "fill", "show_many", "stamped", "table_lines"]

Table = tuple[str, Sequence[str], Iterable[Sequence[object]]]  # name of the marks, head and rows


def stamped(lines: Iterable[str], stamp: Stamp) -> Iterator[str]:
    """Yield the lines of a page with a stamp under each table.

    :param lines: the lines.
    :param stamp: the stamp of all of their tables.
    """
    before = ""
    for line in lines:
        if before.startswith("|") and not line.startswith("|"):
            yield str(stamp)
        yield line
        before = line
    if before.startswith("|"):
        yield str(stamp)


def fill(page: Path, name: str, lines: Sequence[str], stamp: Stamp) -> None:
    """Put a table with its stamp between its marks in a page, or into a CSV file if the page has no such marks.

    :param page: Markdown file.
    :param name: name of the table: of the marks ``<!-- NAME -->`` and ``<!-- end of NAME -->``, and of the file
        ``data/NAME.csv`` beside the page, with hyphens for blanks.
    :param lines: the table's lines in Markdown.
    :param stamp: the stamp under it, or before it in a file.
    :raises BenchmarkError: if the page has several pairs of these marks, or half of one.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text, file = page.read_text(encoding="utf-8"), csv_of(page, name)
    counts = text.count(begin), text.count(end)
    if counts == (0, 0):
        told = io.StringIO()
        csv.writer(told, lineterminator="\n").writerows(cells_of(line) for at, line in enumerate(lines) if at != 1)
        file.parent.mkdir(exist_ok=True)
        write_text(file, f"{stamp.comment}\n{told.getvalue()}")
        return
    if counts != (1, 1):
        raise BenchmarkError(f"{page}: expecting at most one pair of marks {begin.strip()} and {end}, got {counts}")
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    filled = "\n".join([begin.strip(), *stamped(lines, stamp), end])
    write_text(page, between.sub(lambda _: filled, text))


def _processor_seconds() -> float:
    """The seconds of a processor that this process has used, with the processes that it started and that have ended."""
    return sum(os.times()[:4])


def show_many(
    name: str,
    page: str,
    make: Callable[[bool], Iterable[Table]],
    arguments: Sequence[str],
    draw: Callable[[Path], None] | None = None,
) -> int:
    """Run a study of several tables: print them, and put them into a page if ``-o`` names a folder.

    :param name: source and name of the study, with the arguments that name its data.
    :param page: file name of the page.
    :param make: function that yields the name of each table's marks, its head and its rows, given whether to be quick;
        rows are computed while they are read. Stamps name its module.
    :param arguments: arguments after the study's name: ``-o DIR``, ``--quick``, and ``--only TABLE ...``.
    :param draw: function that draws pictures into ``figures`` beside the page's folder, if the page is filled.
    :returns: exit code 0; 2 if no table has a name of ``--only``.
    """
    parser = argparse.ArgumentParser(prog=f"python -m studies {name}")
    parser.add_argument("-o", dest="output", metavar="DIR", type=Path, help=f"folder whose {page} gets the tables")
    parser.add_argument("--quick", action="store_true", help="a small case, which fills no page")
    parser.add_argument("--only", metavar="TABLE", nargs="+", help="names of the tables to make")
    given, names = parser.parse_args(arguments), list[str]()
    module, begin = getattr(make, "func", make).__module__, _processor_seconds()
    for marks, head, rows in make(given.quick):
        names.append(marks)
        if given.only is not None and marks not in given.only:
            continue
        print(f"\n{marks}")
        lines = []
        for line in table_lines(head, rows):
            print(line, flush=True)
            lines.append(line)
        if given.output is not None and not given.quick:
            stamp = stamp_of(f"python -m studies {name}", module, MADE, _processor_seconds() - begin)
            fill(given.output / page, marks, lines, stamp)
        begin = _processor_seconds()  # the time of what all tables share counts for the first one
    if not {*(given.only or ())} <= {*names}:
        print(
            f"studies {name}: --only: expecting one of {', '.join(names)}, got {', '.join(given.only)}", file=sys.stderr
        )
        return 2
    if draw is not None and given.output is not None and not given.quick:
        draw(given.output.parent / "figures")
    return 0
