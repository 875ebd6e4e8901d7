"""Help settings and output that all commands use: text is printed without markup and control characters."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console, RenderableType
from rich.status import Status
from rich.style import Style
from rich.text import Text

from ..inputs.limits import raise_limits
from ..visible import visible

__all__ = ["HELP", "Limit", "Screen", "console", "guard_streams", "overwrite"]

HELP = {"help_option_names": ["-h", "--help"]}  # settings of a command line, inherited by its commands


def _raised(entries: list[str] | None) -> list[str] | None:
    raise_limits(entries or [])
    return entries


# The option of every command that reads files. It sets the limits of the process, so that commands need not pass it on.
Limit = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=NUMBER", callback=_raised, help="Raise a limit of reading: see SECURITY.md."),
]

UNREAD = 10_000  # columns of a table if the output is no terminal, so that a file or program gets it uncut
# Colours and rich's cursor movements for progress; none of these sequences sets titles, clipboards or links.
_RICH = re.compile("(\x1b\\[[0-9;]*[mAKG]|\x1b\\[\\?25[lh]|\r)")
# Replacements of characters that the locale may not encode; it prints a question mark for all others.
PLAIN = {"█": "#", "→": "->", "×": "x", "├": "|", "└": "`", "│": "|", "─": "-"}


class Screen(Console):
    """A console that prints text as it is: no markup, emoji or highlighting, and control characters as escapes."""

    def render_str(self, text: str, *, style: str | Style = "", **look: Any) -> Text:
        """Convert a string to rich's ``Text`` as it is, without rich's parsing of markup, emoji and highlights.

        Rich calls this method for every string, also in tables and trees.

        :param text: text to print.
        :param style: style of the whole text.
        :param look: other settings of rich; only ``justify`` and ``overflow`` have an effect.
        """
        place = {name: look[name] for name in ("justify", "overflow") if look.get(name) is not None}
        return Text(visible(text), style, **place)

    def status(self, status: RenderableType, **look: Any) -> Status:
        """Show a line about the present work on a terminal until the context ends."""
        return _Status(_plain(status), console=self, **look)


class _Status(Status):
    def update(self, status: RenderableType | None = None, **look: Any) -> None:
        super().update(None if status is None else _plain(status), **look)


def _plain(words: RenderableType) -> RenderableType:
    return Text(visible(words)) if isinstance(words, str) else words  # rich's spinners parse strings as markup


def console(*, to_error: bool = False, width: int | None = None) -> Screen:
    """Return a screen for a command's tables. On a terminal they are cut to its width, elsewhere they are not cut.

    :param to_error: True to print to standard error instead of standard output.
    :param width: number of columns, if output may pass through other programs (``mpirun``), which also turns colours
        off; else None.
    """
    stream = sys.stderr if to_error else sys.stdout
    if width is not None:
        return Screen(stderr=to_error, width=width, force_terminal=False, no_color=True)
    return Screen(stderr=to_error, width=None if stream.isatty() else UNREAD)


class _Shown:
    """A text stream that shows control characters as escapes, whatever code writes to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.rich_proxied_file = _Coloured(stream)  # rich's consoles write to this attribute instead

    def write(self, text: str) -> int:
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Coloured(_Shown):
    """A text stream that shows control characters as escapes, except rich's sequences that colour and erase lines."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write("".join(part if _RICH.fullmatch(part) else visible(part) for part in _RICH.split(text)))
        return len(text)


def overwrite(words: str) -> None:
    """Show progress in a line of standard error that the next call overwrites; do nothing if it is not a terminal."""
    if sys.stderr.isatty():
        stream = getattr(sys.stderr, "stream", sys.stderr)
        stream.write(f"\r\x1b[K{visible(words)}")
        stream.flush()


def guard_streams() -> None:
    """Make this process print control characters as escapes, and replace characters that its locale cannot encode."""
    codecs.register_error("topompi", _in_plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="topompi")
        if not isinstance(stream, _Shown):
            setattr(sys, name, _Shown(stream))


def _in_plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end
