"""``python -m studies subramoni [NAME...]``: tables with the reference's numbers, and drawings."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from osu_like_bench.command import run_command
from osu_like_bench.cpu import cpu_model
from studies.simgrid import smpi
from topompi.cli.terminal import HELP, overwrite
from topompi.errors import BenchmarkError
from topompi.inputs.writing import write_text

from ..stamps import stamp_of
from ..tables import fill, stamped, table_lines
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
PUBLISHED, COMMAND = "published", "python -m studies subramoni"
INTRODUCTION = """\
# Results: the figures of the reference, simulated

H. Subramoni, *Topology-Aware MPI Communication and Scheduling for High Performance Computing Systems*, 2013, beside
what the same jobs take in simulation. Links are shared fairly, routes are the fabric's own, starting a message costs
nothing, so that what differs is the network's doing alone. The default is the reference's baseline; the peers are what
MVAPICH2, MPICH, Open MPI and Intel MPI choose, by SimGrid's re-implementation of their selections; the bound is what no
schedule can beat on these routes. *Our best* is the fastest of the algorithms tried, as a measured trial would find it,
and is named. Figure 4.3 is simulated with topompi's own flows and packets instead, and its peers are our models of
libraries; of the other figures that are runs a table has default and ours in these two models, with a note on why they
differ. Real MPI on an emulated network: [emulated.md](emulated.md), [applications.md](applications.md).
"""

app = typer.Typer(add_completion=False, context_settings=HELP)


@app.command()
def command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="Figures, all by default.")] = None,
    full: Annotated[bool, typer.Option("--full", help="The reference's scale, however long it takes.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="DIR", help="Write results.md and drawings here.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Simulate figures of the reference, and print the results with the reference's numbers.

    The name `published` selects the table of published measurements beside flows and packets.
    """
    wanted = _choose(names or [])
    if PUBLISHED in wanted:
        _published(output)
    figures = [name for name in wanted if name != PUBLISHED]
    if figures:
        _figures(figures, full, output)


def _figures(numbers: Sequence[str], full: bool, output: Path | None) -> None:
    """Simulate figures one after another, and write their page."""
    lines = [*_head(full)]
    print("\n".join(lines), flush=True)
    for number in numbers:
        module = import_module(f"{__package__}.{FIGURES[number]}")
        overwrite(f"{module.TITLE} ...")
        start, cpu = time.monotonic(), time.process_time()
        figure: Figure = module.draw(full)
        overwrite("")
        command = f"{COMMAND} {number}{' --full' if full else ''}"
        stamp = stamp_of(command, module.__name__, seconds=time.process_time() - cpu)
        page = [*stamped(_page(module, figure, output), stamp)]
        took = f"({time.monotonic() - start:.0f} s, with results kept from before)"
        print("\n".join([*page, took, ""]), flush=True)
        lines += page
    if output is not None:
        write_text(output / "results.md", "\n".join(lines))


def _published(output: Path | None) -> None:
    """Compute the table of published measurements, and put it into its page."""
    lines = []
    for line in table_lines(published.HEAD, published.rows()):
        print(line, flush=True)
        lines.append(line)
    if output is not None:
        fill(output / "published.md", PUBLISHED, lines, stamp_of(f"{COMMAND} published", published.__name__))


def _choose(names: Sequence[str]) -> list[str]:
    wanted, known = [ALIASES.get(name, name) for name in names], [*FIGURES, PUBLISHED]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        listed = ", ".join([*FIGURES, *ALIASES, PUBLISHED])
        raise BenchmarkError(f"expecting some of {listed}, got {unknown[0]!r}")
    return list(dict.fromkeys(wanted)) or known


def _head(full: bool) -> Iterator[str]:
    """Yield the title, and the circumstances in which the page was made."""
    yield INTRODUCTION
    scale = "the reference's scale" if full else "scales of some minutes on two cores"
    machine = f"{platform.system()} {platform.machine()}, {cpu_model()}, {os.cpu_count()} processors"
    yield f"{smpi.version()}; {machine}; {scale}."
    yield f"Made by `make studies SOURCE=subramoni{' STUDIES_OPTIONS=--full' if full else ''}`."
    yield ""


def _page(module: Any, figure: Figure, output: Path | None) -> Iterator[str]:
    """Yield a figure as Markdown; write its drawings into the folder ``figures``."""
    yield from (f"## {module.TITLE}", "", f"Paper: {module.PAPER}.", "", f"Here: {figure.verdict}.", "")
    for table in figure.tables:
        yield from (*table.markdown(), "")
    if output is not None:
        folder = output / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        for chart in figure.charts:
            yield f"![{chart.title}](figures/{chart.save(folder).name})"
        yield ""
    for note in figure.notes:
        yield f"- {note}"
    yield ""


def main(arguments: Sequence[str]) -> int:
    """Run the command; see ``run_command``."""
    return run_command(app, "subramoni", arguments, program="python -m studies")
