"""Open MPI's rank files, with lines ``rank R=HOST slot=S``."""

from __future__ import annotations

import re

from ..mapping import Mapping
from .header import RankFile, header, host_names

__all__ = ["read", "recognise", "write", "write5"]

_LINE = re.compile(r"rank\s+([0-9]{1,10})\s*=\s*([^\s=]+)(?:\s+slots?\s*=\s*(?:([0-9]{1,9})|(\S+)))?")


def write(mapping: Mapping) -> str:
    """A rank file for Open MPI 4, which requires slot numbers and binds a rank to its host's core of this number."""
    return _write(mapping, f"mpirun -n {mapping.size} --rankfile THIS_FILE")


def write5(mapping: Mapping) -> str:
    """A rank file for Open MPI 5 (PRRTE), used by ``--map-by``; hosts and slots come from ``--hostfile``.

    Slot S is core S of the host; mpirun refuses the file if a host has fewer cores than slots.
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
    """Whether the first line begins with ``rank``, a number and ``=``."""
    return bool(re.match(r"rank\s+\S+\s*=", file.first))


def read(file: RankFile) -> Mapping:
    """Read a rank file; ranks may be in any order, and a rank without a slot takes its host's next slot.

    :raises RankFileError: if a line is wrong, or has a relative host (``+n0``) or a set of cores, which identify no
        slot; the message names file and line.
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
