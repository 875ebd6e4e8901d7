"""The allocator `disjoint` as a plain program, which searches every state anew for every job, as an oracle."""

import numpy as np

from topompi.machine.jobs.allocation import Job, Occupancy, Placement
from topompi.machine.jobs.allocation.disjoint import Disjoint, solve
from topompi.machine.jobs.allocation.link_occupancy import LinkOccupancy

__all__ = ["PlainDisjoint", "open_routes_of"]


def open_routes_of(state: Occupancy) -> np.ndarray:
    """Whether the route from each leaf to each node crosses no link of a running job, shape (leaves, nodes)."""
    routes = state.cluster.links
    used = np.zeros(routes.num_links + 1, dtype=bool)  # the last place is for the padding -1
    for _, placement in state.running.values():
        used[routes.links_of(placement.nodes)] = True
    return ~used[routes.table()].any(axis=2)


class PlainDisjoint(Disjoint):
    """An allocator whose choices `Disjoint` has to repeat, without kept results, bits of words and shared steps."""

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        assert isinstance(state, LinkOccupancy)
        fits = [leaf for leaf, free in enumerate(state.leaf_free.tolist()) if free >= job.size]
        if fits:
            return Placement(state.first_free(min(fits, key=lambda leaf: state.leaf_free[leaf]), job.size))
        if job.size > state.free:
            return None
        nodes, open_routes = reachable(job.size, state)
        if len(nodes) < job.size:
            return None
        found = search(nodes, state.cluster.leaf[nodes], open_routes, self.starts, job.size)
        if found is None and state.free <= self.repair:
            found = solve(job.size, state)
        return None if found is None else Placement(found)


def reachable(size: int, state: Occupancy) -> tuple[np.ndarray, np.ndarray]:
    """Free nodes whose leaf reaches ``size`` of them, and whether each leaf's route to each of them is open."""
    nodes = np.flatnonzero(state.busy == 0)
    open_routes = open_routes_of(state)[:, nodes]
    while True:
        enough = open_routes.sum(axis=1) >= size
        left = enough[state.cluster.leaf[nodes]]
        if left.all():
            return nodes, open_routes
        nodes, open_routes = nodes[left], open_routes[:, left]


def search(nodes: np.ndarray, leaf: np.ndarray, open_routes: np.ndarray, starts: int, size: int) -> np.ndarray | None:
    """Nodes of the attempt with the fewest leaves, the first of several, in loops over attempts and leaves."""
    leaves, count = np.unique(leaf, return_counts=True)
    first = leaves[np.argsort(-count, kind="stable")[:starts]].tolist()
    attempts = [_Attempt(nodes, leaf, open_routes, one, careful) for one in first for careful in (False, True)]
    while attempts:
        for attempt in attempts:
            attempt.step(size)
            if len(attempt.chosen) == size:
                return nodes[np.sort(attempt.chosen)]
        attempts = [one for one in attempts if one.took and len(one.chosen) + one.candidates.sum() >= size]
    return None


class _Attempt:
    def __init__(self, nodes: np.ndarray, leaf: np.ndarray, open_routes: np.ndarray, first: int, careful: bool) -> None:
        self.leaf, self.open, self.next, self.careful = leaf, open_routes, first, careful
        self.candidates = np.ones(len(nodes), dtype=bool)
        self.chosen: list[int] = []
        self.took = True

    def step(self, size: int) -> None:
        """Take nodes of the next leaf that exclude the fewest candidates of other leaves, and drop these."""
        here = np.flatnonzero(self.candidates & (self.leaf == self.next)).tolist()
        others = self.candidates & (self.leaf != self.next)
        lost = {one: int((~self.open[self.leaf[others], one]).sum()) for one in here}
        able = [one for one in here if not (self.careful and lost[one])]
        taken = sorted(able, key=lambda one: lost[one])[: size - len(self.chosen)]
        self.took = bool(taken)
        self.chosen += taken
        self.candidates = others & self.open[self.next] & self.open[self.leaf][:, taken].all(axis=1)
        self.next = int(np.argmax(np.bincount(self.leaf[self.candidates], minlength=1)))
