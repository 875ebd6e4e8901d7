"""The present state of a running Slurm, asked by its own commands."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from ..errors import SourceError
from ..inputs.files import InputFile
from ..inputs.slurm.commands import SHOW_JOBS, SHOW_STATES, SHOW_TOPOLOGY, printed
from ..inputs.slurm.nodes import node_states
from ..inputs.slurm.running import RunningJob, jobs_of
from ..jobs import AllocationError, Cluster
from ..topology import Report
from ..topology.routecheck import with_routes
from ..topology.sources import slurm
from ..views.cluster import cluster_of

__all__ = ["cluster_now", "nodes_now", "running_now"]


def running_now(notes: list[str] | None = None) -> list[RunningJob]:
    """Ask ``squeue`` for the jobs that hold nodes, with those that are completing, suspended or configuring.

    :param notes: list that receives a line per running job that has no nodes.
    :raises SourceError: if the command is not installed, or fails.
    :raises AllocationError: if its answer cannot be read.
    """
    return jobs_of(_asked(SHOW_JOBS, "running jobs"), AllocationError, notes)


def nodes_now() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ask ``sinfo`` for the nodes that could take a job, and for those that could not; errors as in `running_now`."""
    return node_states([_asked(SHOW_STATES, "states of nodes")], AllocationError)


def cluster_now(report: Report) -> Cluster:
    """Ask ``scontrol`` for the tree of switches; it knows no rates, parallel cables or routes.

    :param report: receiver of problems and notes.
    :raises SourceError: if the command is not installed, or fails.
    """
    found = with_routes(slurm.read([_asked(SHOW_TOPOLOGY, "switches")], report), report)
    assert found.routes is not None  # with_routes() computes missing routes
    return cluster_of(found.routes)


def _asked(command: Sequence[str], wanted: str) -> InputFile:
    try:
        return printed(command, wanted)
    except FileNotFoundError as error:
        raise SourceError(f"expecting {command[0]} on this machine, got none: give files instead") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise SourceError(f"{' '.join(command)}: expecting {wanted}, got {error}") from error
