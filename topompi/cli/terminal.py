"""What all commands share: help, tables as wide as they need where no terminal reads them, text in any encoding."""

from __future__ import annotations

import codecs
import sys
from typing import Annotated

import typer
from rich.console import Console

from ..inputs.limits import raise_limits

__all__ = ["HELP", "Limit", "any_encoding", "console"]

HELP = {"help_option_names": ["-h", "--help"]}  # settings of a command line; its commands inherit them


def _raised(entries: list[str] | None) -> list[str] | None:
    raise_limits(entries or [])
    return entries


# An option of every command that reads; what it says holds for the process, so that no command passes it on.
Limit = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=NUMBER", callback=_raised, help="Raise a limit of reading: see SECURITY.md."),
]

UNREAD = 10_000  # columns where no terminal is: a table is then read by another program, or in a file
PLAIN = {"█": "#", "→": "->", "×": "x", "├": "|", "└": "`", "│": "|", "─": "-"}  # others become question marks


def console(*, to_error: bool = False) -> Console:
    """Where a command prints tables: cut to a terminal's width only where there is a terminal.

    :param to_error: standard error instead of standard output.
    """
    stream = sys.stderr if to_error else sys.stdout
    return Console(stderr=to_error, width=None if stream.isatty() else UNREAD)


def any_encoding() -> None:
    """Print what the locale's encoding has no character for in other characters, instead of failing."""
    codecs.register_error("topompi", _in_plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="topompi")


def _in_plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end
