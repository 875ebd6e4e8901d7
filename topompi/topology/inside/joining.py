"""Hosts and a fabric, joined by the GUIDs of adapters: descriptions are whatever somebody has set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..fabric import Fabric

__all__ = ["host_of"]


def host_of(fabric: Fabric, guids: Iterable[str]) -> str | None:
    """The fabric's host that has the first of these adapters that the fabric knows, None where it knows none."""
    known = next((fabric.adapter_index[guid] for guid in guids if guid in fabric.adapter_index), None)
    return None if known is None else fabric.hosts[fabric.adapter_host[known]]
