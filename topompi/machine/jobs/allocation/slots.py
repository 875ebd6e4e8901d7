"""The state for allocators of slots, with the slots of each node that running jobs hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from .occupancy import Occupancy, Placement

__all__ = ["SlotOccupancy"]

Indices = NDArray[np.integer]


class SlotOccupancy(Occupancy):
    """A state with the number of jobs on each slot, and the number of free slots of each node.

    A node counts as free while it has a free slot; therefore ``free`` is an upper bound on the nodes that a job can
    get. ``busy`` counts the jobs on each node. A node that a job holds whole, or that is closed, has no free slot.
    ``held`` counts the jobs on each slot of the cluster, ``room`` the free slots of each node.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.held = np.zeros(cluster.num_slots, dtype=np.int32)
        self.room = cluster.slots.astype(np.int64)

    @property
    def empty(self) -> Indices:
        """Nodes without a job, ascending."""
        return np.flatnonzero(self.busy == 0)

    def take_slots(self, nodes: Indices, count: int) -> Placement:
        """Choose the first free slots of some nodes, in the order of the nodes.

        :param nodes: nodes that together have ``count`` or more free slots.
        :param count: number of slots.
        """
        last = int(np.searchsorted(np.cumsum(self.room[nodes]), count)) + 1
        slots = self.cluster.slots_of(nodes[:last])
        slots = slots[self.held[slots] == 0][:count]
        on = self.cluster.node_of_slot[slots]
        return Placement(on, slots=slots - self.cluster.slot_start[on])

    def has_free(self, placement: Placement) -> bool:
        """Return whether all slots of a placement are free."""
        return not self.held[self.cluster.slots_of(placement.nodes, placement.slots)].any()

    def _is_free(self) -> NDArray[np.bool_]:
        return self.room > 0

    def _hold(self, placement: Placement, sign: int) -> Indices:
        """Add or remove one job; return the nodes that have lost their last free slot, or have one again."""
        slots, nodes = self.cluster.slots_of(placement.nodes, placement.slots), placement.nodes
        before = self.room[nodes] > 0
        self.busy[nodes] += sign  # once a node, however many of its slots the job holds
        held = self.held[slots] + sign
        self.held[slots] = held
        changed = slots[held == (1 if sign > 0 else 0)]
        np.subtract.at(self.room, self.cluster.node_of_slot[changed], sign)
        crossed: Indices = np.unique(nodes[before != (self.room[nodes] > 0)])
        return crossed
