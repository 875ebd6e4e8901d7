"""Cray MPICH's rank order, and the host file of hydra, the launcher of MPICH."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from ..mapping import Mapping
from .header import RankFile, RankFileError, header, host_names

__all__ = ["HYDRA", "RANK_ORDER", "write_hydra", "write_rank_order"]

_HOST = re.compile(r"[A-Za-z0-9_.-]+")
LOOK = 1000  # lines by which the format is recognised
_RANKS = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")
_MAP = re.compile(r"# rankmap (\S+)")
# With hydra's options, such as binding=..., or MVAPICH's adapter of the host.
_RUN = re.compile(r"([A-Za-z0-9_.-]+):([0-9]{1,9})(?::[A-Za-z0-9_.:-]+)?(?:\s+[a-z]+=\S+)*")
# Open MPI's host file, whose mapping by slot is that of hydra; the number of slots has four names.
_SLOTS = re.compile(r"([A-Za-z0-9_.-]+)((?:\s+[A-Za-z_-]{1,30}\s*=\s*\S{1,60})+)")
_COUNT = re.compile(r"\s(?:slots|cpus?|count)\s*=\s*([0-9]{1,9})(?=\s|$)")
_EXCLUDED = re.compile(r"\^[A-Za-z0-9_.-]+")  # a host that Open MPI leaves out


def write_rank_order(mapping: Mapping) -> str:
    """The file ``MPICH_RANK_ORDER``: the ranks in the order in which slots are filled, host by host.

    :raises RankFileError: if a slot before the last one taken is empty, which the file cannot express.
    """
    used = mapping.rank_of_slot[: int(mapping.slot_of_rank.max(initial=-1)) + 1]
    if (used < 0).any():
        host = int(np.repeat(np.arange(len(mapping.hosts)), mapping.slots)[int(np.argmax(used < 0))])
        ranks = np.bincount(mapping.host_of_rank, minlength=len(mapping.hosts))
        spelled = ",".join(map(str, ranks.tolist())) if len(ranks) <= 16 else "as many as there are ranks"
        raise RankFileError(
            f"MPICH_RANK_ORDER fills host after host, but {mapping.hosts[host]} has empty slots before ranks that come "
            f"later: give it fewer slots (--slots {spelled})"
        )
    bounds = np.cumsum(mapping.slots)[:-1]
    lines = [",".join(map(str, part.tolist())) for part in np.split(used, bounds) if len(part)]
    launch = "MPICH_RANK_REORDER_METHOD=3, this file as MPICH_RANK_ORDER in the working directory"
    return "\n".join([*header(mapping, launch), *lines]) + "\n"


def write_hydra(mapping: Mapping) -> str:
    """The host file of MPICH's ``mpiexec``: lines ``HOST:COUNT``, and a comment with the value of ``-rankmap``.

    Host files may repeat a host, and hydra then places ranks as listed. But it treats each line as a separate host, so
    that ranks of one host do not share memory (MPICH 5.0). A rank map avoids this.
    """
    names = host_names(mapping)
    used, node = np.unique(mapping.host_of_rank, return_inverse=True)
    rows = [f"{mapping.hosts[host]}:{count}" for host, count in zip(used.tolist(), np.bincount(node), strict=True)]
    given = "\"$(sed -n 's/^# rankmap //p' THIS_FILE)\""
    launch = header(mapping, f"mpiexec -f THIS_FILE -rankmap {given} -n {len(names)}")
    return "\n".join([*launch, "# rankmap " + ",".join(map(str, node.tolist())), *rows]) + "\n"


def _recognise_rank_order(file: RankFile) -> bool:
    """Whether the first line consists of numbers and ranges, separated by commas or blanks."""
    return bool(re.fullmatch(r"[0-9]+([-,\s]+[0-9]+)*,?", file.first))


def _read_rank_order(file: RankFile) -> Mapping:
    """Read a rank order: numbers and ranges (``4-7``), separated by commas, blanks and line ends.

    :raises RankFileError: if a word is no rank, or a rank is repeated or missing; the message names file and line.
    """
    _, counts = file.allocation
    line_of: dict[int, int] = {}
    for number, line in file.rows:
        for word in filter(None, re.split(r"[,\s]+", line)):
            match = _RANKS.fullmatch(word)
            last = int(match[2] or match[1]) if match else -1
            if not match or last < int(match[1]) or last >= sum(counts):
                file.fail(number, f"ranks below {sum(counts)}, the number of slots, and ranges of them", word)
            for rank in range(int(match[1]), last + 1):
                if rank in line_of:
                    file.fail(number, f"rank {rank} once, it is on line {line_of[rank]}", word)
                line_of[rank] = number
    if line_of and max(line_of) >= len(line_of):
        absent = next(rank for rank in range(len(line_of)) if rank not in line_of)
        file.fail(file.rows[-1][0], f"ranks 0 to {max(line_of)}", f"no rank {absent}")
    file.check_count(len(line_of))
    slot_of_rank = np.empty(len(line_of), dtype=np.int64)
    slot_of_rank[list(line_of)] = np.arange(len(line_of))
    return file.of_slots(slot_of_rank.tolist())


def _recognise_hydra(file: RankFile) -> bool:
    """Whether a line is ``HOST:COUNT``, or Open MPI's ``HOST slots=COUNT``; others may have a host, or ``^HOST``."""
    lines = [line for _, line in file.rows[:LOOK] if not _EXCLUDED.fullmatch(line)]
    return any(_run(line) for line in lines) and all(_run(line) or _HOST.fullmatch(line) for line in lines)


def _run(line: str) -> tuple[str, int] | None:
    """Return the host of a line and its number of ranks; None if the line has another form."""
    if match := _RUN.fullmatch(line):
        return match[1], int(match[2])
    match = _SLOTS.fullmatch(line)
    count = _COUNT.search(match[2]) if match else None
    return (match[1], int(count[1])) if match and count else None


def _read_hydra(file: RankFile) -> Mapping:
    """Read lines ``HOST``, ``HOST:COUNT[:ADAPTER]`` or ``HOST slots=COUNT``; ranks fill them, or as a rank map tells.

    :raises RankFileError: if a line has another form; the message names file and line.
    """
    hosts: list[tuple[int, str]] = []
    lines: list[tuple[int, str]] = []
    total = sum(file.allocation[1])
    for number, line in file.rows:
        if _EXCLUDED.fullmatch(line):
            continue
        host, count = _run(line) or (line, 1 if _HOST.fullmatch(line) else 0)
        if not 1 <= count <= total - len(hosts):
            file.fail(number, f"'HOST:COUNT', the counts at most {total} together", line)
        lines.append((number, host))
        hosts += [(number, host)] * count
    return file.mapping(_mapped(file, lines) or hosts)


def _mapped(file: RankFile, lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]] | None:
    """The host of each rank from the rank map; None if the file has no rank map."""
    found = next(((number, match[1]) for number, line in file.numbered if (match := _MAP.fullmatch(line))), None)
    if found is None:
        return None
    number, written = found
    nodes = written.split(",")
    odd = next((node for node in nodes if not re.fullmatch("[0-9]{1,9}", node) or int(node) >= len(lines)), None)
    if odd is not None:
        file.fail(number, f"host lines by their number below {len(lines)}", odd)
    return [(number, lines[int(node)][1]) for node in nodes]


RANK_ORDER = SimpleNamespace(recognise=_recognise_rank_order, read=_read_rank_order)
HYDRA = SimpleNamespace(recognise=_recognise_hydra, read=_read_hydra)
