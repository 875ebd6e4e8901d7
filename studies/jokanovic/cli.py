"""The policies of chapter 4 on a drawn load, and blocks with one rule left out: ``python -m studies jokanovic``.

The logs of MareNostrum are not public, so a similar load is drawn. Real logs are replayed by ``topompi jobs compare LOG
--scenario jokanovic``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module

import numpy as np

from studies.mixes import power_of_two_mix
from studies.tables import Table, show_many
from topompi.machine.jobs import Cluster, Outcome, Workload, simulate
from topompi.machine.jobs.metrics import average_hops, sharing, summarise

__all__ = ["COLUMNS", "MARENOSTRUM", "NETWORK", "POLICIES", "cells_of", "main", "rows_of"]

MARENOSTRUM = Cluster.of("MareNostrum", [18] * 172, [18] * 9 + [10])
POLICIES = ("first", "contiguous", "exclusive", "blocks", *(f"blocks-{rule}" for rule in "abcdef"))
NETWORK = {
    "characters": ("characters", "characters"),
    "alone": ("sharing", "alone"),
    "mixes": ("sharing", "mixes"),
    "lanes": ("lanes", "lanes"),
}
COLUMNS = ("wait, min", "makespan, d", "in use", "hops", "sharing, %", "partners", "leaf pairs", "pod pairs")


def cells_of(outcome: Outcome) -> tuple[str, ...]:
    """Format waits, makespan, use, packing and sharing of an outcome, in the order of COLUMNS."""
    one, shared = summarise(outcome), sharing(outcome)
    cells = f"{one.mean_wait / 60:,.1f}", f"{one.makespan / 86400:.1f}", f"{one.utilisation:.1%}"
    hops = np.nanmean(average_hops(outcome))
    pairs = f"{shared.leaf_pairs:,}", f"{shared.pod_pairs:,}"
    return (*cells, f"{hops:.2f}", f"{shared.percent:.1f}", f"{shared.partners:.2f}", *pairs)


def rows_of(jobs: Workload) -> Iterator[tuple[str, ...]]:
    """Yield the table's row of each policy, from simulations of a load."""
    return ((name, *cells_of(simulate(jobs, MARENOSTRUM, allocator=name))) for name in POLICIES)


def _tables(quick: bool) -> Iterator[Table]:
    jobs = power_of_two_mix(np.random.default_rng(1), 300 if quick else 3_000)
    yield "jokanovic", ("policy", *COLUMNS), rows_of(jobs)


def main(arguments: Sequence[str]) -> int:
    """Compare the policies and print the table; with the name of another study of ``NETWORK``, run it.

    :param arguments: arguments after the source's name.
    """
    if arguments[:1] and arguments[0] in NETWORK:
        module, function = NETWORK[arguments[0]]
        make = getattr(import_module(f"studies.jokanovic.{module}"), function)
        return show_many(f"jokanovic {arguments[0]}", "sharing.md", make, arguments[1:])
    return show_many("jokanovic", "jobs.md", _tables, arguments)
