"""``topompi slurm page``: a page that shows a Slurm cluster, and refreshes itself."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from ...errors import SourceError
from ...inputs.figures import bare_name
from ...inputs.writing import write_text
from ...machine.daemon.pages import audience, parse_address, served
from ...machine.jobs import AllocationError
from ...machine.slurm.controller import Commands
from ...machine.slurm.live import routes_now
from ...machine.slurm.page.holdings import Site
from ...machine.slurm.page.live import LivePage
from ...topology import load
from ..inputs import Lfts, TopologyOptions, list_findings, reporting, require_source, routes_of, topology
from ..quantities import SECONDS
from ..terminal import Limit
from .partitions import OR_SLURM, PARTITIONS, Partitions, split_partitions

__all__ = ["page"]

LISTEN = "127.0.0.1:8086"
_TREE = (
    "The fabric is Slurm's own tree, which knows no parallel cables and no routes: --topology names a better source."
)
_LOG = "The bridge's log: a line of JSON per event."


def page(
    source: Annotated[str | None, topology(OR_SLURM)] = None,
    lfts: Lfts = None,
    listen: Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Where browsers find it.")] = LISTEN,
    log: Annotated[Path | None, typer.Option("--log", metavar="FILE", help=_LOG)] = None,
    partitions: Partitions = PARTITIONS,
    every: Annotated[float, SECONDS("--every", help="Seconds between two refreshes.", min=1)] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Write one page, which stays as it is, and end.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File for --once; else it is printed.")] = None,
    *,
    how: TopologyOptions,
    limit: Limit = None,
) -> None:
    """Show who runs where on the fabric, which links jobs share, and who waits for what, on a page in a browser.

    The page only reads: it starts no command and changes nothing.
    """
    if output is not None and not once:
        raise AllocationError("-o: expecting --once beside it")
    require_source(source, lfts, how)
    door = split_partitions(partitions)[0]
    address = parse_address(listen)
    with reporting(SourceError, "reading", partial=how.partial, how=how) as report:
        routes = routes_now(report) if source is None else routes_of(load(source, lfts, report), how.rails)
        site = Site(routes, "Slurm cluster", _TREE) if source is None else Site(routes, bare_name(source))
        live = LivePage(Commands().snapshot, site, every, log, door)
        live.require()
    list_findings(report)
    if once:
        text = live.text(every=0)
        print(text) if output is None else write_text(output, text)
        return
    with served(address, live.answers) as port:
        print(f"topompi: http://{address[0]}:{port}/ shows {site.name} until Ctrl-C or SIGTERM", file=sys.stderr)
        print(f"topompi: {audience(address[0])}", file=sys.stderr)
        done = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: done.set())
        done.wait()
