"""Runs of Slurm's own commands, with a time limit."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence

from ...errors import SourceError
from ..files import InputFile

__all__ = [
    *("COLUMNS", "ENVIRONMENT", "LIST_MPI", "MARK", "SHOW_CONFIG", "SHOW_JOBS", "SHOW_MARKS", "SHOW_NODES"),
    *("SHOW_QUEUE", "SHOW_STATES", "SHOW_TOPOLOGY", "asked", "printed"),
]

SHOW_TOPOLOGY = ("scontrol", "show", "topology")
SHOW_CONFIG = ("scontrol", "show", "config")
LIST_MPI = ("srun", "--mpi=list")
# --local, because a federation may show the jobs and nodes of all its clusters.
SHOW_JOBS = ("squeue", "--all", "--local", "--format=%i|%T|%C|%N")
SHOW_STATES = ("sinfo", "--local", "--noheader", "--Node", "--format=%N %T")  # a line per node and partition

# The whole queue and all nodes, for the bridge. The mark between columns is in no host list or feature.
MARK = "\x1f"
# squeue's letters: job in the form of scontrol, its number, partition, state, reason, nodes, priority, limit, times of
# submission, start and end, user, required and excluded nodes, features, generic resources, reservation, nodes.
COLUMNS = "iAPTrDQlVSeunxfbvN"
SHOW_QUEUE = ("squeue", "--all", "--local", "--noheader", f"--format={MARK.join('%' + letter for letter in COLUMNS)}")
SHOW_MARKS = ("squeue", "--all", "--local", "--noheader", f"--Format=JobID:{MARK},admin_comment:{MARK}")
SHOW_NODES = ("sinfo", "--all", "--local", "--noheader", f"--format={MARK.join(('%R', '%a', '%T', '%N'))}")
# Whole lists of array tasks, and times in seconds since 1970.
CLUSTERS = "SLURM_CLUSTERS"  # variable with the clusters that Slurm's commands ask
ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}

SECONDS = 10.0


def asked(
    command: Sequence[str], wanted: str, seconds: float = SECONDS, environment: Mapping[str, str] | None = None
) -> bytes:
    """Run one of Slurm's commands for one cluster, and return its standard output.

    :param command: program and arguments.
    :param wanted: expected output, in words, for the error.
    :param seconds: time limit in seconds.
    :param environment: variables beside those of this process.
    :raises SourceError: if the command is missing or fails, with its own words, or SLURM_CLUSTERS names several
        clusters, whose output would be joined.
    """
    from ..programs import run_program  # imported here, because most commands know Slurm's commands and run none

    several = os.environ.get(CLUSTERS, "")
    if ("," in several or several == "all") and not any(word.startswith("--clusters=") for word in command):
        raise SourceError(f"{command[0]}: expecting one cluster in {CLUSTERS} or --cluster-name, got {several}")
    output: bytes = run_program(command, wanted, seconds, environment=environment).stdout
    return output


def printed(command: Sequence[str], wanted: str, seconds: float = SECONDS) -> InputFile:
    """Run one of Slurm's commands, and return its standard output as an input to read; parameters as for `asked`."""
    done = asked(command, wanted, seconds)
    return InputFile(" ".join(command), lambda: io.BytesIO(done))
