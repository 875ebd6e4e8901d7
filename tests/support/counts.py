"""How much the command line offers: its commands, and the distinct long options of all of them."""

from __future__ import annotations

from docs import commandline

__all__ = ["commands", "long_options"]


def commands() -> list[str]:
    """Return the words that name each command of ``topompi``, such as ``topology show``."""
    return [" ".join(entry.words[1:]) for entry in commandline.commands("topompi")]


def long_options() -> dict[str, list[str]]:
    """Return, for each long option of ``topompi`` by its name, the commands that have it."""
    found: dict[str, list[str]] = {}
    for entry in commandline.commands("topompi"):
        for parameter in entry.command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                if name.startswith("--"):
                    found.setdefault(name, []).append(" ".join(entry.words[1:]))
    return found
