"""Slurm's ``topology.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import InputFile
from ...inputs.slurm.topologyyaml import NAME, read_switches, recognise
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """The fabric of the first topology with ``cluster_default: true``, else of the first one.

    :param texts: the files.
    :param report: takes the problems.
    :raises SourceError, FabricError: with file and line; also for a flat topology, which lists no hosts.
    """
    return build_tree(texts[0].name, read_switches(texts, report.problem), report)
