"""Grouping of a fabric's switches into the nodes (boxes) of a picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray

from ...topology import Fabric

__all__ = ["SwitchBox", "fold"]

MOST = 16  # nodes; limits the boxes per level, for which a picture of 1,200 pixels has room
OTHERS = 4  # nodes; limits the boxes of switches that a job does not cross, if its own switches are boxes of their own

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SwitchBox:
    """One or more switches of a level that are drawn as one box.

    :param level: number of links to the nearest leaf switch; -1 if there is no path.
    :param switches: switch numbers in the fabric.
    :param crossed: whether a job's routes cross one of the switches.
    """

    level: int
    switches: Integers
    crossed: bool


def fold(fabric: Fabric, crossed: NDArray[np.bool_] | None = None, *, apart: bool = False) -> list[SwitchBox]:
    """Group a fabric's switches into nodes, level by level from the leaves up, each level from left to right.

    Switches with the same neighbours are side by side, and are merged first if a level has too many switches. Switches
    that a job's routes cross stay nodes of their own as long as there is room.

    :param fabric: the whole fabric.
    :param crossed: whether the job's routes cross each switch, shape (switches,); None without a job.
    :param apart: whether no node has both switches that are crossed and others, even if there is no room for single
        ones.
    Cost: linear in switches and links, plus sorting.
    """
    seen = np.zeros(fabric.num_switches, dtype=bool) if crossed is None else crossed
    neighbours = _neighbours(fabric)
    nodes: list[SwitchBox] = []
    place = np.full(fabric.num_switches, -1, dtype=np.int64)  # position in the level; -1: not yet placed
    for level in sorted(set(fabric.switch_level.tolist()), key=lambda one: (one < 0, one)):
        members = np.flatnonzero(fabric.switch_level == level)
        keys = {int(one): _key(fabric, one, neighbours[one], place) for one in members.tolist()}
        order = np.array(sorted(keys, key=keys.__getitem__), dtype=np.int64)
        place[order] = np.arange(len(order))
        nodes += [SwitchBox(int(level), group, bool(seen[group].any())) for group in _groups(order, keys, seen, apart)]
    return nodes


def _neighbours(fabric: Fabric) -> list[Integers]:
    """Find, for each switch, the switches of other levels that it has a link to."""
    first = fabric.num_adapters
    source, target = (ends[fabric.switch_links] - first for ends in (fabric.link_source, fabric.link_target))
    other = fabric.switch_level[source] != fabric.switch_level[target]
    source, target = source[other], target[other]
    order = np.lexsort((target, source))
    bounds = np.searchsorted(source[order], np.arange(1, fabric.num_switches))
    return [np.unique(part) for part in np.split(target[order], bounds)] if fabric.num_switches else []


def _key(fabric: Fabric, switch: int, neighbours: Integers, place: Integers) -> tuple[object, ...]:
    """Make the sort key of a switch: positions of the switches below it, or else the switches above it, then its name.

    :param fabric: the whole fabric.
    :param switch: switch number.
    :param neighbours: switches of other levels that it has a link to.
    :param place: position of each switch in its level, shape (switches,); -1 for switches of levels not yet placed.
    :returns: three parts: mean position of the switches below; their positions, or if there are none the switches
        above; the switch's name in natural order.
    """
    below = place[neighbours]
    known = below[below >= 0]
    alike = tuple(sorted(known.tolist())) if len(known) else tuple(neighbours.tolist())
    centre = float(known.mean()) if len(known) else 0.0
    return centre, alike, _natural(fabric.switch_names[switch] or fabric.switch_ids[switch])


def _natural(name: str) -> list[tuple[str, int, str]]:
    # Numbers are compared by their length, then their digits, because Python's int() refuses thousands of digits.
    parts = re.split(r"([0-9]+)", name)
    numbers = [part.lstrip("0") for part in parts[1::2]]
    return [(part, len(number), number) for part, number in zip_longest(parts[::2], numbers, fillvalue="")]


def _groups(
    order: Integers, keys: dict[int, tuple[object, ...]], seen: NDArray[np.bool_], apart: bool
) -> list[Integers]:
    """Divide the switches of one level into the nodes of the picture.

    :param order: switches of the level from left to right.
    :param keys: sort key of each switch.
    :param seen: whether the job's routes cross each switch, shape (switches,).
    :param apart: whether switches that are crossed are never in a node with others.
    """
    if len(order) <= MOST:
        return list(order[:, None])
    single = seen[order] if 0 < seen[order].sum() <= MOST - OTHERS else np.zeros(len(order), dtype=bool)
    rest = order[~single]
    if apart and 0 < seen[rest].sum() < len(rest):
        sides = ((rest[seen[rest]], MOST - OTHERS), (rest[~seen[rest]], OTHERS))
        parts = [part for side, most in sides for part in _merged(_alike(side, keys), most)]
    else:
        parts = _merged(_alike(rest, keys), OTHERS if single.any() else MOST)
    parts += list(order[single][:, None])
    at = {int(switch): number for number, switch in enumerate(order)}
    return sorted(parts, key=lambda part: at[int(part[0])])


def _alike(order: Integers, keys: dict[int, tuple[object, ...]]) -> list[Integers]:
    """Group consecutive switches that have links to the same switches.

    :param order: switches from left to right.
    :param keys: sort key of each switch.
    """
    if not len(order):
        return []
    starts = [number for number in range(1, len(order)) if keys[order[number]][:2] != keys[order[number - 1]][:2]]
    return list(np.split(order, starts))


def _merged(parts: Sequence[Integers], most: int) -> list[Integers]:
    """Make at most ``most`` groups: join consecutive groups, or, if there are fewer, divide them evenly."""
    if len(parts) > most:
        bounds = np.linspace(0, len(parts), most + 1).round().astype(int)
        return [np.concatenate(parts[low:high]) for low, high in pairwise(bounds.tolist())]
    total = sum(map(len, parts))
    return [piece for part in parts for piece in np.array_split(part, max(1, most * len(part) // total))]
