"""Swaps of receivers between two edges of a tree, for less busy links and less deep hosts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .prices import AS_GOOD, MOST_LOAD, TREES, Links, sixth

__all__ = ["Swaps"]

Integers = NDArray[np.int64]

BASE, MOST_POWER = 3, 24  # the price of a host's depths is a power of their sum, and this many sums differ in price
WORTH = 9  # sub-trees are raised whose gain is at least this part of the largest one
TRIED = 32  # swaps of one edge that are compared by their routes


class Swaps:
    """Packed trees whose edges are swapped: two hosts, with the trees below them, take each other's sender.

    :param links: routes and weights of links.
    :param parent: parent of each host in each tree, shape (trees, n); -1 at the root. It is changed.
    :param depth: depth of each host in each tree, shape (trees, n). It is changed.
    :ivar sums: sum of each host's depths in all trees, shape (n,).
    :ivar load: number of edges over each link.
    :ivar most: largest time of each link, over that of one message on a typical host's own link; links as fast as that
        one carry no more than the message even if the least time, because of slow links, is longer.
    :ivar below: 1 if host j is host i or below it in a tree, else 0, shape (trees, n, n), as exact float numbers.
    """

    def __init__(self, links: Links, parent: Integers, depth: Integers) -> None:
        self.links, self.parent, self.depth = links, parent, depth
        self.sums = depth.sum(axis=0)
        self.load = np.zeros(len(links.weight), dtype=np.int64)
        np.add.at(self.load, self._routes(*np.nonzero(parent >= 0)), 1)
        self.lowest = 0  # sum of depths from which hosts have prices
        self.most = TREES * np.where(links.time > AS_GOOD, links.least, AS_GOOD)
        self.below = np.repeat(np.eye(len(self.sums))[None], len(parent), axis=0)
        for tree, below in enumerate(self.below):
            for host in np.argsort(-depth[tree], kind="stable")[:-1].tolist():
                below[parent[tree, host]] += below[host]

    def _routes(self, tree: Integers, target: Integers) -> Integers:
        return self.links.paths[self.parent[tree, target], target]

    def top(self) -> float:
        """The time of the busiest link, over that of the message on a typical host's own link."""
        return float((self.load * self.links.time).max(initial=0.0)) / TREES

    def relieve(self, attempts: int) -> int:
        """Lower the prices of the links that have too much, as long as this is possible; return the attempts.

        :param attempts: largest number of edges for which swaps are tried.
        """
        used, found = 0, True
        while found and used < attempts and (busy := self.load * self.links.time > self.most).any():
            tree, target = np.nonzero(self.parent >= 0)
            over = np.flatnonzero(busy[self._routes(tree, target)].any(axis=1))
            found = False
            for edge in over.tolist():
                used += 1
                if found := self._relieved(int(tree[edge]), int(target[edge])):
                    break
        return used

    def flatten(self, shallow: int, attempts: int) -> int:
        """Raise hosts, those with the largest sums of depths first, as long as this is possible; return the attempts.

        :param shallow: sum of depths that is low enough for all hosts.
        :param attempts: largest number of edges for which swaps are tried.
        """
        used, fresh, found = 0, np.ones(self.depth.shape, dtype=bool), False
        self.lowest = int(self.sums.max()) - MOST_POWER + 2
        while used < attempts and self.sums.max() > shallow:
            gain = self.below @ (self._price(0) - self._price(-1))
            worth = (self.depth > 1) & (gain * WORTH >= gain[self.depth > 1].max())
            if not (worth & fresh).any():
                if not found:
                    break
                fresh[:], found = True, False
            tree, host = divmod(int(np.where(worth & fresh, gain, -1).argmax()), len(self.sums))
            used, fresh[tree, host] = used + 1, False
            found |= self._raised(tree, host)
        return used

    def smooth(self, attempts: int) -> int:
        """Lower the prices of links by swaps between senders of equal depth; return the attempts.

        :param attempts: largest number of edges for which swaps are tried, those over the dearest links first.
        """
        tree, target = np.nonzero(self.parent >= 0)
        now = np.minimum(self.load, MOST_LOAD)
        price = self.links.weight * (sixth(now) - sixth(np.maximum(now - 1, 0)))
        order = np.argsort(-price[self._routes(tree, target)].sum(axis=1), kind="stable")[:attempts]
        for edge in order.tolist():
            self._relieved(int(tree[edge]), int(target[edge]), level=True)
        return len(order)

    def _price(self, shift: int | Integers) -> NDArray[np.float64]:
        """The price of each host's depths if their sum changes, shape (n,) or (shifts, n): exact, as sums of it are."""
        powers: NDArray[np.float64] = (BASE ** np.clip(self.sums + shift - self.lowest, 0, MOST_POWER)).astype(float)
        return powers

    def _partners(self, tree: int, host: int) -> tuple[Integers, Integers]:
        """New senders of a host, and the hosts that take its sender in a swap, or -1 if none does."""
        parent, below = self.parent[tree], self.below[tree]
        apart = below[host] == 0
        others = np.flatnonzero(apart & (below[:, host] == 0) & (parent != parent[host]))
        alone = np.flatnonzero(apart)
        return np.append(parent[others], alone), np.append(others, np.full(len(alone), -1))

    def _moved(self, tree: int, host: int, sender: Integers, other: Integers) -> tuple[Integers, Integers]:
        """The links that swaps load, and those that they relieve, each of shape (swaps, links)."""
        paths, above, nowhere = self.links.paths, self.parent[tree, host], len(self.load) - 2
        there = (other >= 0)[:, None]
        old = np.broadcast_to(paths[above, host], (len(other), paths.shape[2]))
        new = np.append(paths[sender, host], np.where(there, paths[above, other], nowhere), axis=1)
        return new, np.append(old, np.where(there, paths[sender, other], nowhere), axis=1)

    def _cost(self, new: Integers, old: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """The change of all links' prices by swaps, and whether no link gets too much, each of shape (swaps,).

        :param new: links that a swap loads, shape (swaps, links).
        :param old: links that it relieves, of the same shape.
        """
        links, width = np.append(new, old, axis=1), new.shape[1]
        same = links[:, :, None] == links[:, None, :]
        change = same[:, :, :width].sum(axis=2) - same[:, :, width:].sum(axis=2)
        again = (same & np.tri(2 * width, k=-1, dtype=bool)).any(axis=2)
        now = np.minimum(self.load[links], MOST_LOAD)
        price = self.links.weight[links] * (sixth(now + change) - sixth(now))
        fits = ((self.load[links] + change) * self.links.time[links] <= self.most[links]) | (change <= 0)
        return np.where(again, 0, price).sum(axis=1), fits.all(axis=1)

    def _relieved(self, tree: int, host: int, *, level: bool = False) -> bool:
        """Make the swap of one edge that lowers the prices of links most, and return whether one lowers them.

        :param tree: number of the tree.
        :param host: receiver of the edge.
        :param level: whether all hosts must keep their depths, and no link may get too much.
        """
        sender, other = self._partners(tree, host)
        if level:
            keep = self.depth[tree, sender] == self.depth[tree, host] - 1
            sender, other = sender[keep], other[keep]
            if not len(sender):
                return False
        cost, fits = self._cost(*self._moved(tree, host, sender, other))
        cost[~fits & level] = 0
        best = int(cost.argmin())
        if cost[best] >= 0:
            return False
        self._swap(tree, host, int(sender[best]), int(other[best]))
        return True

    def _raised(self, tree: int, host: int) -> bool:
        """Make a swap of one edge that lowers the price of depths, and return whether one is possible.

        Of those that lower it by at least half as much as the best one, the cheapest one for links is taken.
        """
        sender, other = self._partners(tree, host)
        depth, below = self.depth[tree], self.below[tree]
        shift = depth[sender] + 1 - depth[host]
        up = shift < 0
        sender, other, shift = sender[up], other[up], shift[up]
        if not len(shift):
            return False
        steps = np.arange(1, 1 - int(shift.min()))
        gain = ((self._price(0) - self._price(-steps[:, None])) @ below[host])[-1 - shift]
        loss = (self._price(steps[:, None]) - self._price(0)) @ below.T
        gain -= np.where(other >= 0, loss[-1 - shift, other], 0)
        order = np.argsort(-gain, kind="stable")[: min(TRIED, np.count_nonzero(gain > 0))]
        sender, other, gain = sender[order], other[order], gain[order]
        cost, fits = self._cost(*self._moved(tree, host, sender, other))
        if not fits.any():
            return False
        fits &= 2 * gain >= gain[fits][0]
        best = int(np.where(fits, cost, np.iinfo(np.int64).max).argmin())
        self._swap(tree, host, int(sender[best]), int(other[best]))
        return True

    def _swap(self, tree: int, host: int, sender: int, other: int) -> None:
        above = int(self.parent[tree, host])
        self._move(tree, host, sender)
        if other >= 0:
            self._move(tree, other, above)

    def _move(self, tree: int, host: int, sender: int) -> None:
        parent, below = self.parent[tree], self.below[tree]
        inside = below[host].copy()
        for messages, other in ((-1, int(parent[host])), (1, sender)):
            self.load[self.links.paths[other, host]] += messages
            while other >= 0:
                below[other] += messages * inside
                other = int(parent[other])
        change = (int(self.depth[tree, sender]) + 1 - int(self.depth[tree, host])) * inside.astype(np.int64)
        parent[host] = sender
        self.depth[tree] += change
        self.sums += change
