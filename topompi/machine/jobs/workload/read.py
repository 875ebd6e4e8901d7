"""A reader of workloads of any format, recognised by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....inputs.kinds import READ
from ..errors import WorkloadError
from .batsim import batsim_of_json
from .sacct import read_sacct, sacct_of_answer
from .swf import FIELDS, read_swf
from .text import Source, lines, open_log
from .workload import Workload

__all__ = ["read_workload"]


def read_workload(
    path: Source,
    cores_per_node: int | None = None,
    partial: bool = False,
    columns: Sequence[str] | None = None,
    arrivals: bool = False,
    cluster: str | None = None,
) -> Workload:
    """Read the jobs of a log in the Standard Workload Format, of ``sacct`` (text, JSON or YAML), or of Batsim.

    :param path: path of the log, plain or packed.
    :param cores_per_node: number of processors per node, for logs in the Standard Workload Format; None for that of the
        log's header, else 1. The other formats contain numbers of nodes.
    :param partial: whether wrong lines or jobs are skipped and counted, instead of raising an error.
    :param columns: names of the fields of ``sacct``'s lines, in order, if the log has none; the log is sacct's then.
    :param arrivals: whether jobs of ``sacct`` that have not run to their end are read, with their requested run time.
    :param cluster: name of the cluster whose jobs are read from a log of ``sacct``; None if it must be of one cluster.
    :raises WorkloadError: if the log is malformed; the message names file, line and field.
    """
    # Imported here, because most commands read no log.
    from ....inputs.slurm.answers import documents, is_answer
    from ....inputs.slurm.clusters import cluster_heading
    from .sacctrows import is_sacct

    log = open_log(path)
    told = ((at, line.strip()) for at, line in lines(log) if line.strip() and cluster_heading(line) is None)
    number, first = next(told, (1, ""))
    if is_answer(first):
        found = documents(replace(log, error=WorkloadError))
        if not any(isinstance(one.content, dict) and "profiles" in one.content for one in found):
            return sacct_of_answer(log, found, partial, arrivals, cluster)
    elif columns is not None or is_sacct(first):
        return read_sacct(log, partial, columns, arrivals, cluster)
    if cluster is not None:
        raise WorkloadError(f"{log.name}: expecting a log of sacct beside --cluster-name, got another one")
    if is_answer(first):
        return batsim_of_json(log.name, found[0].content, partial)
    if first and not first.startswith((";", "#")) and len(first.split()) != FIELDS and not partial:
        got = f"line {number}: expecting SWF's {FIELDS} fields, or sacct's names with JobID, got {first[:40]!r}"
        raise WorkloadError(f"{log.name}: {got}: {READ['a workload']}")
    return read_swf(log, cores_per_node, partial)
