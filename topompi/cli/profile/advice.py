"""The next commands that ``topompi profile show`` and ``topompi profile advise`` recommend."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ...profile import Profile

__all__ = ["commands", "hint_of", "where"]

WORTH = 0.98  # largest ratio of a map's hop-bytes to the given order's at which the map is recommended
LAUNCHERS = ("mpirun", "mpiexec", "prterun")


def where(found: Profile, recorded: Path, topology: str, lfts: Path | None, hosts: str | None) -> str:
    """Return the options of ``topompi map`` for a recorded profile (graph, topology, tables, hosts) as one text.

    :param found: the profile.
    :param recorded: file of the profile.
    :param topology: topology source.
    :param lfts: path of the forwarding tables that the user gave; None if there is none.
    :param hosts: host list that the user gave; if it is None, the recorded hosts.
    """
    hosts = hosts or ",".join(dict.fromkeys(found.hosts))
    options = {"graph": str(recorded), "topology": topology, "lfts": str(lfts or ""), "hosts": hosts}
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in options.items() if value)


def commands(advice: dict[str, Any], found: Profile, topology: str, options: str) -> list[str]:
    """Return the command lines that run the program with a better map, or with topompi's collectives.

    The map is left out if its hop-bytes are above ``WORTH`` times those of the given order, the collectives if the MPI
    library's algorithms are the fastest.

    :param advice: result of `topompi.profile.advice.advise`.
    :param found: the profile.
    :param topology: topology source.
    :param options: options of topompi map, as ``where`` returns them.
    """
    mapping, lines = advice["mapping"], []
    if mapping is not None and mapping["after"]["hop_bytes"] < WORTH * mapping["before"]["hop_bytes"]:
        lines.append(f"topompi map {options} -o ranks.txt")
        lines.append(_launch(found, ["--map-by", "rankfile:file=ranks.txt"]))
    if any(one["algorithm"] != "native" for one in (*advice["collectives"], *advice["neighbourhoods"])):
        lines.append(f"TOPOMPI_TOPOLOGY={shlex.quote(topology)} {_launch(found, [], module=True)}")
    return lines


def _launch(found: Profile, options: list[str], *, module: bool = False) -> str:
    """Return the recorded command line, changed, as one text.

    :param found: the profile, which contains the command.
    :param options: options for Open MPI's launcher that are added.
    :param module: whether the program is run by ``-m topompi``.
    """
    words = shlex.split(found.command) or ["python", "app.py"]
    if Path(words[0]).name not in LAUNCHERS:
        words = ["mpirun", "-n", str(found.size), *words[:1], *(["-m", "topompi"] if module else []), *words[1:]]
    return shlex.join([words[0], *options, *words[1:]])


def hint_of(saving: dict[str, Any], options: str) -> str:
    """Describe in a line the bytes times hops that another order of ranks would save, and the command that finds it.

    :param saving: figures of the other order; its ``ratio`` is that of the hop-bytes to those of the given order.
    :param options: options of topompi map, as ``where`` returns them.
    """
    if saving["ratio"] > WORTH:
        return "no order of the ranks on these hosts was found that moves clearly fewer bytes times hops"
    fewer = f"{100 * (1 - saving['ratio']):.0f} %"
    return f"another order of the ranks would move {fewer} fewer bytes times hops: topompi map {options} -o ranks.txt"
