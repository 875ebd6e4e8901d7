"""The command ``python -m studies interference``: waits on two fabrics, and the error of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from studies.tables import Table, show_many
from topompi.views import read_cluster

from .mixes import draw, modelled, simulated
from .waits import COLUMNS, FABRICS, cluster, month, rows_of

__all__ = ["ERRORS", "main"]

TREES = ("XGFT(2; 8,8; 1,8)", "XGFT(2; 8,8; 1,4)", "XGFT(2; 8,8; 1,1)", "XGFT(3; 4,4,8; 1,2,2)")
SWAPPED = (0.25, 2.0)  # nearly side by side, and at random
SEEDS = range(20)
ERRORS = ("tree", "jobs", "mean speed, messages", "mean speed, model", "mean error", "95 % of errors", "largest")


def _errors(quick: bool) -> Iterator[list[str]]:
    """Yield the error of the model for each tree; an error is a speed by the model over that by messages, minus 1."""
    for spec in TREES[: 1 if quick else None]:
        machine = read_cluster(f"{spec}@rate=4xQDR")
        mixes = [draw(machine, seed, 0.9, swapped) for seed in SEEDS[: 2 if quick else None] for swapped in SWAPPED]
        model, messages = (np.concatenate([speed(mix) for mix in mixes]) for speed in (modelled, simulated))
        error = np.abs(model / messages - 1)
        shares = error.mean(), np.quantile(error, 0.95), error.max()
        cells = [f"{len(error)}", f"{messages.mean():.3f}", f"{model.mean():.3f}", *(f"{one:.1%}" for one in shares)]
        yield [f"`{spec}`", *cells]


def _tables(name: str, quick: bool) -> Iterator[Table]:
    if name == "errors":
        yield "interference errors", ERRORS, _errors(quick)
    else:
        jobs = month()
        yield f"interference {name}", COLUMNS, rows_of(jobs.select(slice(500)) if quick else jobs, cluster(name))


def main(arguments: Sequence[str]) -> int:
    """Print one table, and put it into its page: ``errors``, ``janus`` or ``tree``, the first argument.

    :param arguments: arguments after the source's name.
    :returns: exit code; 2 if the table is unknown.
    """
    if not arguments or arguments[0] not in ("errors", *FABRICS):
        print(f"studies interference: expecting errors, {' or '.join(FABRICS)}, got {arguments[:1] or 'none'}")
        return 2
    return show_many(f"interference {arguments[0]}", "interference.md", partial(_tables, arguments[0]), arguments[1:])
