"""Reader of the Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

A line has 18 numbers for one job; -1 is unknown; lines that start with ``;`` are the header (S. J. Chapin et al.,
Benchmarks and standards for the evaluation of parallel job schedulers, 1999).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

import numpy as np

from ....inputs import InputFile
from ..errors import WorkloadError
from .text import Source, lines, open_log, whole
from .workload import LATEST, LeftOut, Workload, header_cores, header_number

__all__ = ["read_swf"]

FIELDS = 18
NAMES = {0: "job number", 1: "submit time", 3: "run time", 4: "processors", 7: "requested processors"}
NAMES |= {8: "requested time", 11: "user"}
KEPT = tuple(NAMES)
TIMES = (1, 3, 8)  # fields with seconds, which some logs write with fractions
FREE = {"group": 12, "program": 13, "queue": 14, "partition": 15}
STATUS = 10
PARTS = (2, 3, 4)  # statuses of a partial run of a job with checkpoints
_FRACTIONS = "times with fractions of a second are rounded"
_kept = itemgetter(*KEPT)
_coded = itemgetter(STATUS, *FREE.values())


def read_swf(path: Source, cores_per_node: int | None = None, partial: bool = False) -> Workload:
    """Read the jobs of a log; a job's number of nodes is its processors divided by ``cores_per_node``, rounded up.

    Seconds with a fraction are rounded.
    The processors are the allocated ones if known, else the requested ones. Jobs without processors or run time are
    left out and counted. If the log has a job that was checkpointed both as a whole and in parts (status 2 to 4), the
    parts are left out, too. The further columns are ``slots``, the number of processors, and the numbers of ``group``,
    ``program``, ``queue`` and ``partition``, -1 if unknown.

    :param path: path of the log, plain or packed.
    :param cores_per_node: number of processors per node; None for the header's MaxProcs / MaxNodes, else 1.
    :param partial: whether wrong lines are skipped and counted, instead of raising an error.
    :raises WorkloadError: if the log is malformed; the message names file, line and field.

    Cost: memory of 96 bytes per job, and 300 per distinct combination of further fields.
    """
    log = open_log(path)
    if cores_per_node is not None and cores_per_node < 1:
        raise WorkloadError(f"{log.name}: expecting 1 or more cores a node, got {cores_per_node}")
    reading, header, codes = LeftOut(partial), list[str](), dict[tuple[str, ...], int]()
    rows = array("q")
    for values in _usable(log, reading, header, codes):
        rows.extend(values)
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(KEPT) + 1).T
    jobs, submit, run, processors, requested, request, user, code = columns
    status, *free = np.array([_further(words) for words in codes], dtype=np.int64).reshape(-1, len(FREE) + 1)[code].T
    slots = np.where(processors > 0, processors, requested)
    cores = cores_per_node or _told_cores(header, reading.notes)
    workload = Workload.of(
        log.name,
        number=jobs,
        submit=submit,
        run=run,
        request=np.maximum(request, 0),
        nodes=-(-slots // cores),
        user=np.maximum(user, -1),
        header=tuple(header),
        reading=reading,
        columns={"slots": slots, "status": status, **dict(zip(FREE, free, strict=True))},
    )
    return _without_parts(workload)


def _told_cores(header: list[str], notes: list[str]) -> int:
    """Return the number of processors per node by the header; ``notes`` receives how sizes are taken."""
    nodes, processors = (header_number(header, word) or 0 for word in ("MaxNodes", "MaxProcs"))
    cores, told = header_cores(header), f"MaxProcs {processors:,}, MaxNodes {nodes:,}"
    if cores > 1:
        notes.append(f"sizes are processors, {cores:,} a node by the header ({told}); --cores 1 takes them as nodes")
    elif nodes and processors not in (0, nodes):
        notes.append(f"sizes are taken as nodes, because the header says no whole number of processors a node ({told})")
    return cores


def _without_parts(workload: Workload) -> Workload:
    """Leave out parts of jobs if the log also has the whole job, whose run time is the sum of the parts' run times."""
    status, number = workload["status"], workload.number
    part = np.isin(status, PARTS)
    part &= np.isin(number, number[~part])
    workload = replace(workload, columns={word: of for word, of in workload.columns.items() if word != "status"})
    if not part.any():
        return workload
    workload.reading.dropped["part of a job that is there as a whole"] = int(part.sum())
    return workload.select(~part)


def _usable(
    log: InputFile, reading: LeftOut, header: list[str], codes: dict[tuple[str, ...], int]
) -> Iterator[list[int]]:
    """Yield, for each job that ran, its fields in ``KEPT`` and a code for its further fields.

    Lines of the header go to ``header``, lines that are left out to ``reading``.

    :param log: the log.
    :param reading: record of the lines that are left out.
    :param header: list that receives the lines of the header.
    :param codes: dictionary that receives further fields and their codes; jobs have few distinct ones, so that a code
        saves the conversion of each line's numbers.
    """
    for number, line in lines(log):
        if line.lstrip().startswith((";", "#")):
            header.append(f"; {line.strip().lstrip(';# ')}" if line.lstrip()[0] == "#" else line.strip())
        elif words := line.partition(";")[0].split():
            try:
                values = _values(f"{log.name}: line {number}", words, reading.notes)
            except WorkloadError as error:
                reading.problem(error)
                continue
            if reason := _unusable(values):
                reading.drop(reason)
            else:
                values.append(codes.setdefault(_coded(words), len(codes)))
                yield values


def _values(where: str, words: list[str], notes: list[str]) -> list[int]:
    if len(words) != FIELDS:
        raise WorkloadError(f"{where}: expecting {FIELDS} fields, got {len(words)}")
    try:
        values = list(map(int, _kept(words)))
        if min(values) > -LATEST and max(values) < 2**31:
            return values
    except ValueError:
        words = [_rounded(word, notes) if at in TIMES else word for at, word in enumerate(words)]
    limits = {4: (-LATEST, 2**31), 7: (-LATEST, 2**31), 11: (-LATEST, 2**31)}
    for at in KEPT:
        least, below = limits.get(at, (-LATEST, LATEST))
        value = whole(where, f"field {at + 1} ({NAMES[at]})", words[at], least)
        if value >= below:
            raise WorkloadError(f"{where}: field {at + 1} ({NAMES[at]}): expecting less than {below}, got {value}")
    return [whole(where, NAMES[at], words[at]) for at in KEPT]


def _rounded(seconds: str, notes: list[str]) -> str:
    """Round a text with a fraction of a second to whole seconds; return any other text as it is."""
    try:
        exact = float(seconds)
        found = str(math.floor(exact + 0.5)) if "." in seconds else seconds
    except (ValueError, OverflowError):
        return seconds
    if found != seconds and exact != int(exact) and _FRACTIONS not in notes:
        notes.append(_FRACTIONS)
    return found


def _further(words: tuple[str, ...]) -> list[int]:
    """Convert the optional fields; anything but a whole number becomes -1, because a log is not refused for them."""
    return [int(word) if word.isdecimal() and len(word) < 12 and int(word) < 2**31 else -1 for word in words]


def _unusable(values: list[int]) -> str:
    if max(values[3], values[4]) <= 0:
        return "no processors"
    if values[1] < 0:
        return "no submit time"
    return "no run time" if values[2] < 0 else ""
