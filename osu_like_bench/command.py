"""A runner for commands that do not use MPI: it turns errors into one line on standard error and an exit code."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from topompi.errors import TopompiError
from topompi.inputs import in_words

__all__ = ["UsageError", "run_command"]

# The error class for wrong usage: the parent of typer's parameter errors, which not every version exports by name.
UsageError: Any = typer.BadParameter.__bases__[0]


def run_command(app: typer.Typer, name: str, arguments: Sequence[str], program: str = "osu_like_bench") -> int:
    """Run a typer command that does not use MPI; errors go to standard error, one line each.

    :param app: the typer application.
    :param name: name of the command, for error messages.
    :param arguments: arguments after the command's name; ``--debug`` among them shows tracebacks.
    :param program: name of the program to which the command belongs.
    :returns: exit code: 0; 1 for an error; 2 for wrong usage; 130 if interrupted; 143 if terminated.
    """
    before = signal.signal(signal.SIGTERM, _ended)  # raises, so that the command ends its children
    try:
        # On an interrupt, typer returns the exit code instead of raising.
        message = "interrupted"
        code = int(app(list(arguments), prog_name=f"{program} {name}", standalone_mode=False) or 0)
    except UsageError as error:
        message, code = error.format_message(), 2
    except (TopompiError, OSError) as error:
        message, code = in_words(error), 1
        if "--debug" in arguments:
            traceback.print_exc()
    finally:
        signal.signal(signal.SIGTERM, before)
    if code:
        print(f"{program}: {name}: {' '.join(message.split())}", file=sys.stderr)
    return code


def _ended(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
