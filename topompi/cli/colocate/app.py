"""``topompi colocate``: programs that share nodes."""

from __future__ import annotations

import typer

from .predict import predict

__all__ = ["app"]

app = typer.Typer(help="Programs that share nodes: who fits with whom.", no_args_is_help=True)
app.command()(predict)


@app.callback()
def _group() -> None:
    """Programs that share nodes: who fits with whom."""
