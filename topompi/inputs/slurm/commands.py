"""Runs of Slurm's own commands, with a time limit."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence

from ...errors import SourceError
from ..files import InputFile

__all__ = [
    *("COLUMNS", "ENVIRONMENT", "LIST_MPI", "MARK", "SHOW_CONFIG", "SHOW_JOBS", "SHOW_MARKS", "SHOW_NODES"),
    *("SHOW_QUEUE", "SHOW_STATES", "SHOW_TOPOLOGY", "printed"),
]

SHOW_TOPOLOGY = ("scontrol", "show", "topology")
SHOW_CONFIG = ("scontrol", "show", "config")
LIST_MPI = ("srun", "--mpi=list")
SHOW_JOBS = ("squeue", "--all", "--format=%i|%T|%C|%N")
SHOW_STATES = ("sinfo", "--noheader", "--Node", "--format=%N %T")  # a line per node and partition

# The whole queue and all nodes, for the bridge. The mark between columns is in no host list or feature.
MARK = "\x1f"
# squeue's letters: job in the form of scontrol, its number, partition, state, reason, nodes, priority, limit, times of
# submission, start and end, user, required and excluded nodes, features, generic resources, reservation, nodes.
COLUMNS = "iAPTrDQlVSeunxfbvN"
SHOW_QUEUE = ("squeue", "--all", "--noheader", f"--format={MARK.join('%' + letter for letter in COLUMNS)}")
SHOW_MARKS = ("squeue", "--all", "--noheader", f"--Format=JobID:{MARK},admin_comment:{MARK}")
SHOW_NODES = ("sinfo", "--all", "--noheader", f"--format={MARK.join(('%R', '%a', '%T', '%N'))}")
# Whole lists of array tasks, and times in seconds since 1970.
ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}

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
