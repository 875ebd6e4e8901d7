"""``topompi colocate``: programs that share nodes."""

from __future__ import annotations

import typer

from .measure import measure
from .pair import pair
from .place import place
from .predict import predict
from .profile import profile

__all__ = ["app"]

app = typer.Typer(
    help="Programs that share nodes: measurement, prediction, pairs and places.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(measure)
app.command()(profile)
app.command()(predict)
app.command()(pair)
app.command()(place)


@app.callback()
def _group() -> None:
    """Programs that share nodes: measurement, prediction, pairs and places."""
