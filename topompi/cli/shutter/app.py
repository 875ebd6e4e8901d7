"""``topompi shutter``: jobs of one node, measured while the others stand still."""

from __future__ import annotations

import typer

from .run import run

__all__ = ["app"]

app = typer.Typer(
    help="Jobs of one node, each measured while the others stand still.", no_args_is_help=True, add_completion=False
)
app.command()(run)


@app.callback()
def _group() -> None:
    """Jobs of one node, each measured while the others stand still."""
