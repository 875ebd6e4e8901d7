"""Trees over hosts that grow edge by edge, so that no link of the routes gets more than its part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .prices import MOST_LOAD, SCALE, TREES, Links, sixth

__all__ = ["Growth"]

Integers = NDArray[np.int64]


class Growth:
    """Trees that grow over groups of hosts.

    :param links: routes and weights of links.
    :param order: hosts, the root first, shape (n,).
    :param size: number of hosts of a group.
    :param fan: largest number of groups that a group serves in a tree.
    :param late: price of an edge whose sender is one step deeper, as a part of the price of a full link of a host.
    """

    def __init__(self, links: Links, order: Integers, size: int, fan: int, late: float) -> None:
        self.links, self.fan = links, fan
        self.late = int(late * SCALE * TREES**6)
        count = max(round(len(order) / size), 1)
        # The root is in a group of its own, so that the first group of its neighbours has one host less.
        self.groups = [order[:1], *np.split(order[1:], np.arange(1, count) * (len(order) - 1) // count)]
        self.load = np.zeros(len(links.weight), dtype=np.int64)
        self.price = links.weight.copy()
        self.parent, self.depth = (np.full((TREES, len(order)), -1) for _ in range(2))
        self.depth[:, order[0]] = 0

    def trees(self) -> tuple[Integers, Integers]:
        """Grow the trees, first to one host of each group, then inside the groups; return parents and depths."""
        nobody: Integers = np.empty(0, dtype=np.int64)
        reached = [[self.groups[0], *(nobody for _ in self.groups[1:])] for _ in range(TREES)]
        for tree, group, above in self._entrances():
            entered = self._join(tree, reached[tree][above], self.groups[group])
            reached[tree][group] = np.array([entered])
        missing = {
            (tree, group): members[self.depth[tree, members] < 0]
            for group, members in enumerate(self.groups)
            for tree in range(TREES)
        }
        while missing := {place: left for place, left in missing.items() if len(left)}:
            for (tree, group), left in missing.items():
                new = self._join(tree, reached[tree][group], left)
                reached[tree][group] = np.append(reached[tree][group], new)
                missing[tree, group] = left[left != new]
        return self.parent, self.depth

    def _entrances(self) -> Iterator[tuple[int, int, int]]:
        """Each tree's groups, groups near the root first: tree, group, and the group that serves it."""
        count = len(self.groups) - 1
        for place in range(count):
            for tree in range(TREES):
                shift = tree * count // TREES
                above = 0 if place == 0 else 1 + ((place - 1) // self.fan + shift) % count
                yield tree, 1 + (place + shift) % count, above

    def _join(self, tree: int, senders: Integers, members: Integers) -> int:
        """Add the edge with the least price from one of some senders to one of some hosts, and return this host."""
        cost = self.price[self.links.paths[senders[:, None], members]].sum(axis=2)
        cost += self.late * self.depth[tree, senders][:, None]
        sender, member = divmod(int(cost.argmin()), len(members))
        source, target = int(senders[sender]), int(members[member])
        self.parent[tree, target], self.depth[tree, target] = source, self.depth[tree, source] + 1
        route = self.links.paths[source, target]
        self.load[route] += 1
        now = np.minimum(self.load[route], MOST_LOAD)
        self.price[route] = self.links.weight[route] * (sixth(now + 1) - sixth(now))
        return target
