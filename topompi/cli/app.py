"""The commands' common frame: options for all, and errors in one line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import __version__
from ..errors import TopompiError
from . import export, jobs, topology
from .demo import demo
from .doctor import doctor
from .env import env
from .map import app as map_app
from .probe import probe
from .profile import app as profile_app
from .schedule import schedule
from .terminal import HELP, guard_streams
from .tune import tune
from .why import why

__all__ = ["main"]

app = typer.Typer(
    name="topompi",
    help="MPI that knows the network: look at fabrics, routes and a job's place in them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)
app.add_typer(topology.app, name="topology")
app.command(name="schedule")(schedule)
app.add_typer(map_app, name="map")
app.add_typer(profile_app, name="profile")
app.command(name="tune")(tune)
app.command(name="probe")(probe)
app.command(name="why")(why)
app.add_typer(export.app, name="export")
app.add_typer(jobs.app, name="jobs")
app.command(name="demo")(demo)
app.command(name="doctor")(doctor)
app.command(name="env")(env)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version, of any command.")] = False,
) -> None:
    """MPI that knows the network."""


def main() -> None:
    """Run the command line; errors are one line on standard error and exit code 1, with a traceback after --debug."""
    guard_streams()
    if "--version" in sys.argv[1:]:  # of any command; no option takes this word as its value
        print(f"topompi {__version__}")
        return
    try:
        app(prog_name="topompi")
    except (TopompiError, OSError, MemoryError) as error:
        if "--debug" in sys.argv:
            raise
        if isinstance(error, BrokenPipeError):
            sys.stderr.close()  # the reader of our output has gone: nobody is left to tell
        else:
            words = f"expecting less than what memory holds, got more: {error}"
            print(f"topompi: {words if isinstance(error, MemoryError) else error}", file=sys.stderr)
        sys.exit(1)
