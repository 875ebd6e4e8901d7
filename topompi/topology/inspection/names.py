"""What switches and links are called in tables: names where these are unique, else ids."""

from __future__ import annotations

from collections import Counter

from ..fabric import Fabric

__all__ = ["end_name", "switch_labels"]


def switch_labels(fabric: Fabric) -> list[str]:
    """Name of each switch where only it has that name, else its id."""
    times = Counter(fabric.switch_names)
    pairs = zip(fabric.switch_names, fabric.switch_ids, strict=True)
    return [name if name and times[name] == 1 else identity for name, identity in pairs]


def end_name(fabric: Fabric, labels: list[str], vertex: int) -> str:
    """A host's name or a switch's label.

    :param fabric: whose vertex it is.
    :param labels: of its switches, see ``switch_labels``.
    :param vertex: number of an adapter or a switch.
    """
    if vertex < fabric.num_adapters:
        return fabric.hosts[int(fabric.adapter_host[vertex])]
    return labels[vertex - fabric.num_adapters]
