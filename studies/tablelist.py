"""The command ``python -m studies tables``: the tables of docs/lab with digests and ages, and which code is newer."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.paths import ROOT

from .stamps import NONE, Placed, digests, placed_in

__all__ = ["CONTENTS", "LAB", "main", "state_of", "tables_of"]

LAB = ROOT / "docs" / "lab"
CONTENTS = "index.md"  # its table lists pages
CURRENT, UNSTAMPED = "current", "no stamp"


def tables_of(folder: Path = LAB) -> Iterator[Placed]:
    """Yield the tables of results of all pages of a folder, and of the CSV files in its folder ``data``.

    :param folder: folder of Markdown files.
    """
    for page in (*sorted(folder.glob("*.md")), *sorted(folder.glob("data/*.csv"))):
        if page.name != CONTENTS:
            yield from placed_in(page)


def state_of(table: Placed) -> str:
    """Return ``current``, or the inputs that are newer than a table.

    :param table: a table of a page.
    """
    stamp = table.stamp
    if stamp is None:
        return UNSTAMPED
    now = digests(stamp.module, stamp.command)
    newer = ["code"] if now.code != stamp.code else []
    if stamp.data != NONE and not now.missing and now.data != stamp.data:
        newer.append("data")
    return f"older than its {' and '.join(newer)}" if newer else CURRENT


def main(arguments: Sequence[str]) -> int:
    """Print a line for each table, and the number of tables in each state.

    :param arguments: none.
    :returns: exit code 0.
    """
    argparse.ArgumentParser(prog="python -m studies tables", description=__doc__).parse_args(arguments)
    today, states = datetime.now(UTC).date(), Counter[str]()
    for table in tables_of():
        stamp, state = table.stamp, state_of(table)
        words = [f"{table.page.name}:{table.line}", table.name, state]
        if stamp is not None:
            age = f"{stamp.kind} {(today - stamp.day).days} days ago at {stamp.commit}"
            words += [age, f"code {stamp.code}", f"data {stamp.data}", stamp.command]
        print(" | ".join(words))
        states[f"{state}, {stamp.kind}" if stamp is not None else state] += 1
    print(f"{states.total()} tables: " + "; ".join(f"{count} {state}" for state, count in sorted(states.items())))
    return 0
