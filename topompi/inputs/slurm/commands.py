"""Runs of Slurm's own commands, with a time limit."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence

from ...errors import SourceError
from ..files import InputFile

__all__ = ["LIST_MPI", "SHOW_CONFIG", "SHOW_JOBS", "SHOW_STATES", "SHOW_TOPOLOGY", "printed"]

SHOW_TOPOLOGY = ("scontrol", "show", "topology")
SHOW_CONFIG = ("scontrol", "show", "config")
LIST_MPI = ("srun", "--mpi=list")
SHOW_JOBS = ("squeue", "--all", "--format=%i|%T|%C|%N")
SHOW_STATES = ("sinfo", "--noheader", "--Node", "--format=%N %T")  # a line per node and partition
SECONDS = 10.0


def printed(command: Sequence[str], wanted: str, seconds: float = SECONDS) -> InputFile:
    """Run a command and return its standard output as an input to read.

    :param command: program and arguments.
    :param wanted: expected output, in words, for the error.
    :param seconds: time limit in seconds.
    :raises SourceError: if the exit code is not 0; the message contains the beginning of standard error.
    :raises OSError: if the program is not installed.
    :raises subprocess.TimeoutExpired: if the time limit is exceeded.
    """
    done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    if done.returncode:
        words = done.stderr.decode("utf-8", errors="replace").strip()
        raise SourceError(f"expecting {wanted}, got exit code {done.returncode}: {words[:200]}")
    return InputFile(" ".join(command), lambda: io.BytesIO(done.stdout))
