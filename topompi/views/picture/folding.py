"""Which switches of a fabric are drawn one by one, and which together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray

from ...topology import Fabric

__all__ = ["Node", "fold"]

MOST = 18  # nodes of a level
OTHERS = 6  # nodes for the switches of a level that a job does not cross, where they are too many

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Node:
    """Switches that are drawn as one.

    :param level: links from the nearest leaf switch; -1 where there is no way.
    :param switches: their numbers in the fabric.
    :param crossed: whether a job's routes cross them.
    """

    level: int
    switches: Integers
    crossed: bool


def fold(fabric: Fabric, crossed: NDArray[np.bool_] | None = None) -> list[Node]:
    """The nodes of a picture, level by level from the leaves up, each level in the order from left to right.

    Switches with the same neighbours stand side by side, and are the first to be drawn as one where a level has too
    many; those that a job crosses are drawn one by one as long as there is room.

    :param fabric: the whole of it.
    :param crossed: of each switch, whether the job's routes cross it, shape (S,); None without a job.
    Cost: linear in switches and links, and sorting.
    """
    seen = np.zeros(fabric.num_switches, dtype=bool) if crossed is None else crossed
    neighbours = _neighbours(fabric)
    nodes: list[Node] = []
    place = np.full(fabric.num_switches, -1, dtype=np.int64)  # from left to right, of what is placed already
    for level in sorted(set(fabric.switch_level.tolist()), key=lambda one: (one < 0, one)):
        members = np.flatnonzero(fabric.switch_level == level)
        keys = {int(one): _key(fabric, one, neighbours[one], place) for one in members.tolist()}
        order = np.array(sorted(keys, key=keys.__getitem__), dtype=np.int64)
        place[order] = np.arange(len(order))
        nodes += [Node(int(level), group, bool(seen[group].any())) for group in _groups(order, keys, seen)]
    return nodes


def _neighbours(fabric: Fabric) -> list[Integers]:
    """The switches of other levels that each switch has a link to."""
    first = fabric.num_adapters
    source, target = (ends[fabric.switch_links] - first for ends in (fabric.link_source, fabric.link_target))
    other = fabric.switch_level[source] != fabric.switch_level[target]
    source, target = source[other], target[other]
    order = np.lexsort((target, source))
    bounds = np.searchsorted(source[order], np.arange(1, fabric.num_switches))
    return [np.unique(part) for part in np.split(target[order], bounds)] if fabric.num_switches else []


def _key(fabric: Fabric, switch: int, neighbours: Integers, place: Integers) -> tuple[object, ...]:
    """By what a switch is sorted: where those below it stand, or who is above it, then its name."""
    below = place[neighbours]
    known = below[below >= 0]
    alike = tuple(sorted(known.tolist())) if len(known) else tuple(neighbours.tolist())
    centre = float(known.mean()) if len(known) else 0.0
    return centre, alike, _natural(fabric.switch_names[switch] or fabric.switch_ids[switch])


def _natural(name: str) -> list[tuple[str, int, str]]:
    # Numbers by their lengths and digits: of thousands of digits Python makes no int.
    parts = re.split(r"([0-9]+)", name)
    numbers = [part.lstrip("0") for part in parts[1::2]]
    return [(part, len(number), number) for part, number in zip_longest(parts[::2], numbers, fillvalue="")]


def _groups(order: Integers, keys: dict[int, tuple[object, ...]], seen: NDArray[np.bool_]) -> list[Integers]:
    """The switches of one level, in order, as those that are drawn as one."""
    if len(order) <= MOST:
        return list(order[:, None])
    single = seen[order] if 0 < seen[order].sum() <= MOST else np.zeros(len(order), dtype=bool)
    rest = order[~single]
    parts = _merged(_alike(rest, keys), OTHERS if single.any() else MOST)
    parts += list(order[single][:, None])
    at = {int(switch): number for number, switch in enumerate(order)}
    return sorted(parts, key=lambda part: at[int(part[0])])


def _alike(order: Integers, keys: dict[int, tuple[object, ...]]) -> list[Integers]:
    """Neighbours in the order that have the same links."""
    if not len(order):
        return []
    starts = [number for number in range(1, len(order)) if keys[order[number]][:2] != keys[order[number - 1]][:2]]
    return list(np.split(order, starts))


def _merged(parts: Sequence[Integers], most: int) -> list[Integers]:
    """At most so many parts: neighbouring ones together, or each divided evenly where they are few."""
    if len(parts) > most:
        bounds = np.linspace(0, len(parts), most + 1).round().astype(int)
        return [np.concatenate(parts[low:high]) for low, high in pairwise(bounds.tolist())]
    total = sum(map(len, parts))
    return [piece for part in parts for piece in np.array_split(part, max(1, most * len(part) // total))]
