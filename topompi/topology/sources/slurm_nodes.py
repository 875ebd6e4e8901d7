"""Reader of the switches above each of Slurm's nodes, which the nodes' field ``Topology`` names."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import InputFile
from ...inputs.slurm.topologynodes import NAME, read_switches, recognise
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report, name: str | None = None) -> Discovery:
    """Read the fabric of the first topology that a node names.

    :param texts: the files.
    :param report: receiver of problems and of notes about nodes without the field.
    :param name: name of the topology to read instead; None for the first one.
    :raises SourceError: if the topology consists of coordinates, or there is none of that name.
    :raises FabricError: if nodes contradict each other, with file and line.
    """
    return build_tree(texts[0].name, read_switches(texts, report.problem, report.note, name), report)
