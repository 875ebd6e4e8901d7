"""The cluster that ``--cluster`` means."""

from __future__ import annotations

from pathlib import Path

from ...jobs import Cluster
from ...topology import load
from ...views.cluster import cluster_of

__all__ = ["machine_of"]


def machine_of(text: str, nodes: int | None, lfts: Path | None) -> Cluster:
    """The cluster of a specification or of a topology source.

    :param text: leaves=18x18, or a source.
    :param nodes: of the whole cluster, for the former.
    :param lfts: forwarding tables, for the latter.
    """
    if text.startswith("leaves="):
        return Cluster.parse(text, nodes)
    routes = load(text, lfts).routes
    assert routes is not None  # load() fills them in
    return cluster_of(routes)
