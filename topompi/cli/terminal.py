"""What all commands share: help, and the one way to print: text without markup or control characters."""

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
# Colours, and what rich moves the cursor with while it shows progress: neither sets titles, clipboards or links.
_RICH = re.compile("(\x1b\\[[0-9;]*[mAKG]|\x1b\\[\\?25[lh]|\r)")
PLAIN = {"█": "#", "→": "->", "×": "x", "├": "|", "└": "`", "│": "|", "─": "-"}  # others become question marks


class Screen(Console):
    """A console for which text is text: no markup, emoji or highlighting, and control characters shown as escapes."""

    def render_str(self, text: str, *, style: str | Style = "", **look: Any) -> Text:
        """A string as rich prints it, in tables and trees too.

        :param text: what is printed.
        :param style: the style of the whole text.
        :param look: of which justification and overflow count.
        """
        place = {name: look[name] for name in ("justify", "overflow") if look.get(name) is not None}
        return Text(visible(text), style, **place)

    def status(self, status: RenderableType, **look: Any) -> Status:
        """A line that says what is going on, on a terminal, until the context is left."""
        return _Status(_plain(status), console=self, **look)


class _Status(Status):
    def update(self, status: RenderableType | None = None, **look: Any) -> None:
        super().update(None if status is None else _plain(status), **look)


def _plain(words: RenderableType) -> RenderableType:
    return Text(visible(words)) if isinstance(words, str) else words  # rich's spinners parse strings as markup


def console(*, to_error: bool = False, width: int | None = None) -> Screen:
    """Where a command prints tables: cut to a terminal's width only where there is a terminal.

    :param to_error: standard error instead of standard output.
    :param width: columns, for output that passes through other programs: without colours.
    """
    stream = sys.stderr if to_error else sys.stdout
    if width is not None:
        return Screen(stderr=to_error, width=width, force_terminal=False, no_color=True)
    return Screen(stderr=to_error, width=None if stream.isatty() else UNREAD)


class _Shown:
    """A stream of text whose control characters are shown as escapes, whoever writes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.rich_proxied_file = _Coloured(stream)  # where rich's consoles write instead

    def write(self, text: str) -> int:
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Coloured(_Shown):
    """A stream that lets rich's own colours and erasing of lines pass too."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write("".join(part if _RICH.fullmatch(part) else visible(part) for part in _RICH.split(text)))
        return len(text)


def overwrite(words: str) -> None:
    """Show progress in one line of standard error, which the next one overwrites, if that is a terminal."""
    if sys.stderr.isatty():
        stream = getattr(sys.stderr, "stream", sys.stderr)
        stream.write(f"\r\x1b[K{visible(words)}")
        stream.flush()


def guard_streams() -> None:
    """Show control characters of all that this process prints as escapes, and what the locale cannot encode plainly."""
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
