"""Reader of Slurm's ``topology.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs import InputFile
from ...inputs.slurm.switches import SwitchRow
from ...inputs.slurm.topologytorus import Torus
from ...inputs.slurm.topologyyaml import NAME, read_topology, recognise
from ..discovery import Discovery, Report
from .slurm import build_tree
from .slurm_torus import build_tori

__all__ = ["NAME", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report, name: str | None = None) -> Discovery:
    """Read the fabric of a file's first topology with ``cluster_default: true``, else of its first topology.

    :param texts: the files.
    :param report: receiver of problems.
    :param name: name of the topology to read instead; None for the default one.
    :raises SourceError: if the file is invalid, the topology is flat or a ring, or there is none of that name, with
        file and line.
    :raises FabricError: if definitions of switches contradict each other, with file and line.
    """
    found = read_topology(texts, report.problem, report.note, name)
    if tori := [one for one in found if isinstance(one, Torus)]:
        return build_tori(texts[0].name, tori, report)
    return build_tree(texts[0].name, [one for one in found if isinstance(one, SwitchRow)], report)
