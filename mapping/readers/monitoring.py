"""Files of Open MPI's monitoring component, one ``NAME.RANK.prof`` per rank.

A program is recorded with ``mpirun --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 --mca
pml_monitoring_filename NAME``. G. Bosilca et al., "Online dynamic monitoring of MPI communications", Euro-Par 2017.
"""

from __future__ import annotations

import re
from pathlib import Path

from .edges import Edges
from .text import GraphFile, GraphFileError

__all__ = ["NAME", "read", "read_folder", "read_ranks", "recognise"]

Row = tuple[str, int, int, int]

NAME = "Open MPI's monitoring (.prof)"
_FILE = re.compile(r"(.*)\.([0-9]{1,9})\.prof(\.xz|\.gz)?")
_HEADING = "# POINT TO POINT"
_LINE = re.compile(r"([EISRC])\s+(\S+)\s+(\S+)\s+(\S+) bytes\s+(\S+) msgs sent(?:\s.*)?")
_WANTED = "'KIND RANK PEER BYTES bytes COUNT msgs sent', KIND one of E, I, S, R, C"
# Lines with sums over a communicator's collectives, which are skipped because they belong to no pair of ranks.
_SUMS = re.compile(r"(?:D|O2A|A2O|A2A)\s.*")


def recognise(file: GraphFile) -> bool:
    """Whether the file begins with the heading of the messages between two ranks."""
    return file.head.lstrip().startswith(_HEADING)


def read(file: GraphFile) -> Edges:
    """Read the graph of all ranks of a run, given the file of any one rank.

    :raises GraphFileError: if a line is wrong (the message names file and line), or a rank's file is missing in the
        folder.
    """
    match = _FILE.fullmatch(Path(file.name).name)
    if not match:
        raise GraphFileError(f"{file.name}: expecting a name that ends with .RANK.prof, as Open MPI gives")
    return _read_run(Path(file.name).parent, match[1])


def read_folder(folder: Path) -> Edges:
    """Read the graph of the only run whose files are in a folder.

    :raises GraphFileError: if the folder has several runs or none.
    """
    return _read_run(folder, _run_of(folder))


def read_ranks(folder: Path) -> tuple[int, dict[int, list[Row]]]:
    """Read the files of the only run in a folder; ranks without a file are left out.

    :param folder: folder of the files.
    :returns: number of ranks, which is the highest rank in the files plus 1; and for each rank its rows of kind (a
        letter, see ``_read_rank``), peer, bytes and messages.
    :raises GraphFileError: if a line is wrong (the message names file and line), or the folder has several runs or
        none.
    """
    ranks = {rank: _read_rank(GraphFile.open(path), rank) for rank, path in _paths(folder, _run_of(folder)).items()}
    highest = max((row[1] for rows in ranks.values() for row in rows), default=0)
    return max(*ranks, highest) + 1, ranks


def _run_of(folder: Path) -> str:
    """The name of the only run in a folder."""
    matches = [_FILE.fullmatch(path.name) for path in sorted(folder.iterdir())]
    names = sorted({str(match[1]) for match in matches if match})
    if len(names) != 1:
        found = f"those of {', '.join(names)}" if names else "none"
        raise GraphFileError(f"{folder}: expecting the files NAME.RANK.prof of one run, got {found}")
    return names[0]


def _paths(folder: Path, name: str) -> dict[int, Path]:
    """The file of each rank of a run."""
    paths = {}
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(path.name)
        if match and match[1] == name:
            paths[int(match[2])] = path
    return paths


def _read_run(folder: Path, name: str) -> Edges:
    """Read the graph of a run.

    Lines of kind C, the bytes that collectives were asked to move, are left out, because lines of kind I count the same
    data in the messages that the library sent for the collectives.
    """
    paths = _paths(folder, name)
    size = max(paths) + 1
    absent = next((rank for rank in range(size) if rank not in paths), None)
    if absent is not None:
        raise GraphFileError(f"{folder / name}: expecting a file for each rank to {size - 1}, got none for {absent}")
    rows = (
        (*((peer, rank) if kind == "R" else (rank, peer)), volume, messages)
        for rank in range(size)
        for kind, peer, volume, messages in _read_rank(GraphFile.open(paths[rank]), rank, size)
        if kind != "C"
    )
    return Edges.of_rows(str(folder / name), rows, size, messages=True)


def _read_rank(file: GraphFile, rank: int, size: int = 10**9) -> list[Row]:
    """The rows of kind, peer, bytes and messages in a rank's file.

    Kinds: E for messages of the program, I for messages that the library sends for it (including collectives), S and R
    for one-sided puts and gets, C for the bytes that collectives were asked to move.
    """
    if not recognise(file):
        file.fail(1, repr(_HEADING), file.head.partition("\n")[0])
    rows: list[Row] = []
    for number, line in file.lines("#"):
        match = _LINE.fullmatch(line)
        if not match:
            if line and not _SUMS.fullmatch(line):
                file.fail(number, _WANTED, line)
            continue
        sender, peer = file.rank(number, match[2]), file.rank(number, match[3])
        if sender != rank or peer >= size:
            file.fail(number, f"rank {rank} and a peer below {size}, the number of files", f"{sender} {peer}")
        rows.append((match[1], peer, file.volume(number, match[4]), file.volume(number, match[5])))
    return rows
