"""``topompi slurm``: nodes for jobs, places for their tasks, a bridge and a page."""

from __future__ import annotations

import typer

from ..inputs import grouped
from .bridge import bridge
from .page import page
from .place import place
from .select import select

__all__ = ["app"]

app = typer.Typer(
    help="Beside Slurm: nodes for jobs, places for tasks, a bridge, a page.", no_args_is_help=True, add_completion=False
)
app.command()(grouped(select))
app.command()(grouped(bridge))
app.command()(grouped(page))
app.command()(place)
