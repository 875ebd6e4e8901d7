"""Reader of the switch addresses that Slurm gives the tasks of a job."""

from __future__ import annotations

from collections.abc import Mapping

from ...inputs.slurm.addresses import NAME, switches_above
from ..discovery import Discovery, Report
from .slurm import build_tree

__all__ = ["NAME", "read"]


def read(addresses: Mapping[str, tuple[str, str]], report: Report) -> Discovery:
    """Make the fabric of a job's hosts and of the switches that their addresses name.

    :param addresses: host -> (address, pattern), for example ``("core.leaf1.n1", "switch.switch.node")``.
    :param report: receiver of problems.
    :raises SourceError: if an address does not match its pattern, contains no switch, or belongs to another host.
    :raises FabricError: if the addresses contradict each other.
    """
    return build_tree(NAME, switches_above(addresses), report)
