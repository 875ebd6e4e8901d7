"""Markdown tables, printed line by line, and put into a page between marks."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs.writing import write_text

__all__ = ["fill", "show", "table_lines"]


def table_lines(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table.

    :param head: names of the columns.
    :param rows: cells of each row.
    """
    for cells in chain((head, ["---"] * len(head)), rows):
        yield f"| {' | '.join(map(str, cells))} |"


def fill(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace the lines between ``<!-- NAME -->`` and ``<!-- end of NAME -->`` in a page.

    :param page: Markdown file.
    :param name: name of the marks.
    :param lines: the new lines.
    :raises BenchmarkError: if the page does not have exactly one pair of these marks.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise BenchmarkError(f"{page}: expecting one pair of marks {begin.strip()} and {end}, got another number")
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    filled = "\n".join([begin.strip(), *lines, end])
    write_text(page, between.sub(lambda _: filled, text))


def show(name: str, page: str, head: Sequence[str], rows: Iterator[Sequence[object]], arguments: Sequence[str]) -> int:
    """Run a study that consists of one table: print it, and put it into its page if ``-o`` names a folder.

    :param name: name of the study, and of its marks.
    :param page: file name of the page.
    :param head: names of the columns.
    :param rows: cells of each row, computed while the command runs.
    :param arguments: arguments after the study's name.
    :returns: exit code 0.
    """
    parser = argparse.ArgumentParser(prog=f"python -m studies {name}")
    parser.add_argument("-o", dest="output", metavar="DIR", type=Path, help=f"folder whose {page} gets the table")
    output: Path | None = parser.parse_args(arguments).output
    lines = []
    for line in table_lines(head, rows):
        print(line, flush=True)
        lines.append(line)
    if output is not None:
        fill(output / page, name, lines)
    return 0
