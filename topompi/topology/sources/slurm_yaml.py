"""Reader of Slurm's ``topology.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import InputFile
from ...inputs.slurm.topologyyaml import NAME, read_switches, recognise
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of a file's first topology with ``cluster_default: true``, else of its first topology.

    :param texts: the files.
    :param report: receiver of problems.
    :raises SourceError: if the file is invalid, or the topology is flat and thus lists no hosts, with file and line.
    :raises FabricError: if definitions of switches contradict each other, with file and line.
    """
    return build_tree(texts[0].name, read_switches(texts, report.problem), report)
