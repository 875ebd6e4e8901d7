"""Files of Open MPI's monitoring component, one ``NAME.RANK.prof`` per rank, or one with the lines of all ranks.

A program is recorded with ``mpirun --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 --mca
pml_monitoring_filename NAME``. G. Bosilca et al., "Online dynamic monitoring of MPI communications", Euro-Par 2017.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .edges import EdgeList
from .text import GraphFile, GraphFileError

__all__ = ["NAME", "MonitoringLine", "is_run", "read", "read_ranks", "read_run", "recognise"]


class MonitoringLine(NamedTuple):
    """A line: the kind of traffic, a letter, the rank whose line it is, its peer, bytes, messages, and line number."""

    kind: str
    sender: int
    peer: int
    volume: int
    messages: int
    line: int


NAME = "Open MPI's monitoring (.prof)"
_FILE = re.compile(r"(.*)\.([0-9]{1,9})\.prof(\.xz|\.gz)?")
_JOINED = re.compile(r"(.*)\.prof(\.xz|\.gz)?")
_HEADING = "# POINT TO POINT"
_LINE = re.compile(r"([EISRC])\s+(\S+)\s+(\S+)\s+(\S+) bytes\s+(\S+) msgs sent(?:\s.*)?")
_WANTED = "'KIND RANK PEER BYTES bytes COUNT msgs sent', KIND one of E, I, S, R, C"
# Lines with sums over a communicator's collectives, which are skipped because they belong to no pair of ranks.
_SUMS = re.compile(r"(?:D|O2A|A2O|A2A)\s.*")


def recognise(file: GraphFile) -> bool:
    """Whether the file begins with the heading of the messages between two ranks, or with the line of a pair."""
    first = next((line for line in file.head.splitlines() if line and not line.startswith("#")), "")
    return file.head.lstrip().startswith(_HEADING) or bool(_LINE.fullmatch(first))


def read(file: GraphFile) -> EdgeList:
    """Read the graph of all ranks: of the file, if it has their lines joined, else of the run that it is part of.

    :raises GraphFileError: if a line is wrong (the message names file and line), or a rank's file is missing in the
        folder.
    """
    match, rows = _FILE.fullmatch(Path(file.name).name), list(_rows(file))
    senders = {row.sender for row in rows}
    if match and senders <= {int(match[2])}:
        return _read_run(Path(file.name).parent, match[1])
    headings = sum(line.strip() == _HEADING for _, line in file.lines(""))
    size = max((max(row.sender, row.peer) + 1 for row in rows), default=0)
    if len(senders) < 2 or 1 < headings < size:
        wanted = "a name that ends with .RANK.prof, as Open MPI gives, or the lines of all ranks"
        raise GraphFileError(f"{file.name}: expecting {wanted}, got those of {max(len(senders), headings)} of {size}")
    return EdgeList.of_rows(file.name, _pairs(rows), max(size, headings), messages=True)


def is_run(path: Path) -> bool:
    """Whether a path is the folder of a run's files, or their common beginning, as in ``FOLDER/NAME``."""
    return path.is_dir() or (not path.exists() and path.parent.is_dir() and path.name in _runs(path.parent))


def read_run(path: Path, notes: list[str]) -> EdgeList:
    """Read the graph of a run; of the phases in a folder, whose names differ in numbers alone, read the sum.

    The component writes a phase when the program asks for it, and counts from zero again.

    :param path: folder of the files, or the common beginning of those of one run or phase.
    :param notes: list that receives a line if phases are summed.
    :raises GraphFileError: if the folder has runs of several names, or of different numbers of ranks, or none.
    """
    if not path.is_dir():
        return _read_run(path.parent, path.name)
    names = sorted(_runs(path), key=lambda name: [int(word) for word in re.findall(r"[0-9]{1,9}", name)])
    if len({re.sub(r"[0-9]+", "0", name) for name in names}) != 1:
        found = f"those of {', '.join(names)}: give one as {path / names[0]}" if names else "none"
        raise GraphFileError(f"{path}: expecting the files NAME.RANK.prof of one run, got {found}")
    phases = [_read_run(path, name) for name in names]
    if len(phases) == 1:
        return phases[0]
    if odd := next((at for at, one in enumerate(phases) if one.size != phases[0].size), 0):
        wanted, got = phases[0].size, f"{phases[odd].size} in {names[odd]}"
        raise GraphFileError(f"{path}: expecting phases of {wanted} ranks, as in {names[0]}, got {got}")
    notes.append(f"{path}: the sum of {len(names)} phases, {names[0]} to {names[-1]}; {path / names[0]} takes one")
    columns = ("source", "target", "volume", "messages")
    summed = (np.concatenate([getattr(one, column) for one in phases]) for column in columns)
    return EdgeList(str(path), phases[0].size, True, *summed)


