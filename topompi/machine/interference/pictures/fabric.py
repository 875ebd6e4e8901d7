"""A picture of jobs side by side on their fabric: their hosts, the links that they share, and who delays whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....inputs.figures import span_name
from ....netsim import Program
from ....topology import Routes
from ....views.cluster import node_hosts
from ....views.picture.scene import Scene
from ....views.picture.shared import BusyLink, shared_scene
from ...jobs import Cluster
from ..network import SharedNetwork
from ..placement import nodes_of
from ..replay import ReplayTimes

__all__ = ["busy_shares", "scene"]

Floats = NDArray[np.float64]
MOST_PAIRS = 8  # pairs of jobs that are named below the picture


def busy_shares(network: SharedNetwork, programs: Sequence[Program], outcome: ReplayTimes) -> Floats:
    """The share of the time in which each job keeps each link busy beside the others, shape (jobs, links).

    :param network: the network.
    :param programs: program of each job.
    :param outcome: outcome of the jobs.
    """
    shares: Floats = network.link_bytes(programs) / network.tables.rate / outcome.sharing[:, None]
    return shares


def scene(
    routes: Routes,
    cluster: Cluster,
    network: SharedNetwork,
    programs: Sequence[Program],
    outcome: ReplayTimes,
    pairs: Sequence[dict[str, object]],
    title: str,
) -> Scene:
    """Draw jobs on the hosts of their fabric.

    :param routes: the routes over the whole fabric.
    :param cluster: cluster of the routes.
    :param network: network of the cluster.
    :param programs: program of each job.
    :param outcome: outcome of the jobs.
    :param pairs: result of ``pair_rows`` for them.
    :param title: title of the picture.
    """
    shares, host = busy_shares(network, programs, outcome), node_hosts(cluster, routes.fabric)
    between = np.isin(np.arange(shares.shape[1]), routes.fabric.switch_links)
    links = np.flatnonzero(between & ((shares > 0).sum(axis=0) > 1)).tolist()
    busy = {
        link: BusyLink(tuple(np.flatnonzero(shares[:, link]).tolist()), min(float(shares[:, link].sum()), 1.0))
        for link in links
    }
    jobs = {program.name: host[nodes_of(program)] for program in programs}
    return shared_scene(routes, title, jobs, shares.sum(axis=0) > 0, busy, _words(pairs, len(links)))


def _words(pairs: Sequence[dict[str, Any]], links: int) -> list[str]:
    """Say who delays whom, the longest delay first."""
    if not links:
        return ["no two jobs use one link between switches"]
    delays = [row for row in pairs if row["delay"] > 0]
    words = [f"{links:,} links between switches have several jobs. Two by two, a job loses to another:"]
    words += [
        f"{row['job']} loses {span_name(row['delay'])} ({row['of_alone']:.1%} of alone) to {row['delayed_by']}, "
        f"on {row['links']:,} common links"
        for row in delays[:MOST_PAIRS]
    ]
    return words + ([f"and {len(delays) - MOST_PAIRS:,} more pairs"] if len(delays) > MOST_PAIRS else [])
