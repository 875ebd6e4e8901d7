"""The jobs to which no model applies, as far as that is seen at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..topology import TopologyInterface

__all__ = ["unmodelled"]


def unmodelled(interface: TopologyInterface) -> str:
    """Why nothing can be predicted on a job's network, as far as that is seen at a glance; else empty."""
    if interface.virtual:
        return "a virtual placement, whose links are not those that the ranks run on"
    return "nothing is known above the hosts" if interface.routes is None else ""
