"""Open MPI's rank files: ``rank R=HOST slot=S``."""

from __future__ import annotations

import re

from ..mapping import Mapping
from .header import RankFile, header, host_names

__all__ = ["read", "recognise", "write", "write5"]

_LINE = re.compile(r"rank\s+([0-9]{1,10})\s*=\s*([^\s=]+)(?:\s+slots?\s*=\s*(?:([0-9]{1,9})|(\S+)))?")


def write(mapping: Mapping) -> str:
    """For Open MPI 4: slot numbers are mandatory; a rank is bound to the core that its slot within the host names."""
    return _write(mapping, f"mpirun -n {mapping.size} --rankfile THIS_FILE")


def write5(mapping: Mapping) -> str:
    """For Open MPI 5 (PRRTE), which has no option for rank files any more; hosts and slots come from ``--hostfile``.

    Slot S is core S of the host; a host with fewer cores than slots makes mpirun refuse the file.
    """
    return _write(mapping, f"mpirun -n {mapping.size} --map-by rankfile:file=THIS_FILE")


def _write(mapping: Mapping, launch: str) -> str:
    hosts = host_names(mapping)
    first = [0]
    for count in mapping.slots.tolist():
        first.append(first[-1] + count)
    placed = zip(hosts, mapping.host_of_rank.tolist(), mapping.slot_of_rank.tolist(), strict=True)
    lines = [f"rank {rank}={name} slot={slot - first[host]}" for rank, (name, host, slot) in enumerate(placed)]
    return "\n".join([*header(mapping, launch), *lines]) + "\n"


def recognise(file: RankFile) -> bool:
    """Whether its first line begins with ``rank``, a number and ``=``."""
    return bool(re.match(r"rank\s+\S+\s*=", file.first))


def read(file: RankFile) -> Mapping:
    """Ranks may come in any order; a line without a slot takes the host's next one.

    :raises RankFileError: with file and line; for relative hosts (``+n0``) and sets of cores, which name no slot.
    """
    placed: dict[int, tuple[int, str, int | None]] = {}
    for number, line in file.rows:
        match = _LINE.fullmatch(line)
        if not match:
            file.fail(number, "'rank R=HOST slot=S'", line)
        if match[4] is not None:
            file.fail(number, "a slot by its number", match[4])
        rank = int(match[1])
        if rank in placed:
            file.fail(number, f"rank {rank} once, it is on line {placed[rank][0]}", line)
        placed[rank] = (number, match[2], None if match[3] is None else int(match[3]))
    absent = next((rank for rank in range(len(placed)) if rank not in placed), None)
    if absent is not None:
        file.fail(file.rows[-1][0], f"ranks 0 to {len(placed) - 1}, one a line", f"none for rank {absent}")
    rows = [placed[rank] for rank in range(len(placed))]
    return file.mapping([(line, host) for line, host, _ in rows], [slot for _, _, slot in rows])