def read_ranks(folder: Path) -> tuple[int, dict[int, list[MonitoringLine]]]:
    """Read the files of the only run in a folder; ranks without a file are left out.

    :param folder: folder of the files.
    :returns: number of ranks, which is the highest rank in the files plus 1; and for each rank its rows.
    :raises GraphFileError: if a line is wrong (the message names file and line), or the folder has several runs or
        none.
    """
    runs = [files for files in _runs(folder).values() if isinstance(files, dict)]
    if len(runs) != 1:
        raise GraphFileError(f"{folder}: expecting the files NAME.RANK.prof of one run, got {len(runs)} runs")
    ranks = {rank: list(_rank_rows(GraphFile.open(path), rank)) for rank, path in runs[0].items()}
    highest = max((row.peer for rows in ranks.values() for row in rows), default=0)
    return max(*ranks, highest) + 1, ranks


def _runs(folder: Path) -> dict[str, dict[int, Path] | Path]:
    """The file of each rank of each run in a folder, or the file of all ranks, by the run's name."""
    found: dict[str, dict[int, Path] | Path] = {}
    for path in sorted(folder.iterdir()):
        if match := _FILE.fullmatch(path.name):
            ranks = found.setdefault(match[1], {})
            if isinstance(ranks, dict):
                ranks[int(match[2])] = path
        elif match := _JOINED.fullmatch(path.name):
            found[match[1]] = path
    return found


def _read_run(folder: Path, name: str) -> EdgeList:
    """Read the graph of a run from the files of its ranks, or from the file of all ranks."""
    paths = _runs(folder)[name]
    if isinstance(paths, Path):
        return read(GraphFile.open(paths))
    size = max(paths) + 1
    absent = next((rank for rank in range(size) if rank not in paths), None)
    if absent is not None:
        raise GraphFileError(f"{folder / name}: expecting a file for each rank to {size - 1}, got none for {absent}")
    rows = (row for rank in range(size) for row in _rank_rows(GraphFile.open(paths[rank]), rank, size))
    return EdgeList.of_rows(str(folder / name), _pairs(rows), size, messages=True)


def _pairs(rows: Iterable[MonitoringLine]) -> Iterator[tuple[int, int, int, int]]:
    """Yield sender, receiver, bytes and messages of rows.

    Lines of kind C, the bytes that collectives were asked to move, are left out, because lines of kind I count the same
    data in the messages that the library sent for the collectives.
    """
    for kind, rank, peer, volume, messages, _ in rows:
        if kind != "C":
            yield (*((peer, rank) if kind == "R" else (rank, peer)), volume, messages)


def _rank_rows(file: GraphFile, rank: int, size: int = 10**9) -> Iterator[MonitoringLine]:
    """Yield the rows of one rank's file; refuse those of other ranks, and peers beyond the number of ranks."""
    if not recognise(file):
        file.fail(1, repr(_HEADING), file.head.partition("\n")[0])
    for row in _rows(file):
        if row.sender != rank or row.peer >= size:
            wanted = f"rank {rank} and a peer below {size}, the number of files"
            file.fail(row.line, wanted, f"{row.sender} {row.peer}")
        yield row


def _rows(file: GraphFile) -> Iterator[MonitoringLine]:
    """Yield the row of each pair of ranks.

    Kinds: E for messages of the program, I for messages that the library sends for it (including collectives), S and R
    for one-sided puts and gets, C for the bytes that collectives were asked to move.
    """
    for number, line in file.lines("#"):
        match = _LINE.fullmatch(line)
        if not match:
            if line and not _SUMS.fullmatch(line):
                file.fail(number, _WANTED, line)
            continue
        ends = file.rank(number, match[2]), file.rank(number, match[3])
        yield MonitoringLine(match[1], *ends, file.volume(number, match[4]), file.volume(number, match[5]), number)
