"""Recording of a program in any language by Open MPI's monitoring component, below the program's MPI calls.

G. Bosilca et al., "Online dynamic monitoring of MPI communications", Euro-Par 2017. At the end of the program each rank
writes a file about the messages that it sent. Cost: some 10 ns per message.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ...mapping.readers.monitoring import read_ranks
from ...mapping.readers.text import GraphFileError
from .command import kept_command
from .errors import ProfileError
from .recording import KINDS, Profile, RankRows

__all__ = ["METHOD", "read_monitored", "record"]

METHOD = "Open MPI's monitoring component"
_NAME = "run"
_LETTERS = {letter: number for number, letter in enumerate(KINDS)}
_SETTINGS = {"enable": "2", "enable_output": "3"}  # count internal messages separately; write one file per rank


def record(command: Sequence[str], folder: Path, hosts: Sequence[str] = ()) -> tuple[Profile, int]:
    """Run a command that starts an Open MPI program, and return the profile of its ranks.

    :param command: words of the command, for example ``mpirun -n 4 ./app``; it runs unchanged, in an environment that
        switches monitoring on.
    :param folder: folder for the ranks' files, visible on all hosts; the files are removed.
    :param hosts: host of each rank; empty if unknown.
    :returns: the profile, and the command's exit code.
    :raises ProfileError: if no rank wrote a file, or the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="topoprof.", dir=folder) as scratch:
        files = {**_SETTINGS, "filename": str(Path(scratch).resolve() / _NAME)}
        environment = os.environ | {f"OMPI_MCA_pml_monitoring_{key}": value for key, value in files.items()}
        start = time.monotonic()
        try:
            code = subprocess.run(command, env=environment, check=False).returncode
        except OSError as error:
            raise ProfileError(f"{command[0]}: expecting a command that starts a program: {error.strerror}") from error
        seconds = time.monotonic() - start
        if not any(Path(scratch).iterdir()):
            chosen = "topompi.mpi.profile records on any MPI"
            if code:
                # Open MPI 5.0.11: coll/han and coll/monitoring together, in MPI_Comm_free.
                chosen = "Open MPI 5 crashes here if hosts have several ranks: try --mca coll_han_priority 0"
            if "pml" in command:
                chosen = "--mca pml has to name monitoring, too"
            raise ProfileError(
                f"expecting a program of Open MPI that reaches MPI_Finalize, got none of its ranks' records from "
                f"{shlex.join(command)!r} (exit code {code}); {chosen}"
            )
        return read_monitored(Path(scratch), kept_command(command), seconds, hosts), code


def read_monitored(folder: Path, command: str = "", seconds: float = 0.0, hosts: Sequence[str] = ()) -> Profile:
    """Read the profile of a run from the ``.prof`` files that Open MPI's ranks wrote; files of ranks may be missing.

    :param folder: folder of the files.
    :param command: command of the run; "" if unknown.
    :param seconds: duration of the run in seconds; 0 if unknown.
    :param hosts: host of each rank; empty if unknown.
    :raises ProfileError: if a file is malformed, with file and line.
    """
    try:
        size, found = read_ranks(folder)
    except GraphFileError as error:
        raise ProfileError(str(error)) from error
    ranks = [
        RankRows.of_rows(rank, ((_LETTERS[row.kind], row.peer, row.messages, row.volume) for row in rows))
        for rank, rows in found.items()
    ]
    known = tuple(hosts) if len(hosts) == size else ()
    return Profile(size, METHOD, command, seconds, known, ranks)
