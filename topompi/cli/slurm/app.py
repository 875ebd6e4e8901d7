"""``topompi slurm``: files for Slurm, nodes for jobs, places for their tasks, a bridge and a page."""

from __future__ import annotations

import typer

from ..inputs import grouped
from ..topology.export import export
from .bridge import bridge
from .page import page
from .place import place
from .select import select
from .setup import setup

__all__ = ["app"]

app = typer.Typer(
    help="Beside Slurm: its topology file, nodes for jobs, places for tasks, a bridge, a page.", no_args_is_help=True
)
app.command("topology")(export)
app.command()(grouped(select))
app.command()(grouped(bridge))
app.command()(grouped(page))
app.command()(setup)
app.command()(place)
