"""The command lines as they describe themselves: every command with its options, and whether a written line is one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import typer

from topompi.cli.terminal import HELP
from topompi.mpi.launcher import FLAGS, PROGRAMS, VALUES

__all__ = ["Entry", "commands", "fault", "misnamed", "render"]

BENCHES = ("simulate", "emulate", "compare")
BENCHMARK = "BENCHMARK"  # in the place of the command where there is none: the benchmark is an argument


@dataclass(frozen=True)
class Entry:
    """A command without further commands below it.

    :param words: that name it, such as ``("topompi", "topology", "show")``.
    :param command: as click holds it.
    """

    words: tuple[str, ...]
    command: Any

    def context(self) -> Any:
        """A context for parsing, and for the usage."""
        return self.command.context_class(self.command, info_name=" ".join(self.words), **HELP)


@cache
def commands(program: str) -> list[Entry]:
    """All commands of ``topompi`` or ``osu_like_bench``, in the order in which ``--help`` lists them."""
    if program == "topompi":
        from topompi.cli.app import app

        return list(_leaves((program,), typer.main.get_command(app)))
    found = [Entry((program, BENCHMARK), typer.main.get_command(import_module("osu_like_bench.cli").app))]
    for name in BENCHES:
        part = "cli" if name != "compare" else ""
        module = import_module(".".join(filter(None, ("osu_like_bench", name, part))))
        found += _leaves((program, name), typer.main.get_command(module.app))
    return found


def _leaves(words: tuple[str, ...], command: Any) -> Iterator[Entry]:
    below = getattr(command, "commands", {})
    for name in list(below):
        yield from _leaves((*words, name), command.get_command(None, name))
    if not below:
        yield Entry(words, command)


def render(entry: Entry) -> str:
    """A command as Markdown: heading, what it does, usage, arguments and options with their defaults."""
    context = entry.context()
    usage = re.sub(r"^\s*usage:\s*", "", context.get_usage(), flags=re.IGNORECASE)
    lines = [
        f"## {' '.join(entry.words)}",
        "",
        _prose(entry.command.help or ""),
        "",
        "```text",
        usage.strip(),
        "```",
        "",
    ]
    rows = [_row(one, context) for one in entry.command.get_params(context) if not getattr(one, "hidden", False)]
    lines += ["| argument or option | meaning |", "| --- | --- |", *rows, ""]
    return "\n".join(lines)


def _prose(text: str) -> str:
    plain = re.sub(r"[ \t]*\n[ \t]*", "\n", text.replace("\f", "").replace("\b", "")).strip()
    return re.sub(r"(?<![\w-])(--[a-z][\w-]*)", r"`\1`", plain)


def _row(parameter: Any, context: Any) -> str:
    names, meaning = parameter.get_help_record(context) or (parameter.name, parameter.help or "")
    return "| `{}` | {} |".format(*(" ".join(text.split()).replace("|", "\\|") for text in (names, meaning)))


def fault(words: Sequence[str]) -> str:
    """Why a line would be refused: unknown command or option, a value that is missing or too much; empty if it is none.

    :param words: of the line, from ``topompi`` or ``osu_like_bench`` on. A word ``...`` stands for any others.
    """
    if _launches(list(words)):
        return ""
    entry, rest = _find(list(words))
    return _refusal(entry, rest) if entry else f"expecting a command of {words[0]}, got {' '.join(words)!r}"


def misnamed(words: Sequence[str]) -> str:
    """Whether a command that prose names is none, or has no such option; what else it needs may be absent.

    :param words: as of `fault`.
    """
    words = [word for word in words if word != "..."]
    groups = {one.words[:length] for one in commands(words[0]) for length in range(1, len(one.words))}
    if tuple(words) in groups or _launches([*words, "-m"]):
        return ""
    entry, rest = _find(words)
    if entry is None:
        return f"expecting a command of {words[0]}, got {' '.join(words)!r}"
    known = {option for one in entry.command.get_params(entry.context()) for option in one.opts}
    given = {word.partition("=")[0] for word in rest[: [*rest, "--"].index("--")] if word.startswith("--")}
    absent = sorted(given - known - {"--help"})
    return f"{' '.join(entry.words)}: expecting its options, got {', '.join(absent)}" if absent else ""


def _find(words: list[str]) -> tuple[Entry | None, list[str]]:
    """The command that a line names, if any, and the words behind it."""
    program, found = words[0], commands(words[0])
    if words[1:2] == ["profile"] and not any(one.words[:3] == tuple(words[:3]) for one in found):
        words = [*words[:2], "record", *words[2:]]  # as the command does itself
    if program == "osu_like_bench" and words[1:] and not any(one.words[:2] == tuple(words[:2]) for one in found):
        words = [program, BENCHMARK, *words[1:]]
    named = [one for one in found if tuple(words[: len(one.words)]) == one.words]
    best = max(named, key=lambda one: len(one.words), default=None)
    return best, words[len(best.words) :] if best else []


def _launches(words: list[str]) -> bool:
    """Whether these are topompi, the launcher's options, and a program."""
    program, *words = words
    runs = words[:1] == ["run"]
    words = words[runs:]
    while words and words[0].partition("=")[0] in {*FLAGS, *VALUES}:
        name, equals, _ = words.pop(0).partition("=")
        if name in VALUES and not equals:
            words = words[1:]
    return (
        program == "topompi"
        and bool(words)
        and (words[0] in PROGRAMS or words[0].endswith(".py") or (runs and words[0][0] != "-"))
    )


def _refusal(entry: Entry, words: list[str]) -> str:
    given = [word for before, word in pairwise(["", *words]) if word != "..." or before.startswith("-")]
    if {"-h", "--help", "--version"} & set(given):
        return ""
    name = " ".join(entry.words)
    try:
        values, rest, _ = entry.command.make_parser(entry.context()).parse_args(given)
    except Exception as error:  # click's or typer's own classes, whichever brings them
        return f"{name}: {getattr(error, 'message', error)}"
    if rest:
        return f"{name}: expecting no further words, got {rest}"
    for one in entry.command.params:
        if wrong := _wrong_value(one, values.get(one.name), entry.context()):
            return f"{name}: {one.opts[0]}: {wrong}"
    needed = [one for one in entry.command.params if one.required and "..." not in words]
    absent = [one.opts[0] for one in needed if not _is_given(values.get(one.name))]
    return f"{name}: expecting {', '.join(absent)}, got none" if absent else ""


_PLACEHOLDER = re.compile(r"[A-Z$<{].*|.*\.\.\..*", re.DOTALL)  # a word that stands for what a user writes
_CHOICES = re.compile(r"One of ([\w, -]+)\.")


def _wrong_value(parameter: Any, value: Any, context: Any) -> str:
    """Why an option refuses a value: a number beyond its bounds, or none of its choices; empty if it takes it."""
    if not isinstance(value, str) or _PLACEHOLDER.fullmatch(value):
        return ""
    choices = _CHOICES.fullmatch(parameter.help or "")
    if choices and value not in choices[1].split(", "):
        return f"expecting {choices[0]} Got {value!r}"
    try:
        parameter.process_value(context, value)
    except Exception as error:  # usage errors and our own
        return str(getattr(error, "message", error))
    return ""


def _is_given(value: Any) -> bool:
    return isinstance(value, str | list | tuple) and bool(value)  # absent ones are None, or a mark of click's own
