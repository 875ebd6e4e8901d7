"""Slurm's files: the host file of the arbitrary distribution, and options of the plane distribution."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np

from ...errors import SourceError
from ...inputs.hostlist import expand
from ..mapping import Mapping
from .header import RankFile, RankFileError, header, host_names

__all__ = ["PLANE", "plane_size", "read", "recognise", "write", "write_plane"]

_PLANE = re.compile(r"(?:--nodes=[0-9]{1,9}\s+)?--distribution=plane=([0-9]{1,9})(?:\s+--ntasks=([0-9]{1,9}))?")
_HOST = re.compile(r"[A-Za-z0-9_.-]+")
# A host or an expression of hosts, each of which may have a number of ranks: node*2, n[0-3],login1.
_PART = re.compile(r"([A-Za-z0-9_.-]+(?:\[[0-9,-]+\][A-Za-z0-9_.-]*)*)(?:\*([0-9]{1,9}))?")
_LINE = re.compile(rf"{_PART.pattern}(?:\s*,\s*{_PART.pattern})*")


def write(mapping: Mapping) -> str:
    """The host file of ``srun --distribution=arbitrary``, with the host of rank i on line i."""
    launch = f"SLURM_HOSTFILE=THIS_FILE srun --ntasks={mapping.size} --distribution=arbitrary"
    return "\n".join([*header(mapping, launch), *host_names(mapping)]) + "\n"


def plane_size(mapping: Mapping) -> int | None:
    """The number of consecutive ranks that each host gets at a time, if the mapping is a plane distribution, else None.

    It is 1 for a cyclic mapping.
    """
    host = mapping.host_of_rank
    leaves = np.flatnonzero(host != 0)
    block = int(leaves[0]) if len(leaves) else max(mapping.size, 1)
    if block == 0 or not len(mapping.hosts):
        return None
    cyclic = np.arange(mapping.size) // block % len(mapping.hosts)
    return block if (host == cyclic).all() else None


def write_plane(mapping: Mapping) -> str:
    """The options of srun for a mapping that is a plane distribution over the hosts in their order.

    They include the number of hosts, because Slurm puts a rank on each given host, whatever the plane size.

    :raises RankFileError: if the mapping is no plane distribution.
    """
    block = plane_size(mapping)
    if block is None:
        raise RankFileError(
            "expecting a mapping that deals blocks of equal size to the hosts in turn for --distribution=plane, "
            "this one does not: write it as a host file (slurm)"
        )
    used = int(mapping.host_of_rank.max(initial=0)) + 1
    options = f"--nodes={used} --distribution=plane={block} --ntasks={mapping.size}"
    return "\n".join([*header(mapping, "srun with these options, hosts in this order"), options]) + "\n"


def _recognise_plane(file: RankFile) -> bool:
    """Whether the first line consists of options, including ``--distribution=plane``."""
    return file.first.startswith("--") and "--distribution=plane" in file.first


def _read_plane(file: RankFile) -> Mapping:
    number, line = file.rows[0]
    match = _PLANE.fullmatch(line)
    if not match or int(match[1]) == 0 or len(file.rows) > 1:
        file.fail(
            file.rows[-1][0], "one line '--nodes=HOSTS --distribution=plane=SIZE --ntasks=RANKS'", file.rows[-1][1]
        )
    names, counts = file.allocation
    ranks = sum(counts) if match[2] is None else int(match[2])
    if ranks > sum(counts):
        file.fail(number, f"at most {sum(counts)} ranks, one a slot", line)
    hosts = (np.arange(ranks) // int(match[1]) % len(names)).tolist()
    return file.mapping([(number, names[host]) for host in hosts])


def recognise(file: RankFile) -> bool:
    """Whether the first line has hosts only, separated by commas, each perhaps with a number of ranks (``node*2``)."""
    return bool(_LINE.fullmatch(file.first))


def read(file: RankFile) -> Mapping:
    """Read the hosts of the ranks in their order, one or several per line.

    :raises RankFileError: if a line has anything but hosts, or there are more ranks than slots; the message names file
        and line.
    """
    hosts: list[tuple[int, str]] = []
    most = sum(file.allocation[1])
    for number, line in file.rows:
        if not _LINE.fullmatch(line):
            file.fail(number, "a host", line)
        for match in _PART.finditer(line):
            try:
                names = expand(match[1])
            except SourceError as problem:
                raise RankFileError(f"{file.name}:{number}: {problem}") from problem
            count = int(match[2] or 1)
            if match[2] and len(hosts) + count * len(names) > most:
                file.fail(number, f"at most {most} ranks, one a slot", line)
            hosts += [(number, name) for name in names for _ in range(count)]
    return file.mapping(hosts)


PLANE = SimpleNamespace(recognise=_recognise_plane, read=_read_plane)
