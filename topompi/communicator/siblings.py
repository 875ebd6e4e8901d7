"""The communicators that one call of ``Split`` or ``Sub`` made: the rows of a process grid, or its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ..schedules import Beside, Network
from ..topology import TopologyInterface
from ..views.network import network_of
from ..views.part import restricted

__all__ = ["Siblings", "meet"]

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


def meet(parent: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Siblings | None:
    """The siblings among whom a call on a communicator of ours puts this rank; collective where there is a network.

    :param parent: the communicator; ``name`` of the method that it is called by, with these arguments.
    Cost: one allgather of 24 bytes a rank; none where nothing is known above the hosts.
    """
    place = parent._place
    if place is None or place[0].routes is None or place[0].num_hosts < 2:
        return None
    interface, rank = place
    color, key = _cut(parent, *args, **kwargs) if name == "Sub" else _split(*args, **kwargs)
    table = np.empty((parent.Get_size(), 3), dtype=np.int64)
    MPI.Intracomm(parent).Allgather(np.array([color, key, rank], dtype=np.int64), table)
    return Siblings.of_split(interface, table, parent.Get_rank())


def _split(color: int = 0, key: int = 0) -> tuple[int, int]:
    return (-1 if color == MPI.UNDEFINED else color), key


def _cut(cart: Any, remain_dims: Any) -> tuple[int, int]:
    """The part of a Cartesian grid that this rank is in, by the coordinates that are dropped."""
    dims, _, coords = cart.Get_topo()
    part = 0
    for extent, coord, remains in zip(dims, coords, remain_dims, strict=True):
        part = part if remains else part * extent + coord
    return part, 0
