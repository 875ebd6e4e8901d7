"""The next commands that ``topompi profile show`` and ``topompi profile advise`` recommend."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np

from ...inputs.hostlist import compress
from ...mpi.profile import Profile
from ...topology import TopologyInterface

__all__ = ["commands", "hint_of", "where"]

LAUNCHERS = ("mpirun", "mpiexec", "prterun")


def where(interface: TopologyInterface, recorded: Path, topology: str, lfts: Path | None) -> str:
    """Return the words after ``topompi map`` for a recorded profile: its file, topology, tables and hosts.

    The hosts are named once per rank, in the order of the ranks, unless equal blocks of ranks fill them.

    :param interface: the placement of the ranks.
    :param recorded: file of the profile.
    :param topology: topology source.
    :param lfts: path of the forwarding tables that the user gave; None if there is none.
    """
    blocks = np.arange(interface.num_hosts).repeat(interface.num_ranks // interface.num_hosts)
    even = np.array_equal(interface.rank_host, blocks)
    hosts = compress(interface.hosts if even else [interface.hosts[one] for one in interface.rank_host.tolist()])
    options = {"topology": topology, "lfts": str(lfts or ""), "hosts": hosts}
    words = [f"--{name} {shlex.quote(value)}" for name, value in options.items() if value]
    return " ".join((shlex.quote(str(recorded)), *words))


def commands(advice: dict[str, Any], found: Profile, topology: str, options: str) -> list[str]:
    """Return the command lines that run the program with a better map, or with topompi's collectives.

    The map is left out if it saves too little or is predicted to be slower, topompi's collectives if the predicted
    seconds of all calls that topompi can run do not fall.

    :param advice: result of `topompi.mpi.profile.advice.advise`.
    :param found: the profile.
    :param topology: topology source.
    :param options: options of topompi map, as ``where`` returns them.
    """
    mapping, launcher, lines = advice["mapping"], advice["launcher"], []
    if mapping is not None and mapping["pays"]:
        lines.append(f"topompi map {options} -o ranks.txt")
        lines.append(_launch(found, ["--map-by", "rankfile:file=ranks.txt"]))
    if launcher["seconds"] < launcher["native_seconds"]:
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

    :param saving: result of `topompi.mpi.profile.summary.saving`.
    :param options: options of topompi map, as ``where`` returns them.
    """
    cut = f" ({saving['cut']})" if saving["cut"] else ""
    if not saving["pays"]:
        return f"no order of the ranks on these hosts was found that moves clearly fewer bytes times hops{cut}"
    fewer = f"{100 * (1 - saving['ratio']):.0f} %"
    return (
        f"another order of the ranks would move {fewer} fewer bytes times hops{cut}: topompi map {options} -o ranks.txt"
    )
