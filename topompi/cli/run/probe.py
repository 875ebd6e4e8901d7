"""``topompi probe``: measurement of distances between this job's hosts, written as a topology source (a tree)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ...errors import SourceError, TopompiError
from ...inputs.extensions import require_mpi
from ...inputs.hostlist import expand
from ...inputs.writing import write_text
from ..inputs import AsJson
from ..quantities import SECONDS
from ..terminal import Limit, console

if TYPE_CHECKING:
    from ...mpi.probe import Probed

__all__ = ["probe"]


def probe(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The fabric.json to write.")] = None,
    seconds: Annotated[float, SECONDS("--seconds", help="Begin no measurement after these.", min=0.1)] = 20.0,
    hosts: Annotated[str | None, typer.Option("--hosts", help="Virtual: take each rank as one of these hosts.")] = None,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Measure which hosts of this job stand close together, and how much their links carry.

    Run it with one rank per host, for example: mpirun -n 64 --map-by node python -m topompi probe -o fabric.json.
    Programs then take TOPOMPI_TOPOLOGY=fabric.json. Nothing else should use the network meanwhile.
    """
    require_mpi()
    from mpi4py import MPI

    from ...mpi.probe import running

    world = MPI.COMM_WORLD
    speaks = world.Get_rank() == 0
    try:
        names = None if hosts is None else expand(hosts)
        if (refusal := world.bcast(_unwritable(output) if speaks else None)) is not None:
            raise refusal
        found = running.probe(world, seconds, True, names, _say if speaks else lambda words: None)
        failure = _finish(found, output, as_json) if speaks and found is not None else None
        if (failure := world.bcast(failure)) is not None:
            raise failure
    except TopompiError as error:  # same on all ranks; rank 0 prints it before any rank ends, as mpirun then ends all
        if "--debug" in sys.argv:
            raise
        if speaks:
            _say(str(error))
        world.Barrier()
        raise typer.Exit(1) from None
    except Exception:  # perhaps on this rank alone, for which the others would wait without Abort
        import traceback

        traceback.print_exc()
        world.Abort(1)


def _say(words: str) -> None:
    print(f"topompi: {words}", file=sys.stderr, flush=True)


def _unwritable(output: Path | None) -> SourceError | None:
    """Return the error that would prevent the writing of a file, to be seen before long measurements; None if none."""
    if output is None or os.access(output.parent, os.W_OK):
        return None
    return SourceError(f"{output}: cannot be written: {output.parent} is absent, or not yours to write")


def _finish(found: Probed, output: Path | None, as_json: bool) -> SourceError | None:
    """Write the file and print the result; return the error that prevented the writing, None if there was none.

    :param found: result of the measurements.
    :param output: path of the file; None to write none.
    :param as_json: whether to print JSON.
    """
    if output is not None:
        try:
            write_text(output, found.document())
        except OSError as error:
            return SourceError(f"{output}: cannot be written: {error.strerror}")
    if as_json:
        print(json.dumps(found.summary()))
        return None
    _show(found.summary())
    return None


def _show(summary: dict[str, Any]) -> None:
    # mpirun may pass a terminal's output on to a file, so no colours and no terminal width.
    screen = console(width=120)
    words = f"{summary['hosts']} hosts in {summary['seconds']:.1f} s: {summary['probes']:,} probes in "
    words += f"{summary['rounds']:,} rounds" + ("" if summary["settled"] else f"; not settled: {summary['doubt']}")
    screen.print(words, soft_wrap=True)
    table = Table("level", "clusters", "round trip", "confidence", "uplinks that held streams up", box=None)
    for number, row in enumerate(summary["levels"], 1):
        shared = f"{row['uplinks_shared']} of {row['clusters']}" if "uplinks_shared" in row else "-"
        cells = (f"{1e6 * row['round_trip']:.2f} us", f"{row['confidence']:.2f}", shared)
        table.add_row(str(number), str(row["clusters"]), *cells)
    screen.print(table)
