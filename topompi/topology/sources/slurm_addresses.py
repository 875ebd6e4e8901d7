"""The switches above a job's hosts, as Slurm tells its tasks."""

from __future__ import annotations

from collections.abc import Mapping

from ...inputs.slurm.addresses import NAME, switches_above
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read"]


def read(addresses: Mapping[str, tuple[str, str]], report: Report) -> Discovery:
    """The fabric of the switches that a job's hosts name.

    :param addresses: host -> address and pattern, see `switches_above`.
    :param report: takes the problems.
    :raises SourceError: for an address that is not as its pattern says, names no switch, or is another host's.
    :raises FabricError: where the addresses contradict each other.
    """
    return build_tree(NAME, switches_above(addresses), report)
