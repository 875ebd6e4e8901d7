"""Writers of a fabric as a graph for other programs: DOT (Graphviz) and GraphML."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..fabric import Fabric

__all__ = ["write_dot", "write_graphml"]


def write_dot(fabric: Fabric) -> str:
    """Write a fabric as an undirected graph in DOT, with one edge for each bundle of cables between two devices.

    A host is an ellipse, a switch a box in the row of its level. An edge has the number of cables, if there are
    several, and their common rate in Gb/s, if it is known.
    """
    lines = [f"graph {_quoted(fabric.name)} {{", "  rankdir=BT; node [shape=box];"]
    lines += [f"  {_quoted(host)} [shape=ellipse];" for host in fabric.hosts]
    for level in np.unique(fabric.switch_level).tolist():
        row = np.flatnonzero(fabric.switch_level == level).tolist()
        lines.append("  { rank=same; " + " ".join(f"{_quoted(fabric.switch_ids[switch])};" for switch in row) + " }")
    lines += [
        f"  {_quoted(identity)} [label={_quoted(name)}];"
        for identity, name in zip(fabric.switch_ids, fabric.switch_names, strict=True)
        if name not in ("", identity)
    ]
    return "\n".join([*lines, *_edges(fabric), "}"]) + "\n"


def _edges(fabric: Fabric) -> Iterator[str]:
    vertex = np.append(fabric.adapter_host, fabric.num_hosts + np.arange(fabric.num_switches))
    names = [*fabric.hosts, *fabric.switch_ids]
    lower, upper = np.sort(vertex[np.stack((fabric.link_source, fabric.link_target))], axis=0)
    pairs, bundle = np.unique(np.stack((lower, upper), axis=1), axis=0, return_inverse=True)
    bundle = bundle.ravel()
    cables = np.ceil(np.bincount(bundle) / 2).astype(int).tolist()
    slowest = np.full(len(pairs), np.inf)
    fastest = np.zeros(len(pairs))
    np.minimum.at(slowest, bundle, fabric.link_rate)
    np.maximum.at(fastest, bundle, fabric.link_rate)
    for (low, high), several, least, most in zip(pairs.tolist(), cables, slowest, fastest, strict=True):
        words = [f"{several} x"] * (several > 1) + [f"{8e-9 * least:.4g} Gb/s"] * bool(least == most)
        label = f" [label={_quoted(' '.join(words))}]" if words else ""
        yield f"  {_quoted(names[low])} -- {_quoted(names[high])}{label};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def write_graphml(fabric: Fabric) -> str:
    """Write a fabric as a directed multigraph in GraphML, with the attributes of ``Fabric.to_networkx``."""
    import networkx

    return "\n".join(networkx.generate_graphml(fabric.to_networkx())) + "\n"
