"""Reader of Slurm's ``topology.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import InputFile
from ...inputs.slurm.topologyyaml import NAME, read_switches, recognise
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report, name: str | None = None) -> Discovery:
    """Read the fabric of a file's first topology with ``cluster_default: true``, else of its first topology.

    :param texts: the files.
    :param report: receiver of problems.
    :param name: name of the topology to read instead; None for the default one.
    :raises SourceError: if the file is invalid, the topology is neither a tree nor made of blocks, or there is none of
        that name, with file and line.
    :raises FabricError: if definitions of switches contradict each other, with file and line.
    """
    return build_tree(texts[0].name, read_switches(texts, report.problem, report.note, name), report)
