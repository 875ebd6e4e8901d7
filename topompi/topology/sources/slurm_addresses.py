"""Reader of the switch addresses that Slurm gives the tasks of a job."""

from __future__ import annotations

from collections.abc import Mapping

from ...inputs.slurm.addresses import NAME, switches_above
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read"]


def read(addresses: Mapping[str, tuple[str, str]], report: Report) -> Discovery:
    """The fabric of the switches in the addresses of a job's hosts.

    :param addresses: host -> address and pattern, see `switches_above`.
    :param report: receiver of problems.
    :raises SourceError: if an address does not match its pattern, contains no switch, or belongs to another host.
    :raises FabricError: if the addresses contradict each other.
    """
    return build_tree(NAME, switches_above(addresses), report)
