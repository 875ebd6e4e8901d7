"""Files of IBM's launchers: jsrun's explicit resource file (ERF), and LSF's affinity host file."""

from __future__ import annotations

import re
from types import SimpleNamespace

from ..mapping import Mapping
from .header import RankFile
from .openmpi import Place, mapping_of

__all__ = ["AFFINITY", "ERF"]

# Patterns of lines without blanks.
_PREAMBLE = re.compile(
    r"(?:cpu_index_using|overlapping_rs|oversubscribe_\w+|skip_missing_\w+|launch_distribution|app\d+):.*"
)
_RESOURCES = re.compile(r"(?:rank:\{?([0-9,-]+)\}?|([0-9]{1,9})):\{(.*)\}(?::app[0-9]+)?", re.I)
_HOST = re.compile(r"(?:^|;)hosts?:\{?([A-Za-z0-9_.-]+)\}?(?:;|$)")
_CPUS = re.compile(r"(?:^|;)cpu:([^;]*)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_WANTED = "'rank: RANKS: { host: HOST; cpu: {CPUS} }'"
# Host and CPUs of a task, then perhaps NUMA nodes and a policy of memory.
_TASK = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)\s+([0-9][0-9,-]*)(?:\s+\S+){0,2}")


def _recognise_erf(file: RankFile) -> bool:
    """Whether the first line is a setting of an ERF, or a set of resources."""
    first = "".join(file.first.split())
    return bool(_PREAMBLE.fullmatch(first) or _RESOURCES.fullmatch(first))


def _read_erf(file: RankFile) -> Mapping:
    """Read an ERF. Hosts have a name or their number in the allocation, from 1; ranks take slots by their first CPUs.

    :raises RankFileError: if a line is wrong, or ranks are left to the launcher; the message names file and line.
    """
    placed: dict[int, Place] = {}
    for number, line in ((number, "".join(line.split())) for number, line in file.rows):
        if match := _RESOURCES.fullmatch(line):
            host, cpus = _host(file, number, match[3]), _cpu_sets(match[3])
            ranks = _ranks(file, number, match[1]) if match[1] else range(len(placed), len(placed) + int(match[2]))
            for at, rank in enumerate(ranks):
                if rank in placed:
                    file.fail(number, f"rank {rank} once, it is on line {placed[rank][0]}", line)
                placed[rank] = number, host, cpus[at if len(cpus) == len(ranks) else 0]
        elif not _PREAMBLE.fullmatch(line):
            file.fail(number, _WANTED, line)
        elif re.match("launch_distribution:(?!packed)", line):
            file.fail(number, "ranks that the file places, or packed ones", line)
    return mapping_of(file, placed)


def _host(file: RankFile, line: int, resources: str) -> int:
    match, names = _HOST.search(resources), file.allocation[0]
    if match is None:
        file.fail(line, "one host of each set of resources", resources)
    if not match[1].isdecimal():
        return file.host_number(line, match[1])
    if not 1 <= int(match[1][:9]) <= len(names):
        file.fail(line, f"a host by its number from 1 to {len(names)}", match[1])
    return int(match[1]) - 1


def _cpu_sets(resources: str) -> list[str]:
    """Return the CPUs of each rank of a set of resources, without braces."""
    match = _CPUS.search(resources)
    return (re.findall(r"\{([^{}]*)\}", match[1]) if match else []) or [""]


def _ranks(file: RankFile, line: int, words: str) -> list[int]:
    most, found = sum(file.allocation[1]), list[int]()
    for word in words.split(","):
        match = _RANGE.fullmatch(word)
        last = int(match[2] or match[1]) if match else most
        if not match or not int(match[1]) <= last < most:
            file.fail(line, f"ranks below {most}, the number of slots, and ranges of them", word)
        found += range(int(match[1]), last + 1)
    return found


def _recognise_affinity(file: RankFile) -> bool:
    """Whether all lines have a host and CPUs, and these are no numbers of slots: a host is repeated, or one has two."""
    tasks = [_TASK.fullmatch(line) for _, line in file.rows]
    found = [match for match in tasks if match]
    are_cpus = any(not match[2].isdecimal() or int(match[2][:9]) == 0 for match in found)
    return len(found) == len(tasks) and bool(found) and (are_cpus or len({match[1] for match in found}) < len(found))


def _read_affinity(file: RankFile) -> Mapping:
    """Read LSF's ``LSB_AFFINITY_HOSTFILE``: line i has the host and the CPUs of rank i.

    :raises RankFileError: if a host is not in the allocation, or has fewer slots than ranks.
    """
    placed: dict[int, Place] = {}
    for rank, (number, line) in enumerate(file.rows):
        host, cpus = line.split()[:2]
        placed[rank] = number, file.host_number(number, host), cpus
    return mapping_of(file, placed)


ERF = SimpleNamespace(recognise=_recognise_erf, read=_read_erf)
AFFINITY = SimpleNamespace(recognise=_recognise_affinity, read=_read_affinity)
