"""Senders of a pipeline's last rounds, over links that earlier rounds no longer need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .prices import MOST_LOAD, TREES, Links, sixth

__all__ = ["last_rounds"]

Integers = NDArray[np.int64]


def last_rounds(
    links: Links, parent: Integers, depth: Integers, most: NDArray[np.float64]
) -> tuple[Integers, Integers]:
    """The parents and steps with which the last rounds of a pipeline end as early as possible.

    While a pipeline over trees drains, hosts near the root have sent all their blocks. They serve the hosts that would
    receive blocks last. Then the pipeline ends after n + d - 1 steps for n rounds, where d is the largest mean depth
    of a host over the trees, rounded up; it cannot end earlier, because until then a host's link has room for no more
    blocks. If links are busy, d is larger.

    :param links: routes and weights of links.
    :param parent: parent of each host in each tree, shape (trees, n); -1 at the root.
    :param depth: depth of each host in each tree, shape (trees, n).
    :param most: time that each link may need in a step, over that of one message on a typical host's link. One message
        more is possible.
    :return: parents in the last rounds, the last round first, shape (rounds, trees, n), and steps from the one in which
        the root sends a block to its arrival, both included. Cost: about 30 us (64 hosts) for each block that arrives
        earlier.
    """
    least = -(-int(depth.sum(axis=0).max()) // TREES)
    for steps in range(least, int(depth.max())):
        if found := _Drain(links, parent, depth, steps).found(most + 1):
            return found
    return parent[None][:0], depth[None][:0]


class _Drain:
    """The steps after the one in which the root sends its last blocks.

    In the arrays by round, the last round is number 0. In step s, counted from the root's last step on, a host of depth
    s + 1 + r receives the block of round r.

    :param links: routes and weights of links.
    :param parent: parent of each host in each tree, shape (trees, n).
    :param depth: depth of each host in each tree, shape (trees, n).
    :param steps: number of steps, the root's last one included.
    """

    def __init__(self, links: Links, parent: Integers, depth: Integers, steps: int) -> None:
        self.links, self.steps = links, steps
        rounds = int(depth.max()) - steps
        self.parent, self.depth = np.repeat(parent[None], rounds, axis=0), np.repeat(depth[None], rounds, axis=0)
        self.load = np.zeros((steps - 1, len(links.weight)), dtype=np.int64)
        for step in range(1, steps):
            tree, target = np.nonzero(depth > step)
            np.add.at(self.load[step - 1], links.paths[parent[tree, target], target], 1)

    def found(self, most: NDArray[np.float64]) -> tuple[Integers, Integers] | None:
        """The parents and depths by round, or None if not all blocks can arrive in time.

        :param most: largest time of each link in a step, over that of one message on a typical host's link.
        """
        late = self.depth - np.arange(len(self.depth))[:, None, None]
        number, tree, host = np.nonzero(late > self.steps)
        order = np.lexsort((number, late[number, tree, host]))  # senders come before those that they served
        rows = zip(number[order].tolist(), tree[order].tolist(), host[order].tolist(), strict=True)
        if all(self._serve(number, tree, host, most) for number, tree, host in rows):
            return self.parent, self.depth
        return None

    def _serve(self, number: int, tree: int, host: int, most: NDArray[np.float64]) -> bool:
        """Give a host the sender and the step with the least price for the block of one round and tree."""
        routes = self.links.paths[:, host]
        now = np.minimum(self.load[:, routes], MOST_LOAD)  # (steps, n, longest)
        has = self.depth[number, tree] - 1 - number < np.arange(1, self.steps)[:, None]
        possible = has & (((now + 1) * self.links.time[routes] <= most[routes]).all(axis=2))
        possible[:, host] = False
        if not possible.any():
            return False
        cost = (self.links.weight[routes] * (sixth(now + 1) - sixth(now))).sum(axis=2)
        step, sender = divmod(int(np.where(possible, cost, np.iinfo(np.int64).max).argmin()), len(routes))
        self.load[step, routes[sender]] += 1
        self.parent[number, tree, host], self.depth[number, tree, host] = sender, step + number + 2
        return True
