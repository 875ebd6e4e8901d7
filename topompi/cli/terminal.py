"""The help settings of all commands, and their output, in which control characters and markup have no effect."""

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

HELP = {"help_option_names": ["-h", "--help"]}  # typer's settings of a command line, which its commands inherit


def _raised(entries: list[str] | None) -> list[str] | None:
    raise_limits(entries or [])
    return entries


# The option --limit of every command that reads files. Its callback sets limits for the whole process, so that commands
# need not pass its value on.
Limit = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=NUMBER", callback=_raised, help="Raise a limit of reading: see SECURITY.md."),
]

UNREAD = 10_000  # maximum width of a table in characters if the output is no terminal, so that no column is cut
# The escape sequences of rich that are let through: colours, and the cursor movements of progress. Others, for example
# those that set the terminal's title, its clipboard or links, are not.
_RICH = re.compile("(\x1b\\[[0-9;]*[mAKG]|\x1b\\[\\?25[lh]|\r)")
# Replacements of characters that the locale cannot encode; any other is printed as a question mark.
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
        """Return a context manager that shows a line about the present work on a terminal until the context ends.

        :param status: the line.
        :param look: other settings of rich.
        """
        return _Status(_plain(status), console=self, **look)


class _Status(Status):
    def update(self, status: RenderableType | None = None, **look: Any) -> None:
        super().update(None if status is None else _plain(status), **look)


def _plain(words: RenderableType) -> RenderableType:
    return Text(visible(words)) if isinstance(words, str) else words  # rich's spinners parse strings as markup


def console(*, to_error: bool = False, width: int | None = None) -> Screen:
    """Return a screen for a command's tables, which are cut to the width of a terminal, but not for other outputs.

    :param to_error: whether to print to standard error; else to standard output.
    :param width: width in characters, without colours, for output that may pass through ``mpirun``; None to find width
        and colours by the output.
    """
    stream = sys.stderr if to_error else sys.stdout
    if width is not None:
        return Screen(stderr=to_error, width=width, force_terminal=False, no_color=True)
    return Screen(stderr=to_error, width=None if stream.isatty() else UNREAD)


class _Shown:
    """A text stream that shows control characters as escapes, for all code that writes to standard output or error.

    :param stream: the stream that receives the text.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.rich_proxied_file = _Coloured(stream)  # rich writes to this attribute of a stream that has it

    def write(self, text: str) -> int:
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Coloured(_Shown):
    """A text stream that shows control characters as escapes, except rich's sequences for colours and progress."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write("".join(part if _RICH.fullmatch(part) else visible(part) for part in _RICH.split(text)))
        return len(text)


def overwrite(words: str) -> None:
    """Show words in a line of standard error that the next call overwrites; do nothing if this is no terminal."""
    if sys.stderr.isatty():
        stream = getattr(sys.stderr, "stream", sys.stderr)
        stream.write(f"\r\x1b[K{visible(words)}")
        stream.flush()


def guard_streams() -> None:
    """Replace ``sys.stdout`` and ``sys.stderr`` by streams that show control characters as escapes.

    Characters that the locale cannot encode are replaced, too, instead of raising an error.
    """
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
