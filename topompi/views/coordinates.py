"""Writer of MPICH's coordinates file (group, switch and port of each rank) from a job's topology."""

from __future__ import annotations

import numpy as np

from ..errors import FabricError
from ..topology import TopologyInterface
from .network import network_of

__all__ = ["write_coordinates"]


def write_coordinates(interface: TopologyInterface) -> str:
    """Write a text for ``MPIR_CVAR_COORDINATES_FILE``: a heading, then a line ``RANK: GROUP SWITCH PORT`` per rank.

    SWITCH is the number of the leaf switch, PORT the number of the host below it. GROUP is the number of the cluster in
    the coarsest level above the leaf switches; if there is none, all leaf switches are one group. MPICH knows only
    these three levels. Of a deeper tree, the coarsest level is kept because the links above it are the scarcest.

    :param interface: the job's topology.
    :raises FabricError: if only the hosts are known.
    """
    if interface.routes is None:
        raise FabricError(f"expecting a topology with switches, got {interface.describe()}")
    network = network_of(interface)
    switch = _numbered(network.leaf)
    group = _numbered(network.clusters[0]) if len(network.clusters) > 1 else np.zeros_like(switch)
    port = np.array([int((switch[:host] == switch[host]).sum()) for host in range(network.num_hosts)])
    seats = np.stack((group, switch, port), axis=1)[network.rank_host].tolist()
    lines = [f"{rank}: {' '.join(map(str, seat))}" for rank, seat in enumerate(seats)]
    return "\n".join([f"# rank: group, switch, port; {interface.describe()}", *lines, ""])


def _numbered(clusters: np.ndarray) -> np.ndarray:
    """Number of each host's cluster, from 0 in the order of the clusters' first hosts, shape (n,)."""
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
