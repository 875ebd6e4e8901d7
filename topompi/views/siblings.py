"""Siblings, the communicators made by one split (for example the rows of a grid), and the network of their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..schedules import Network, SiblingGroups
from .network import network_of
from .part import restricted

if TYPE_CHECKING:
    from ..topology import TopologyInterface

__all__ = ["Siblings", "SplitArguments"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Siblings:
    """The communicators made by one split, from the view of one of them; they often call collectives at the same time.

    :param interface: a topology that contains the ranks of all these communicators.
    :param ranks: ranks of all groups, numbered as in ``interface``, shape (p,).
    :param groups: ranks of each communicator in their order, as indices into ``ranks``.
    :param number: number of this rank's communicator among the groups, from 0.
    """

    interface: TopologyInterface
    ranks: Integers
    groups: tuple[Integers, ...]
    number: int

    @classmethod
    def of_split(cls, interface: TopologyInterface, table: Integers, rank: int) -> Siblings | None:
        """Derive the groups of a split; None if this rank is in none of them, or there is only one group.

        :param interface: a topology that contains all ranks of the parent.
        :param table: color (below 0 if it joins no group), key and rank in ``interface`` of each rank of the parent,
            shape (ranks of the parent, 3).
        :param rank: this rank in the parent.
        """
        color, key, ranks = table[table[:, 0] >= 0].T
        order = np.lexsort((key, color))  # stable: equal keys keep the parent's order
        colors, starts = np.unique(color[order], return_index=True)
        if len(colors) < 2 or table[rank, 0] < 0:
            return None
        groups = tuple(np.split(order, starts[1:]))
        return cls(interface, ranks, groups, int(np.searchsorted(colors, table[rank, 0])))

    @cached_property
    def network(self) -> Network:
        """The network of the ranks of all these communicators."""
        return network_of(restricted(self.interface, self.ranks))

    @property
    def sibling_groups(self) -> SiblingGroups:
        """The groups and their network, in the type in which algorithms of schedules take siblings as an argument."""
        return SiblingGroups(self.network, self.groups, self.number)


@dataclass(frozen=True, eq=False)
class SplitArguments:
    """The arguments of all ranks of a communicator in a split; the new communicators are derived from them on demand.

    :param interface: a topology that contains all ranks of the communicator.
    :param table: color (below 0 if it joins no group), key and rank in ``interface`` of each rank of the communicator,
        shape (ranks of the communicator, 3).
    :param rank: this rank in the communicator.
    """

    interface: TopologyInterface
    table: Integers
    rank: int

    @property
    def divides(self) -> bool:
        """Whether the split made more than one communicator."""
        colors = self.table[:, 0]
        return bool((colors != colors.max()).any())

    @cached_property
    def members(self) -> Integers:
        """The ranks of this rank's new communicator in order, numbered as in ``interface``; empty if it is in none."""
        colors = self.table[:, 0]
        _, key, ranks = self.table[(colors == colors[self.rank]) & (colors >= 0)].T
        members: Integers = ranks[np.argsort(key, kind="stable")]
        return members

    @cached_property
    def siblings(self) -> Siblings | None:
        """The communicators made by the split, from this rank's view; None if there is only one."""
        return Siblings.of_split(self.interface, self.table, self.rank)
