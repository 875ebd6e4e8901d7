"""Sections 3.2 and 4.1: links of the levels, footprints, classes of our seven applications, and bounds on sharing."""

from __future__ import annotations

from collections.abc import Iterator

from topompi.machine.interference.sharing import per_link, sharing_jobs

from ..tables import Table
from .applications import APPLICATIONS, BASE, CLASSES, RATE, application, character
from .xgft import footprint, up_links

__all__ = ["characters"]

CHILDREN = (16, 16, 8)


def characters(quick: bool) -> Iterator[Table]:
    """The tables, exact but for the classes of our own kernels, which are the source's by construction."""
    yield "jokanovic levels", ("S", "links of level 0", "level 1", "level 2", "Gbit/s, level 1", "level 2"), _levels()
    yield "jokanovic footprints", ("job", *(f"F{each}" for each in (16, 8, 4, 2))), _footprints()
    jobs = APPLICATIONS[:2] if quick else APPLICATIONS
    yield (
        "jokanovic classes",
        ("job", "T_base, s", "on S2", "level 1", "level 2", "class", "the source"),
        _classes(jobs),
    )
    yield "jokanovic bounds", ("xgft(3;2,2,2;1,1,1)", "level", "bound", "per link", "the source"), _bounds()


def _levels() -> Iterator[list[str]]:
    for width in (16, 8, 4, 2, 1):
        links = up_links(CHILDREN, (1, width, width))
        rates = (f"{count * RATE * 8 / 1e9:,.0f}" for count in links[1:])
        yield [f"S{width}", *(f"{count:,}" for count in links), *rates]


def _footprints() -> Iterator[list[str]]:
    for nodes in (256, 512):
        cells = []
        for each in (16, 8, 4, 2):
            fits = nodes // each <= CHILDREN[1] * CHILDREN[2]
            found = footprint(CHILDREN, nodes, each) if fits else [0] * 3
            cells.append(f"{found[1]} leaves, {found[2]} sub-trees" if fits else "does not fit")
        yield [f"{nodes} nodes", *cells]


def _classes(jobs: tuple[str, ...]) -> Iterator[list[str]]:
    for job in jobs:
        placement = "F4" if job == "MILC" else "F2"
        found = character(application(job), BASE[job], 2, placement)
        usage = (f"{one.usage:.1%}" for one in found.loads[1:])
        yield [job, f"{BASE[job]:.4f}", placement, *usage, found.name, CLASSES[job]]


def _bounds() -> Iterator[list[str]]:
    cases = {(4, 2, 1): "4; 1", (4, 3, 2): "4; 2", (2, 2, 1): "2; 1", (2, 3, 1): "6; 3"}
    for (nodes, level, each), source in cases.items():
        about = f"{nodes} nodes, {each} per sub-tree"
        yield [
            about,
            f"L{level}",
            f"{sharing_jobs(nodes, (2, 2, 2), level, each)}",
            f"{per_link((2, 2, 2), level, each)}",
            source,
        ]
