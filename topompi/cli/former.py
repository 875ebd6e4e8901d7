"""Former spellings of commands and options, each with the present one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["FORMER", "former_command", "present_spelling"]

# The present spelling of each former one: of an option of the commands that take the present one (--cluster), of one
# command's option or argument (topology links SOURCE), or of a command (jobs compare).
FORMER = {
    "--algorithms": "--algorithm",
    "--avoid-path-conflict": "--policy apart",
    "--by-routes": "--by routes",
    "--ca": "--adapter",
    "--clients": "--set clients=NUMBER",
    "--cluster": "--topology",
    "--coschedule": "--speedups",
    "--count": "--by messages or --by bytes",
    "--cut": "--draw cut=FILE",
    "--depth": "--queue DEPTH:ORDER",
    "--distances": "--topology tree=16:16:8@1:10:100",
    "--door": "--partitions DOOR,RUN,USUAL",
    "--eager": "--set eager=BYTES",
    "--effort": "--set effort=NUMBER",
    "--exit-code": "--check",
    "--extreme": "--set extreme=USAGE",
    "--fabric": "--topology",
    "--failures": "--set failures=NUMBER",
    "--granularity": "--by",
    "--hop-lanes": "--set hop-lanes=NUMBER",
    "--hydra": "--format hydra",
    "--kind": "--format",
    "--larger": "--set larger=NUMBER",
    "--latency": "--set latency=SECONDS",
    "--length": "--set length=MILLISECONDS",
    "--links": "--show links",
    "--lowest-subtree": "--policy bestfit",
    "--machine": "--topology tree=16:16:8@1:10:100",
    "--method": "--algorithm",
    "--moderate": "--set moderate=USAGE",
    "--most": "--top",
    "--order": "--queue DEPTH:ORDER",
    "--overhead": "--set overhead=SECONDS",
    "--pairs": "--show pairs",
    "--partitioner": "--set partitioner=NAME",
    "--patience": "--set patience=SECONDS",
    "--placement": "--place",
    "--plot": "--draw",
    "--policies": "--policy",
    "--port": "--adapter NAME:PORT",
    "--rankfile": "--format rankfile5",
    "--run": "--partitions DOOR,RUN,USUAL",
    "--sizes": "--bytes",
    "--sort": "--by",
    "--speed": "--policy ALLOCATOR@SPEED",
    "--stream": "--set stream=NUMBER",
    "--time-limit": "--set timeout=SECONDS",
    "--unix": "--listen unix:PATH",
    "--usual": "--partitions DOOR,RUN,USUAL",
    "--warm": "--set warm=MILLISECONDS",
    "--warm-every": "--set warm-every=SECONDS",
    "--weight": "--set weight=NAME",
    "--within": "--set within=SHARE",
    "colocate measure --least": "--set least=NUMBER",
    "colocate measure --limit": "--timeout",
    "colocate measure --most": "--set most=NUMBER",
    "env": "doctor --variables",
    "export --format": "-o FILE.json",
    "jobs characterise --rate": "--set rate=NUMBER",
    "jobs compare": "jobs simulate --policy A,B",
    "jobs lanes --buffer": "--set buffer=BYTES",
    "jobs lanes --limit": "--set tries=NUMBER",
    "jobs lanes --rate": "--set rate=NUMBER",
    "jobs replay --buffer": "--set buffer=BYTES",
    "jobs replay --rate": "--set rate=NUMBER",
    "jobs simulate --jobs-csv": "--output FILE.csv",
    "jobs simulate --limit": "--first",
    "jobs worth --error": "--set error=NUMBER",
    "jobs worth --limit": "--first",
    "launch-kit": "export launch-kit",
    "map --graph": "an argument: PROFILE",
    "map compare": "map PROFILE A B",
    "profile plot": "profile export -o FOLDER",
    "profile report": "profile export -o FILE.html",
    "schedule --blocks": "--set blocks=NUMBER",
    "shutter run --repeats": "--set repeats=NUMBER",
    "slurm setup": "slurm bridge --setup",
    "slurm topology": "topology export",
    "topology diff --lfts-b": "--lfts, given twice",
    "topology export --nodes": "--rename",
    "topology jobs": "jobs check JOBS --topology SOURCE",
    "topology leaves": "topology links --by leaf",
    "topology links SOURCE": "topology links --topology SOURCE",
    "topology query --counters": "topology query counters",
    "topology query --generation": "topology query generation",
    "topology query --health": "topology query health",
    "topology route SOURCE": "topology route A B --topology SOURCE",
    "topology serve --rate": "--set rate=NUMBER",
    "topology serve SOURCE": "topology serve --topology SOURCE",
}
_UNKNOWN = re.compile(r"No such command '([^']+)'")


def present_spelling(error: object) -> str | None:
    """Return one line that says what a former spelling is now; None if a usage error has another cause.

    :param error: error of the command line's library.
    """
    context = getattr(error, "ctx", None)
    if context is None:
        return None
    path = context.command_path.partition(" ")[2]
    option, argument = getattr(error, "option_name", None), f"{path} SOURCE"
    if option is not None:
        told = f"{path} {option}"
        if told not in FORMER and _takes(context.command, FORMER.get(option, "")):
            told = option
        return f"{told} is now {FORMER[told]}" if told in FORMER else None
    if unknown := _UNKNOWN.match(getattr(error, "message", "")):
        told = f"{path} {unknown[1]}".strip()
        return f"{told} is now {FORMER[told]}" if told in FORMER else None
    return f"{argument} is now {FORMER[argument]}" if argument in FORMER else None


def _takes(command: Any, spelling: str) -> bool:
    """Return whether a command has the option of a spelling, and names the word, if any, that is its value.

    :param command: command of the command line's library.
    :param spelling: an option with or without a value, for example ``--show links`` or ``--set eager=BYTES``.
    """
    option, _, value = spelling.partition(" ")
    found = next((one for one in command.params if option in one.opts), None)
    word = re.match("[a-z][a-z-]*", value)
    words = re.findall("[a-z][a-z-]*", f"{found.help} {found.metavar} {command.help}") if found else []
    return found is not None and (word is None or word[0] in words)


def former_command(words: Sequence[str]) -> str | None:
    """Return one line that says what a former command is now whose words would be read as a present one's arguments.

    :param words: words of the command line.
    """
    told = " ".join(words[:2])
    is_former = told in FORMER and words[0] in ("map", "profile") and not Path(words[1]).exists()
    return f"{told} is now {FORMER[told]}" if is_former else None
