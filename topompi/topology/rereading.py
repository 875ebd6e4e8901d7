"""The view of a running job again, with the routes that its topology service has now."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ServiceError
from .hostnames import require_hosts
from .interface import TopologyInterface
from .sources import load

__all__ = ["reread"]


def reread(view: TopologyInterface) -> TopologyInterface:
    """The same ranks on the same hosts, over the routes of now; one round trip, as at the job's start.

    Where ``hop_matrix`` is what it was, so are the levels, and what was made of them holds on; paths may differ.

    :param view: that a service gave.
    :raises ServiceError: for one that did not come from a service, or where that does not answer in time; HostError
        where it no longer has one of the hosts.
    """
    if view.served is None:
        raise ServiceError(f"expecting a topology from a service, got one from {view.source}")
    found = load(view.served.server, hosts=view.hosts)
    assert found.routes is not None  # load() fills them in
    hosts = require_hosts(found.routes.fabric, view.hosts)
    return replace(view, routes=found.routes.restrict(hosts), served=found.served)
