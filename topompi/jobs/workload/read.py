"""A workload of any format, found by content."""

from __future__ import annotations

import os

from .batsim import read_batsim
from .sacct import read_sacct
from .swf import read_swf
from .text import lines
from .workload import Workload

__all__ = ["read_workload"]


def read_workload(path: str | os.PathLike[str], cores_per_node: int = 1, partial: bool = False) -> Workload:
    """The jobs of a log in the Standard Workload Format, of ``sacct -P``, or of a file of Batsim's.

    :param path: of the log, plain, ``.gz`` or ``.xz``.
    :param cores_per_node: processors of one node; the latter two formats name nodes.
    :param partial: go on after what is wrong, and count it.
    :raises WorkloadError: with file, line and field of what is wrong.
    """
    first = next((line.strip() for _, line in lines(path) if line.strip()), "")
    if first.startswith("{"):
        return read_batsim(path, partial)
    if "|" in first:
        return read_sacct(path, partial)
    return read_swf(path, cores_per_node, partial)
