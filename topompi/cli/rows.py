"""Printing of rows of figures as a table, JSON or CSV."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from ..errors import SourceError
from ..inputs.csvtext import write_csv
from .inputs import AsJson, TopologyOptions, Without
from .terminal import console

__all__ = ["SHOWN", "AsCsv", "Listing", "Rows", "RowsOfLinks", "print_rows"]

AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Rows = list[dict[str, object]]
# Maximum number of names in a cell of a table, so that its row stays short; also the default of --top in topompi
# topology diff, for names and pairs of hosts.
SHOWN = 12


@dataclass(frozen=True)
class RowsOfLinks(TopologyOptions):
    """Options for the reading of a topology, and for the output of rows of figures about its links.

    :param as_json: whether to print JSON.
    :param as_csv: whether to print CSV. If both are False, a table is printed.
    """

    as_json: AsJson = False
    as_csv: AsCsv = False


@dataclass(frozen=True)
class Listing(RowsOfLinks):
    """Options for the reading of a topology with parts that are down, and for the output of rows of figures.

    :param down: switches and cables of the source that are down; None if all work.
    """

    down: Without = None


def print_rows(
    words: str, facts: Mapping[str, object], rows: Sequence[Mapping[str, object]], *, as_json: bool, as_csv: bool
) -> None:
    """Print rows of figures as a table with a heading, as a JSON object, or as CSV with a line of column names.

    :param words: heading of the table.
    :param facts: fields of the JSON object beside its field ``rows``.
    :param rows: figures of each row by column name; all rows have the same columns.
    :param as_json: whether to print JSON.
    :param as_csv: whether to print CSV. If both are False, a table is printed.
    :raises SourceError: if both JSON and CSV are asked for.
    """
    if as_json and as_csv:
        raise SourceError("expecting --json or --csv, got both")
    if as_json:
        print(json.dumps({**facts, "rows": rows}))
    elif as_csv:
        write_csv(sys.stdout, [rows[0] if rows else [], *([_cell(one, " ") for one in row.values()] for row in rows)])
    else:
        screen = console()
        screen.print(words)
        if rows:
            table = Table(*(name.replace("_", " ") for name in rows[0]), box=None)
            for row in rows:
                table.add_row(*(_read_as(name, value) for name, value in row.items()))
            screen.print(table)


def _cell(value: object, separator: str) -> object:
    return separator.join(value) if isinstance(value, list) else value


def _read_as(name: str, value: object) -> str:
    """Format a figure for a table's cell, with its unit.

    :param name: name of the figure, on which the unit depends.
    :param value: the figure; None if it is unknown.
    """
    if value is None:
        return "-"
    if isinstance(value, list):
        more = f" and {len(value) - SHOWN} more" if len(value) > SHOWN else ""
        return ", ".join(value[:SHOWN]) + more
    if not isinstance(value, int | float):
        return str(value)
    if name == "share":
        return f"{100 * value:.2f} %"
    if name in ("rate", "slower_than"):
        return f"{value / 1e9:.4g} GB/s"
    if name == "time":
        return f"{1e3 * value:,.4g} ms"
    if name == "oversubscription":
        return f"{value:.3g} : 1"
    return f"{value:,}" if isinstance(value, int) else str(value)
