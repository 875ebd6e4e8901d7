"""The command ``python -m studies families``: times on simulated fabrics, and real allocations of Leonardo."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial

from studies.tables import Table, show_many
from topompi.inputs.figures import size_name

from .allocations import BYTES, bytes_of, head_of_times, times_of
from .fabrics import CASES, ON_PORTS, PACKETS, SIZES, head_of, ports_rows_of, rows_of

__all__ = ["main"]


def fabrics(quick: bool) -> Iterator[Table]:
    """Yield the tables of simulated fabrics: by flows, on several ports, and a few of the first by packets."""
    sizes = SIZES[:2] if quick else SIZES
    yield "families flows", head_of(sizes), rows_of(CASES[:1] if quick else CASES, sizes, "flows")
    several = ("hosts", "collective", "algorithm", *map(size_name, sizes[-4:]))
    yield "families ports", several, ports_rows_of(ON_PORTS[:1] if quick else ON_PORTS, sizes[-4:])
    sizes = sizes[:5]
    yield "families packets", head_of(sizes), rows_of(PACKETS[:1] if quick else PACKETS, sizes, "packets")


def leonardo(nodemap: str, lists: str, quick: bool) -> Iterator[Table]:
    """Yield the tables of real allocations: bytes between cells with steps, and times by flows."""
    yield "families cells", BYTES, bytes_of(nodemap, lists)
    sizes = SIZES[2:3] if quick else SIZES[1:]
    yield "families times", head_of_times(sizes), times_of(nodemap, lists, sizes, every=90 if quick else 9)


def main(arguments: Sequence[str]) -> int:
    """Print the tables of ``fabrics``, or of ``leonardo MAP LISTS``, and put them into docs/lab/schedules.md.

    :param arguments: arguments after the source's name.
    :returns: exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m studies families", description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("fabrics", help="times on trees, tori and a dragonfly")
    real = parts.add_parser("leonardo", help="bytes between cells, steps and times on allocations of Leonardo's jobs")
    real.add_argument("nodemap", metavar="MAP", help="file of the node map")
    real.add_argument("lists", metavar="LISTS", help="archive of the lists of nodes")
    given, rest = parser.parse_known_args(arguments)
    if given.part == "fabrics":
        return show_many("families fabrics", "schedules.md", fabrics, rest)
    make = partial(leonardo, given.nodemap, given.lists)
    return show_many(f"families leonardo {given.nodemap} {given.lists}", "schedules.md", make, rest)
