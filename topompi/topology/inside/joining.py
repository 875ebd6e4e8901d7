"""Matching of hosts to a fabric by the GUIDs of adapters, because administrators can set node descriptions freely."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..fabric import Fabric

__all__ = ["host_of"]


def host_of(fabric: Fabric, guids: Iterable[str]) -> str | None:
    """The host that has the first of these adapters that the fabric contains, None if it contains none of them.

    :param fabric: the fabric to search.
    :param guids: GUIDs of the adapters of one host.
    """
    known = next((fabric.adapter_index[guid] for guid in guids if guid in fabric.adapter_index), None)
    return None if known is None else fabric.hosts[fabric.adapter_host[known]]
