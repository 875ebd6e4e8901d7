"""A reader of workloads of any format, recognised by content."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import parse_json
from ..errors import WorkloadError
from .batsim import batsim_of_json
from .sacct import read_sacct, sacct_of_json
from .swf import read_swf
from .text import Source, lines, open_log
from .workload import Workload

__all__ = ["read_workload"]


def read_workload(
    path: Source,
    cores_per_node: int = 1,
    partial: bool = False,
    columns: Sequence[str] | None = None,
    arrivals: bool = False,
) -> Workload:
    """Read the jobs of a log in the Standard Workload Format, of ``sacct`` (text or JSON), or of Batsim.

    :param path: path of the log, plain or packed.
    :param cores_per_node: number of processors per node, for logs in the Standard Workload Format; the other formats
        contain numbers of nodes.
    :param partial: whether wrong lines or jobs are skipped and counted, instead of raising an error.
    :param columns: names of the fields of ``sacct``'s lines, in order, if the log has none; the log is sacct's then.
    :param arrivals: whether jobs of ``sacct`` that have not run to their end are read, with their requested run time.
    :raises WorkloadError: if the log is malformed; the message names file, line and field.
    """
    from .sacctjson import is_sacct_json  # imported here, because most commands read no log
    from .sacctrows import is_sacct

    log = open_log(path)
    first = next((line.strip() for _, line in lines(log) if line.strip()), "")
    if first.startswith("{"):
        content = parse_json(log.text(), log.name, WorkloadError)
        is_slurm = is_sacct_json(content)
        return (
            sacct_of_json(log.name, content, partial, arrivals)
            if is_slurm
            else batsim_of_json(log.name, content, partial)
        )
    if columns is not None or is_sacct(first):
        return read_sacct(log, partial, columns, arrivals)
    return read_swf(log, cores_per_node, partial)
