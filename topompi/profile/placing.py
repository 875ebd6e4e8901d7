"""The recorded ranks on hosts of a fabric."""

from __future__ import annotations

from collections.abc import Sequence

from ..inputs.hostlist import read_hosts
from ..mapping.placement import place
from ..topology import Routes, TopologyInterface
from .errors import ProfileError
from .recording import Profile

__all__ = ["placed"]


def placed(
    found: Profile, routes: Routes, source: str = "", hosts: str | None = None, placement: str = "block"
) -> TopologyInterface:
    """The recorded ranks on hosts: as told, else as recorded, else evenly on all hosts of the fabric.

    :param found: the profile.
    :param routes: over the whole fabric.
    :param source: name of the topology source.
    :param hosts: a host list or a file, one host per rank, or hosts that the ranks fill evenly.
    :param placement: ``block``, ``cyclic`` or ``random:SEED``.
    :raises ProfileError: for hosts that the ranks do not fill evenly.
    """
    names = _rank_hosts(found, hosts, routes.fabric.hosts, placement)
    return TopologyInterface.place(names, routes, source=source, virtual=found.virtual or names != list(found.hosts))


def _rank_hosts(found: Profile, written: str | None, all_hosts: Sequence[str], placement: str) -> list[str]:
    """The host of each rank."""
    if written is None and found.hosts:
        return list(found.hosts)
    names = list(all_hosts) if written is None else read_hosts(written)
    if len(names) == found.size and placement == "block":
        return names
    if found.size % len(names):
        raise ProfileError(f"expecting --hosts that {found.size} ranks fill evenly, got {len(names)} hosts")
    return place(found.size, names, placement)
