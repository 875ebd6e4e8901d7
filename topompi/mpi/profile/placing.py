"""The placement of recorded ranks on the hosts of a fabric."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs.hostlist import read_hosts
from ...mapping.placement import place
from ...topology import Routes, TopologyInterface
from .errors import ProfileError
from .recording import Profile

__all__ = ["placed"]


def placed(
    found: Profile, routes: Routes, source: str = "", hosts: str | None = None, placement: str = "block"
) -> TopologyInterface:
    """The placement of recorded ranks: on given hosts, else on the recorded hosts, else evenly on all of the fabric.

    :param found: the profile.
    :param routes: routes over the whole fabric.
    :param source: name of the topology source.
    :param hosts: a host list or a file, with one host per rank, or with hosts that the ranks fill evenly; if it is
        None, the recorded hosts, else all hosts of the fabric.
    :param placement: ``block``, ``cyclic`` or ``random:SEED``.
    :raises ProfileError: if the ranks do not fill the hosts evenly.
    """
    names = _rank_hosts(found, hosts, routes.fabric.hosts, placement)
    return TopologyInterface.place(names, routes, source=source, virtual=found.virtual or names != list(found.hosts))


def _rank_hosts(found: Profile, written: str | None, all_hosts: Sequence[str], placement: str) -> list[str]:
    """The name of each rank's host."""
    if written is None and found.hosts:
        return list(found.hosts)
    names = list(all_hosts) if written is None else read_hosts(written)
    if len(names) == found.size and placement == "block":
        return names
    if found.size % len(names):
        raise ProfileError(f"expecting --hosts that {found.size} ranks fill evenly, got {len(names)} hosts")
    return place(found.size, names, placement)
