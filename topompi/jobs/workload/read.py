"""A reader of workloads of any format, recognised by content."""

from __future__ import annotations

from .batsim import read_batsim
from .sacct import read_sacct
from .swf import read_swf
from .text import Source, lines, open_log
from .workload import Workload

__all__ = ["read_workload"]


def read_workload(path: Source, cores_per_node: int = 1, partial: bool = False) -> Workload:
    """Read the jobs of a log in the Standard Workload Format, of ``sacct -P``, or of Batsim.

    :param path: path of the log, plain or packed.
    :param cores_per_node: number of processors per node, for logs in the Standard Workload Format; the other formats
        contain numbers of nodes.
    :param partial: whether wrong lines or jobs are skipped and counted, instead of raising an error.
    :raises WorkloadError: if the log is malformed; the message names file, line and field.
    """
    log = open_log(path)
    first = next((line.strip() for _, line in lines(log) if line.strip()), "")
    if first.startswith("{"):
        return read_batsim(log, partial)
    if "|" in first:
        return read_sacct(log, partial)
    return read_swf(log, cores_per_node, partial)
