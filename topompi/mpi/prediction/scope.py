"""The check, without a computation of costs, for jobs whose calls no model can predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...topology import TopologyInterface

__all__ = ["unmodelled"]


def unmodelled(interface: TopologyInterface) -> str:
    """The reason why no time can be predicted on a job's network, as far as a quick check finds it; "" if none."""
    if interface.virtual:
        return "a virtual placement, whose links are not those that the ranks run on"
    return "nothing is known above the hosts" if interface.routes is None else ""
