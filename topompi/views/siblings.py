"""Communicators that were made together: the rows of a process grid, or its columns, on one network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..schedules import Beside, Network
from ..topology import TopologyInterface
from .network import network_of
from .part import restricted

__all__ = ["Siblings"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Siblings:
    """What a communicator knows of those that were made with it, which may well call the same collectives at once.

    :param known: a topology that all their ranks are part of.
    :param ranks: the ranks of all groups, in that topology, shape (p,).
    :param groups: of each communicator its ranks in their order, as places in ``ranks``.
    :param number: this rank's communicator among the groups.
    """

    known: TopologyInterface
    ranks: Integers
    groups: tuple[Integers, ...]
    number: int

    @classmethod
    def of_split(cls, known: TopologyInterface, table: Integers, rank: int) -> Siblings | None:
        """The groups of a split; None for a rank in none of them, and where there is only one.

        :param known: a topology that all ranks of the parent are part of.
        :param table: of each rank of the parent its color, below 0 for none, its key, and its rank in ``known``,
            shape (p, 3).
        :param rank: of the parent.
        """
        color, key, ranks = table[table[:, 0] >= 0].T
        order = np.lexsort((key, color))  # stable: equal keys keep the parent's order
        colors, starts = np.unique(color[order], return_index=True)
        if len(colors) < 2 or table[rank, 0] < 0:
            return None
        groups = tuple(np.split(order, starts[1:]))
        return cls(known, ranks, groups, int(np.searchsorted(colors, table[rank, 0])))

    @cached_property
    def network(self) -> Network:
        """The network of the ranks of all groups."""
        return network_of(restricted(self.known, self.ranks))

    @property
    def beside(self) -> Beside:
        """The same as schedules take it."""
        return Beside(self.network, self.groups, self.number)
