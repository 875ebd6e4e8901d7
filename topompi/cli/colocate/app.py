"""``topompi colocate``: programs that share nodes."""

from __future__ import annotations

import typer

from .measure import measure

__all__ = ["app"]

app = typer.Typer(help="Programs that share nodes.", no_args_is_help=True)
app.command()(measure)


@app.callback()
def _group() -> None:
    """Programs that share nodes."""
