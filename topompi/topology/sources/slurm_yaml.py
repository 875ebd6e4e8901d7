"""Reader of Slurm's ``topology.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import InputFile
from ...inputs.slurm.topologyyaml import NAME, read_switches, recognise
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """The fabric of the first topology with ``cluster_default: true``, else of the first topology.

    :param texts: the files.
    :param report: receiver of problems.
    :raises SourceError: with file and line, for an invalid file, and for a flat topology, because it lists no hosts.
    :raises FabricError: with file and line, for contradictory switches.
    """
    return build_tree(texts[0].name, read_switches(texts, report.problem), report)
