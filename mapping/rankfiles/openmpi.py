"""Open MPI's rank files, with lines ``rank R=HOST slot=S``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..mapping import Mapping
from .header import RankFile, header, host_names

__all__ = ["Place", "mapping_of", "read", "recognise", "write", "write5"]

_LINE = re.compile(r"rank\s+([0-9]{1,10})\s*=\s*(?:[^\s=@]+@)?([^\s=@]+)(?:\s+slots?\s*=\s*(\S.*))?", re.I)
_SLOT = re.compile("[0-9]{1,9}")
_EMPTY = re.compile(r"\+e[0-9]{0,9}")  # of the hosts on which nothing runs when mpirun starts
_RELATIVE = re.compile(r"\+n([0-9]{1,9})")
# CPU numbers and ranges of them, or those of a socket: 2, 0,1, 2-3, 0:0-1, 1:*, p0:0.
_CPUS = re.compile(r"[pP]?(?:([0-9]{1,9}|\*):)?([0-9]{1,9}|\*)(?:-[0-9]{1,9})?(?:[,;][pP0-9:;,*-]{1,1000})?")

Place = tuple[int, int, str]  # line, number of the host, and the words after ``slot=``; empty if there are none


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
    return bool(re.match(r"rank\s+\S+\s*=", file.first, re.I))


def read(file: RankFile) -> Mapping:
    """Read a rank file; ranks may be in any order, and a rank without a slot takes its host's next slot.

    A host may be relative (``+n0`` is the allocation's first). The text behind ``slot=`` can be a slot's number or a
    set of CPUs (``0:1``, ``0-1``, ``1:*``). If it is not the number of an existing slot for one of a host's ranks, it
    is taken as CPUs for all ranks of this host, and they get slots in the order of their first CPUs.

    :raises RankFileError: if a line is wrong, or a host has fewer slots than ranks; the message names file and line.
    """
    placed: dict[int, Place] = {}
    for number, line in file.rows:
        match = _LINE.fullmatch(line)
        if not match:
            file.fail(number, "'rank R=HOST slot=S'", line)
        rank = int(match[1])
        if rank in placed:
            file.fail(number, f"rank {rank} once, it is on line {placed[rank][0]}", line)
        placed[rank] = number, _host(file, number, match[2]), match[3] or ""
    return mapping_of(file, placed)


def mapping_of(file: RankFile, placed: dict[int, Place]) -> Mapping:
    """Return the mapping that puts each rank on a host, in a slot or in the order of CPUs, see `read`.

    :param file: file, for its allocation and for error messages.
    :param placed: line, host and text of slot or CPUs, by rank.
    :raises RankFileError: if a rank is missing, or a host has fewer slots than ranks.
    """
    absent = next((rank for rank in range(len(placed)) if rank not in placed), None)
    if absent is not None:
        file.fail(file.rows[-1][0], f"ranks 0 to {len(placed) - 1}, one a line", f"none for rank {absent}")
    rows, names = [placed[rank] for rank in range(len(placed))], file.allocation[0]
    return file.mapping([(line, names[host]) for line, host, _ in rows], _slots(file, rows))


def _host(file: RankFile, line: int, name: str) -> int:
    match = _RELATIVE.fullmatch(name)
    if _EMPTY.fullmatch(name):
        number = name.replace("e", "n")
        file.fail(line, f"a host by name or as {number}, because only mpirun knows which hosts are empty", name)
    if match is None:
        return file.host_number(line, name)
    count = len(file.allocation[0])
    if int(match[1]) >= count:
        file.fail(line, f"a host below +n{count}, the number of hosts", name)
    return int(match[1])


def _slots(file: RankFile, rows: Sequence[Place]) -> list[int | None]:
    """The slot of each rank within its host, None for the host's next free slot.

    :param file: file, for error messages.
    :param rows: line, host and text behind ``slot=`` of each rank.
    """
    counts, of_host = file.allocation[1], dict[int, list[int]]()
    for rank, (_, host, _) in enumerate(rows):
        of_host.setdefault(host, []).append(rank)
    slots: list[int | None] = [None] * len(rows)
    for host, ranks in of_host.items():
        told = [rows[rank][2] for rank in ranks]
        if all(not words or (_SLOT.fullmatch(words) and (file.is_ours or int(words) < counts[host])) for words in told):
            for rank, words in zip(ranks, told, strict=True):
                slots[rank] = int(words) if words else None
            continue
        cpus = {rank: _first_cpu(file, rows[rank][0], words) for rank, words in zip(ranks, told, strict=True)}
        for slot, rank in enumerate(sorted(ranks, key=lambda rank: cpus[rank])):
            slots[rank] = slot
    return slots


def _first_cpu(file: RankFile, line: int, words: str) -> tuple[int, int]:
    """The socket and the number of the first CPU in a text; 0 for a socket without a name, and for ``*``."""
    match = _CPUS.fullmatch(words.strip("\"' ")) if words else None
    if words and match is None:
        file.fail(line, "a slot, CPUs such as 0,2-3, or a socket's such as 0:1", words)
    socket, cpu = (match[1], match[2]) if match else ("", "")
    return int(socket) if socket and socket != "*" else 0, int(cpu) if cpu and cpu != "*" else 0
