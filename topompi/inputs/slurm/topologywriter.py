"""Writers of Slurm's ``topology.conf`` and ``topology.yaml``, as trees of switches or as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import SourceError
from ..hostlist import compress
from .switches import SwitchRow

__all__ = ["KINDS", "write_conf", "write_yaml"]

KINDS = ("tree", "block")


def write_conf(rows: Sequence[SwitchRow], kind: str = "tree", title: str = "") -> str:
    """Write a ``topology.conf``, for Slurm's plugins ``topology/tree`` and ``topology/block``.

    :param rows: definitions of the switches; the nodes of each leaf switch are a block.
    :param kind: ``tree`` or ``block``.
    :param title: comment at the top, without line breaks; empty for none.
    """
    lines = [f"# {title}"] if title else []
    if _checked(kind) == "block":
        blocks = _blocks(rows)
        lines += [f"BlockName={row.name} Nodes={compress(row.nodes)}" for row in blocks]
        lines.append(f"BlockSizes={_base(blocks)}")
    else:
        lines += [f"SwitchName={row.name} {key.capitalize()}={names}" for row in rows for key, names in _lists(row)]
    return "\n".join(lines) + "\n"


def write_yaml(rows: Sequence[SwitchRow], kind: str = "tree", title: str = "", name: str = "default") -> str:
    """Write a ``topology.yaml``, which Slurm 25.05 and newer read before ``topology.conf``.

    :param rows: definitions of the switches; the nodes of each leaf switch are a block.
    :param kind: ``tree`` or ``block``.
    :param title: comment at the top, without line breaks; empty for none.
    :param name: name of the topology, which is the cluster's default.
    """
    lines = [f"# {title}"] if title else []
    lines += [f"- topology: {name}", "  cluster_default: true", f"  {_checked(kind)}:"]
    if kind == "block":
        blocks = _blocks(rows)
        lines += ["    block_sizes:", f"      - {_base(blocks)}", "    blocks:"]
        for row in blocks:
            lines += [f'      - block: "{row.name}"', f'        nodes: "{compress(row.nodes)}"']
    else:
        lines.append("    switches:")
        for row in rows:
            lines.append(f'      - switch: "{row.name}"')
            lines += [f'        {"children" if key == "switches" else key}: "{names}"' for key, names in _lists(row)]
    return "\n".join(lines) + "\n"


def _checked(kind: str) -> str:
    if kind not in KINDS:
        raise SourceError(f"--kind: expecting {' or '.join(KINDS)}, got {kind}")
    return kind


def _lists(row: SwitchRow) -> Iterator[tuple[str, str]]:
    """Yield key and host list of the hosts at a switch (``nodes``) and of the switches below it (``switches``)."""
    for key, names in (("nodes", row.nodes), ("switches", row.switches)):
        if names:
            yield key, compress(names)


def _blocks(rows: Sequence[SwitchRow]) -> list[SwitchRow]:
    return [row for row in rows if row.nodes]


def _base(blocks: Sequence[SwitchRow]) -> int:
    """Return the number of nodes of the smallest block, because Slurm uses one block size for all blocks."""
    return min(len(row.nodes) for row in blocks)
