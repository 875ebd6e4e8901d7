"""Markdown tables, printed line by line, and put into a page between marks."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs.writing import write_text

from .stamps import MADE, Stamp, stamp_of

__all__ = ["Table", "fill", "show_many", "stamped", "table_lines"]

Table = tuple[str, Sequence[str], Iterable[Sequence[object]]]  # name of the marks, head and rows


def table_lines(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table.

    :param head: names of the columns.
    :param rows: cells of each row.
    """
    for cells in chain((head, ["---"] * len(head)), rows):
        yield f"| {' | '.join(map(str, cells))} |"


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
    """Replace the lines between ``<!-- NAME -->`` and ``<!-- end of NAME -->`` in a page by a table and its stamp.

    :param page: Markdown file.
    :param name: name of the marks.
    :param lines: the lines of the table.
    :param stamp: the stamp under it.
    :raises BenchmarkError: if the page does not have exactly one pair of these marks.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise BenchmarkError(f"{page}: expecting one pair of marks {begin.strip()} and {end}, got another number")
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    filled = "\n".join([begin.strip(), *stamped(lines, stamp), end])
    write_text(page, between.sub(lambda _: filled, text))


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
    :param arguments: arguments after the study's name: ``-o DIR``, ``--quick``, and ``--only TABLE``.
    :param draw: function that draws pictures into ``figures`` beside the page's folder, if the page is filled.
    :returns: exit code 0; 2 if no table has the name of ``--only``.
    """
    parser = argparse.ArgumentParser(prog=f"python -m studies {name}")
    parser.add_argument("-o", dest="output", metavar="DIR", type=Path, help=f"folder whose {page} gets the tables")
    parser.add_argument("--quick", action="store_true", help="a small case, which fills no page")
    parser.add_argument("--only", metavar="TABLE", help="name of the one table to make")
    given, names = parser.parse_args(arguments), list[str]()
    module, begin = getattr(make, "func", make).__module__, time.process_time()
    for marks, head, rows in make(given.quick):
        names.append(marks)
        if given.only not in (None, marks):
            continue
        print(f"\n{marks}")
        lines = []
        for line in table_lines(head, rows):
            print(line, flush=True)
            lines.append(line)
        if given.output is not None and not given.quick:
            stamp = stamp_of(f"python -m studies {name}", module, MADE, time.process_time() - begin)
            fill(given.output / page, marks, lines, stamp)
        begin = time.process_time()  # the time of what all tables share counts for the first one
    if given.only not in (None, *names):
        print(f"studies {name}: --only: expecting one of {', '.join(names)}, got {given.only}", file=sys.stderr)
        return 2
    if draw is not None and given.output is not None and not given.quick:
        draw(given.output.parent / "figures")
    return 0
