"""A workload of any format, found by content."""

from __future__ import annotations

from .batsim import read_batsim
from .sacct import read_sacct
from .swf import read_swf
from .text import Source, lines, open_log
from .workload import Workload

__all__ = ["read_workload"]


def read_workload(path: Source, cores_per_node: int = 1, partial: bool = False) -> Workload:
    """The jobs of a log in the Standard Workload Format, of ``sacct -P``, or of a file of Batsim's.

    :param path: of the log, plain or packed.
    :param cores_per_node: processors of one node; the latter two formats name nodes.
    :param partial: go on after what is wrong, and count it.
    :raises WorkloadError: with file, line and field of what is wrong.
    """
    log = open_log(path)
    first = next((line.strip() for _, line in lines(log) if line.strip()), "")
    if first.startswith("{"):
        return read_batsim(log, partial)
    if "|" in first:
        return read_sacct(log, partial)
    return read_swf(log, cores_per_node, partial)
