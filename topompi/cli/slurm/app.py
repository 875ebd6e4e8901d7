"""``topompi slurm``: files for Slurm, and nodes for jobs."""

from __future__ import annotations

import typer

from ..inputs import grouped
from ..topology.export import export
from .bridge import bridge
from .page import page
from .select import select
from .setup import setup

__all__ = ["app"]

app = typer.Typer(help="Beside Slurm: its topology file, and nodes for jobs by the topology.", no_args_is_help=True)
app.command("topology")(export)
app.command()(grouped(select))
app.command()(grouped(bridge))
app.command()(grouped(page))
app.command()(setup)
