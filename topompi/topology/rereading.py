"""Update of a running job's view of the network with the current routes of its topology service."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ServiceError
from .hostnames import require_hosts
from .interface import TopologyInterface
from .sources import load

__all__ = ["reread"]


def reread(view: TopologyInterface) -> TopologyInterface:
    """Ask the service for its current routes, and return the view of the same ranks on the same hosts with them.

    If the two views have equal ``hop_matrix``, they have equal levels, and everything derived from levels stays valid;
    the links on the paths may differ. Cost: one round trip.

    :param view: a view whose routes came from a topology service.
    :raises ServiceError: if the view did not come from a service, or the service does not answer in time.
    :raises HostError: if the service's fabric no longer has one of the hosts.
    """
    if view.served is None:
        raise ServiceError(f"expecting a topology from a service, got one from {view.source}")
    found = load(view.served.server, hosts=view.hosts)
    assert found.routes is not None  # load() computes missing routes
    hosts = require_hosts(found.routes.fabric, view.hosts)
    return replace(view, routes=found.routes.restrict(hosts), served=found.served)
