"""``python -m studies subramoni NAME [-o docs/lab]``: tables with the reference's numbers, and drawings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from ..tables import Table, show_many
from . import published
from .figure import Figure

__all__ = ["FIGURES", "main"]

FIGURES = {
    "3.1": "gather_scatter",
    "4.3": "broadcast",
    "4.4": "mixed_rates",
    "5.5": "stencil",
    "5.6": "traffic",
    "5.7": "solvers",
    "shares": "shares",
    "6.2": "link_sharing",
    "6.5": "conflicts",
    "6.7": "alltoall",
    "6.8": "fft",
    "6.9": "p3dfft",
    "bound": "at_the_bound",
}
ALIASES = {"3.2": "3.1", "5.8": "5.7", "6.6": "6.8", "8.2": "6.2", "8.5": "5.6", "8.7": "6.9"}
PUBLISHED = "published"
FULL = "--full"  # the reference's scale, however long it takes


def main(arguments: Sequence[str]) -> int:
    """Simulate figures of the reference, or those that published measurements have numbers for.

    :param arguments: names of figures, by default all; ``--full`` for its scale; options of ``show_many``.
    """
    count = next((at for at, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    names, others = [ALIASES.get(word, word) for word in arguments[:count]], [*arguments[count:]]
    if full := FULL in others:
        others.remove(FULL)
    unknown = [name for name in names if name not in (*FIGURES, PUBLISHED)]
    if unknown:
        listed = ", ".join([*FIGURES, *ALIASES, PUBLISHED])
        print(f"python -m studies: subramoni: expecting some of {listed}, got {unknown[0]!r}", file=sys.stderr)
        return 1
    codes = [_show(name, full, others) for name in dict.fromkeys(names or [*FIGURES, PUBLISHED])]
    return max(codes)


def _show(name: str, full: bool, others: Sequence[str]) -> int:
    if name == PUBLISHED:
        return show_many("subramoni published", "published.md", _published, others)
    module, drawn = import_module(f"{__package__}.{FIGURES[name]}"), list[Figure]()
    make = _maker(name, module, full, drawn)

    def draw(folder: Path) -> None:
        for chart in drawn[0].charts:
            chart.save(folder.parent / "lab" / "figures")

    return show_many(f"subramoni {name}{f' {FULL}' if full else ''}", "results.md", make, others, draw)


def _published(quick: bool) -> Iterator[Table]:
    yield PUBLISHED, published.HEAD, published.rows()


_published.__module__ = published.__name__  # stamps name the module that makes the rows


def _maker(name: str, module: Any, full: bool, drawn: list[Figure]) -> Callable[[bool], Iterator[Table]]:
    """Return a function that makes the tables of a figure, and keeps the figure."""

    def make(quick: bool) -> Iterator[Table]:
        drawn.append(module.draw(full))
        print(f"{module.TITLE}\nPaper: {module.PAPER}.\nHere: {drawn[0].verdict}.")
        for letter, table in zip(ascii_lowercase, drawn[0].tables, strict=False):
            print(f"\n{table.caption}")
            yield f"figure {name} {letter}", table.columns, table.rows

    make.__module__ = module.__name__
    return make
