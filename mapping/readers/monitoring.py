"""What Open MPI's monitoring component writes: one ``NAME.RANK.prof`` for each rank.

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
# The sums over a communicator's collectives, which name no pair.
_SUMS = re.compile(r"(?:D|O2A|A2O|A2A)\s.*")


def recognise(file: GraphFile) -> bool:
    """Whether it begins with the heading of the messages between two ranks."""
    return file.head.lstrip().startswith(_HEADING)


def read(file: GraphFile) -> Edges:
    """The graph of all ranks of a run, from the file of any one of them.

    :raises GraphFileError: with file and line; for a rank whose file is not in the same folder.
    """
    match = _FILE.fullmatch(Path(file.name).name)
    if not match:
        raise GraphFileError(f"{file.name}: expecting a name that ends with .RANK.prof, as Open MPI gives")
    return _read_run(Path(file.name).parent, match[1])


def read_folder(folder: Path) -> Edges:
    """The graph of the one run whose files lie in a folder.

    :raises GraphFileError: where there are several runs, or none.
    """
    return _read_run(folder, _run_of(folder))


def read_ranks(folder: Path) -> tuple[int, dict[int, list[Row]]]:
    """How many ranks the one run of a folder has, as far as its files say, and what each rank's file says.

    :param folder: of the files; ranks whose file is missing are left out.
    :returns: number of ranks; by rank rows of kind (a letter), peer, bytes, messages.
    :raises GraphFileError: with file and line; where there are several runs, or none.
    """
    ranks = {rank: _read_rank(GraphFile.open(path), rank) for rank, path in _paths(folder, _run_of(folder)).items()}
    highest = max((row[1] for rows in ranks.values() for row in rows), default=0)
    return max(*ranks, highest) + 1, ranks


def _run_of(folder: Path) -> str:
    """The name of the one run in a folder."""
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
    """The graph of a run. C lines are left out: they say once more what I lines say, as the collective sees it."""
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
    """Rows of kind, peer, bytes, messages.

    E are the program's own messages, I those that the library sends for it (of collectives too), S and R what it puts
    and gets by one-sided calls, C what its collectives were asked to move.
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
