"""Recognition of tori and meshes from nothing but the cables between switches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import log2, prod

import numpy as np
from numpy.typing import NDArray

__all__ = ["SwitchTorus", "find_torus"]

IntArray = NDArray[np.int64]
Neighbours = Callable[[int], frozenset[int]]
LEAST = 4  # switches; a smaller graph is not taken for a torus, because it is also a line or a full mesh


@dataclass(frozen=True, eq=False)
class SwitchTorus:
    """The coordinates of switches in a grid; each dimension is a ring (as in a torus) or a line (as in a mesh).

    Two dimensions of size 2 are merged into one of size 4, because their graph is that of a ring of four switches.

    :param dims: number of switches along each dimension, at least 2.
    :param wrap: whether each dimension is a ring; true for dimensions of two switches.
    :param coordinates: coordinates of each switch, shape (switches, dimensions).
    """

    dims: tuple[int, ...]
    wrap: tuple[bool, ...]
    coordinates: IntArray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SwitchTorus) or (self.dims, self.wrap) != (other.dims, other.wrap):
            return False
        return np.array_equal(self.coordinates, other.coordinates)

    def __hash__(self) -> int:
        return hash((self.dims, self.wrap))

    def __repr__(self) -> str:
        return f"SwitchTorus({self})"

    def __str__(self) -> str:
        shape = "x".join(map(str, self.dims))
        open_ends = [str(axis) for axis, ring in enumerate(self.wrap) if not ring]
        if not open_ends:
            return f"torus {shape}"
        return f"mesh {shape}" if not any(self.wrap) else f"torus {shape}, no ring in dimension {', '.join(open_ends)}"

    def of(self, switches: NDArray[np.integer]) -> SwitchTorus:
        """Select the coordinates of the given switches, in their order; the grid's dimensions stay the same."""
        return replace(self, coordinates=self.coordinates[switches])


def find_torus(source: NDArray[np.integer], target: NDArray[np.integer], count: int) -> SwitchTorus | None:
    """Find the torus or mesh that the cables between switches form; None if they form another graph.

    Parallel cables count once. In the result, every cable joins neighbours of the grid, and no two neighbours lack a
    cable. Dimensions and directions are in the order of switch 0's neighbours, so that switches that are numbered row
    by row keep their coordinates.

    :param source: switch that each link leaves, shape (links,).
    :param target: switch that each link enters, shape (links,).
    :param count: number of switches.
    Cost: links x the longest dimension; most networks that are no grid are refused at switch 0.
    """
    if count < LEAST:
        return None
    keys: IntArray = np.unique(source.astype(np.int64) * count + target)
    begin, end = keys // count, keys % count
    degree = np.bincount(begin, minlength=count)
    if degree.max() > 2 * log2(count) or (np.sort(end * count + begin) != keys).any():
        return None
    first = np.concatenate(([0], np.cumsum(degree)))

    def neighbours(switch: int) -> frozenset[int]:
        return frozenset(end[first[switch] : first[switch + 1]].tolist())

    lines = _lines_through_first(neighbours, count)
    if lines is None or prod(len(line) for line, _ in lines) != count:
        return None
    lines.sort(key=_first_step, reverse=True)
    columns = [_coordinate(line, begin, end, count) for line, _ in lines]
    found = SwitchTorus(
        tuple(len(line) for line, _ in lines), tuple(ring for _, ring in lines), np.stack(columns, axis=1)
    )
    return _with_fours(found) if _is_grid(found, begin, end) else None


Line = tuple[list[int], bool]  # the switches of one dimension through switch 0, and whether they form a ring


def _first_step(line: Line) -> int:
    switches = line[0]
    return min(switches[switches.index(0) + 1 :] or switches)


def _lines_through_first(neighbours: Neighbours, count: int) -> list[Line] | None:
    """Find the line of each dimension through switch 0; None if the cables around switch 0 cannot belong to a grid."""
    lines: list[Line] = []
    seen: set[int] = set()
    for step in sorted(neighbours(0)):
        if step in seen:
            continue
        ahead = _follow(0, step, neighbours, count)
        if ahead is None:
            return None
        switches, ring = [0, step, *ahead], False
        if switches[-1] == 0:
            switches, ring = switches[:-1], True
        elif (behind := _follow(step, 0, neighbours, count)) is None:
            return None
        else:
            switches = [*behind[::-1], *switches]
        lines.append((switches, ring or len(switches) == 2))
        seen.update(switches)
    return lines


def _follow(before: int, switch: int, neighbours: Neighbours, count: int) -> list[int] | None:
    """Follow a direction straight ahead, up to the start of a ring or the end of a line; None if it is ambiguous.

    Straight ahead of a -> b is the neighbour of b whose only common neighbour with a is b, because a neighbour around a
    corner has a second common neighbour with a.

    :param before: switch a.
    :param switch: switch b.
    :param neighbours: function from a switch to its neighbours.
    :param count: number of switches.
    """
    start = before
    found: list[int] = []
    while len(found) < count:
        ahead = [one for one in neighbours(switch) - {before} if len(neighbours(one) & neighbours(before)) == 1]
        if len(ahead) > 1:
            return None
        if not ahead:
            return found
        before, switch = switch, ahead[0]
        found.append(switch)
        if switch == start:
            return found
    return None


def _coordinate(line: Iterable[int], source: IntArray, target: IntArray, count: int) -> IntArray:
    """Compute the coordinate of each switch along a line, the place of the nearest switch on the line; -1 if none.

    The places spread breadth first from the line to the other switches.

    :param line: switches on the line, in order.
    :param source: switch at the start of each link, shape (links,).
    :param target: switch at the end of each link, shape (links,).
    :param count: number of switches.
    """
    place = np.full(count, -1, dtype=np.int64)
    places = np.array(list(line))
    place[places] = np.arange(len(places))
    while True:
        reached = (place[source] >= 0) & (place[target] < 0)
        if not reached.any():
            return place
        place[target[reached]] = place[source[reached]]


def _is_grid(torus: SwitchTorus, source: IntArray, target: IntArray) -> bool:
    """Whether every point of the grid has one switch, and the links are exactly those between grid neighbours."""
    dims, places = np.array(torus.dims), torus.coordinates
    if (places < 0).any() or len(np.unique(places, axis=0)) < len(places):
        return False
    steps = np.abs(places[source] - places[target])
    steps = np.where(torus.wrap, np.minimum(steps, dims - steps), steps)
    along = np.where(dims == 2, 1, np.where(torus.wrap, 2 * dims, 2 * dims - 2) / dims)
    return bool((steps.sum(axis=1) == 1).all() and len(source) == round(len(places) * along.sum()))


def _with_fours(torus: SwitchTorus) -> SwitchTorus:
    """Merge pairs of dimensions of two into rings of four, with coordinates in Gray order."""
    twos = [axis for axis, extent in enumerate(torus.dims) if extent == 2]
    dims, places = list(torus.dims), torus.coordinates.copy()
    for high, low in zip(twos[::2], twos[1::2], strict=False):
        dims[low] = 4
        places[:, low] = 2 * places[:, high] + (places[:, high] ^ places[:, low])
    paired = {high for high, _ in zip(twos[::2], twos[1::2], strict=False)}
    kept = [axis for axis in range(len(dims)) if axis not in paired]
    return SwitchTorus(tuple(dims[axis] for axis in kept), tuple(torus.wrap[axis] for axis in kept), places[:, kept])
