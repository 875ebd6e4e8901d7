"""Labels of switches and of links' ends in tables and pictures: names if they are unique, else ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .fabric import Fabric

__all__ = ["end_name", "switch_labels"]


def switch_labels(fabric: Fabric) -> list[str]:
    """Label of each switch: its name if no other switch has the same, else its id."""
    times = Counter(fabric.switch_names)
    pairs = zip(fabric.switch_names, fabric.switch_ids, strict=True)
    return [name if name and times[name] == 1 else identity for name, identity in pairs]


def end_name(fabric: Fabric, labels: Sequence[str], vertex: int) -> str:
    """The label of a vertex at a link's end: the host's name for an adapter, the switch's label for a switch.

    :param fabric: the fabric of the vertex.
    :param labels: labels of the fabric's switches, see ``switch_labels``.
    :param vertex: number of an adapter or a switch.
    """
    if vertex < fabric.num_adapters:
        return fabric.hosts[int(fabric.adapter_host[vertex])]
    return labels[vertex - fabric.num_adapters]
