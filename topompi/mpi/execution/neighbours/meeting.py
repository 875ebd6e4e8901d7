"""The meeting of ranks that plan a neighbourhood collective: each learns the edges of its group, and no others."""

from __future__ import annotations

from time import sleep
from typing import NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ....schedules.neighbourhood import Edges
from ....schedules.sparse.carriers import CarryingTerms, carriers, landings
from ....schedules.sparse.exchange import Exchange, Known, exchange_of
from ..groups import Groups
from ..native import NativeTopocomm

__all__ = ["Ends", "meet"]

Integers = NDArray[np.int64]
PAUSE = 1e-5  # seconds between two looks for a message, in which other ranks have the processor


class Ends(NamedTuple):
    """A rank's neighbours in the order of MPI, which may be ``MPI.PROC_NULL`` in a grid that is not periodic.

    :ivar topology: the communicator with the graph, as an object of mpi4py's own class.
    :ivar sources: ranks from which the rank receives, shape (incoming edges,).
    :ivar destinations: ranks to which it sends, shape (outgoing edges,).
    """

    topology: MPI.Topocomm
    sources: Integers
    destinations: Integers

    @classmethod
    def of(cls, topology: MPI.Topocomm) -> Ends:
        """The neighbours of this rank in a communicator with a Cartesian, graph or distributed graph topology."""
        sources, destinations = (np.array(some, dtype=np.int64) for some in (topology.inedges, topology.outedges))
        return cls(NativeTopocomm(topology), sources, destinations)


def meet(
    ends: Ends,
    groups: Groups,
    inside: MPI.Intracomm,
    group_of: Integers,
    size: Integers,
    terms: CarryingTerms,
    *,
    shares: bool,
) -> Exchange:
    """Plan a neighbourhood collective; collective.

    The ranks of a group tell each other their edges. Each source tells each destination the number and size of their
    edge, and the carrier that its group chose, by one neighbourhood collective of the MPI library, which so decides
    which of several edges between two ranks are one. Each landing rank tells the carriers who it is.

    :param ends: this rank's neighbours.
    :param groups: the communicator and its sub-communicators.
    :param inside: a communicator of the ranks of this rank's group, in their order.
    :param group_of: group of each rank, shape (p,).
    :param size: bytes of the block of each outgoing edge, shape (outgoing edges,).
    :param terms: terms on which blocks are carried, the same on all ranks.
    :param shares: whether a rank sends one block along all of its edges.
    Cost: two exchanges of a group's edges (32 and 48 bytes each), one neighbourhood collective of 24 bytes
    per edge, one message per pair of groups.
    """
    rank, (comm, tag) = groups.rank, groups.new_channel()
    members = np.flatnonzero(group_of == group_of[rank])
    number = np.flatnonzero(ends.destinations != MPI.PROC_NULL)
    mine = np.stack((np.full(len(number), rank), ends.destinations[number], number, size[number]), axis=1)
    source, destination, number_, size_ = _gathered(inside, mine).T
    out = Edges(source, destination, number_, np.full(len(source), -1), size_)
    carrier = carriers(out, group_of, members, terms, shares=shares)
    said = np.full((len(ends.destinations), 3), -1, dtype=np.int64)
    said[number] = np.stack((number, size[number], carrier[source == rank]), axis=1)
    heard = np.full((len(ends.sources), 3), -1, dtype=np.int64)
    ends.topology.Neighbor_alltoall([said, 3, MPI.INT64_T], [heard, 3, MPI.INT64_T])
    place = np.flatnonzero(ends.sources != MPI.PROC_NULL)
    mine = np.column_stack((ends.sources[place], np.full(len(place), rank), place, heard[place]))
    source, destination, place_, number_, size_, arriving = _gathered(inside, mine).T
    into = Edges(source, destination, number_, place_, size_)
    landing = landings(into, arriving, members, terms, shares=shares)
    awaited = len(np.unique(group_of[out.destination[carrier == rank]]))
    partner = _partners(comm, tag, np.unique(arriving[landing == rank]), awaited, group_of)
    return exchange_of(rank, Known(group_of, out, carrier, into, arriving, landing, shares, terms), partner)


def _gathered(inside: MPI.Intracomm, rows: Integers) -> Integers:
    """The rows of all ranks of a group, in their order, shape (rows, columns)."""
    counts = np.array(inside.allgather(rows.size))
    whole = np.empty(int(counts.sum()), dtype=np.int64)
    inside.Allgatherv(np.ascontiguousarray(rows), [whole, counts])
    return whole.reshape(-1, rows.shape[1])


def _partners(comm: MPI.Intracomm, tag: int, carriers: Integers, awaited: int, group_of: Integers) -> dict[int, int]:
    """The landing rank of each bundle of this rank, by its group.

    :param comm: communicator of the messages.
    :param tag: their tag, which no other messages have.
    :param carriers: carriers of the bundles that land on this rank.
    :param awaited: number of groups for which this rank is a carrier.
    :param group_of: group of each rank, shape (p,).
    """
    nothing, status = [bytearray(), 0, MPI.BYTE], MPI.Status()
    partner: dict[int, int] = {}
    requests = [comm.Isend(nothing, carrier, tag) for carrier in carriers.tolist()]
    while len(partner) < awaited:
        # A probe, because a blocking receive from any source did not return with MPICH 5.0.2 on hosts joined by TCP.
        message = comm.Improbe(MPI.ANY_SOURCE, tag, status)
        if message is None:
            sleep(PAUSE)
            continue
        message.Recv(nothing)
        partner[int(group_of[status.Get_source()])] = status.Get_source()
    MPI.Request.Waitall(requests)
    return partner
