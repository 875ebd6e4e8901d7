"""Pieces of HTML: texts of others are escaped, whatever they contain."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ....views.picture.names import cut, listed
from ....visible import unmarked, visible

__all__ = ["LONG", "MOST_ROWS", "Html", "bad", "hosts", "paragraph", "table", "text"]

MOST_ROWS = 300  # rows per table; the others are counted
LONG = 44  # letters of a host list; the whole list is in a tool tip


class Html(str):
    """Text that is HTML already; all other texts are escaped."""

    __slots__ = ()


def text(words: str) -> str:
    """Return a text as HTML; an ``Html`` as it is."""
    return words if isinstance(words, Html) else escape(unmarked(visible(words)))


def paragraph(words: str) -> str:
    """Return a paragraph."""
    return f"<p>{text(words)}</p>"


def bad(is_bad: bool) -> str:
    """Return the attribute of an element that is a warning; empty if it is none."""
    return " class=bad" if is_bad else ""


def hosts(names: Sequence[str]) -> Html:
    """Return a host list, cut if it is long, with the whole list in a tool tip."""
    words = listed(names)
    return Html(f'<span title="{text(words)}">{text(cut(words, LONG))}</span>')


def table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], further: int = 0) -> str:
    """Return a table, with at most ``MOST_ROWS`` rows.

    :param heads: headings of the columns; a # in front stands for a column of numbers, and is not shown.
    :param rows: names of the jobs that a row is about, with blanks between them, and its cells.
    :param further: number of rows that are not among these.
    """
    look = [" class=number" if head.startswith("#") else "" for head in heads]
    top = "".join(f"<th{one}>{text(head.lstrip('#'))}" for one, head in zip(look, heads, strict=True))
    body = [
        f'<tr data-jobs="{text(jobs)}">'
        + "".join(f"<td{one}>{text(cell)}" for one, cell in zip(look, row, strict=True))
        for jobs, row in rows[:MOST_ROWS]
    ]
    rest = max(0, len(rows) - MOST_ROWS) + further
    more = paragraph(f"and {rest:,} more") if rest else ""
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}"
