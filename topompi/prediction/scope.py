"""The check for jobs to which no model applies, without computing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..topology import TopologyInterface

__all__ = ["unmodelled"]


def unmodelled(interface: TopologyInterface) -> str:
    """The reason why no time can be predicted on a job's network, as far as a quick look tells; else ""."""
    if interface.virtual:
        return "a virtual placement, whose links are not those that the ranks run on"
    return "nothing is known above the hosts" if interface.routes is None else ""
