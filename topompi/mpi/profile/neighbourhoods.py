"""Makers of neighbourhood collective methods that count the bytes sent along the edges of a communicator's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ..communicator.handle import kept, plain
from ..communicator.neighbours import known_to
from ..execution.specs import CALLS, NATIVE
from .collectives import parts
from .counted import Method, after, timed
from .counting import CountedRanks, Recorded, TrafficCounters
from .messages import GroupOf, bytes_of, group_for, length_of
from .requests import counted

__all__ = ["neighbour_objects", "neighbours", "neighbours_later"]


def neighbours(native: Method, counters: TrafficCounters, group_of: GroupOf) -> Method:
    """Make a neighbourhood method, blocking or not, that counts the bytes sent to each neighbour.

    :param native: the method that makes the call.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """
    name = native.__name__

    def count(self: Any, sendbuf: Any, request: Any) -> None:
        carried = type(request) is not MPI.Request if name.startswith("I") else _latest(self, name) != NATIVE
        _count_neighbours(name, self, group_for(self, counters, group_of), sendbuf)(carried)

    count = timed(count, counters)

    def call(self: object, sendbuf: object, recvbuf: object) -> object:
        done = native(self, sendbuf, recvbuf)
        count(self, sendbuf, done)
        return done

    return call


def neighbours_later(native: Method, counters: TrafficCounters, group_of: GroupOf) -> Method:
    """Make a persistent neighbourhood method whose requests count the bytes to each neighbour at each start.

    :param native: the method that makes the request.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """

    def prepare(self: MPI.Comm, sendbuf: object, recvbuf: object, *info: object) -> object:
        request = native(self, sendbuf, recvbuf, *info)
        count = _count_neighbours(native.__name__, self, group_for(self, counters, group_of), sendbuf)
        carried = hasattr(request, "sent")
        return counted(request, timed(lambda: count(carried), counters))

    return prepare


def _latest(comm: object, name: str) -> str:
    """The algorithm that ran the latest blocking call of a method of a communicator."""
    known = known_to(comm)
    return NATIVE if known is None else known.latest(name)


def _count_neighbours(name: str, comm: MPI.Comm, group: CountedRanks, sendbuf: object) -> Callable[[bool], None]:
    """A function that counts one call of the method of this name, given whether topompi's carriers ran it.

    In an alltoall, a rank sends another part of its buffer along each of its edges; in an allgather, the whole buffer.
    """
    edges = np.array(plain(comm).outedges, dtype=np.int64)
    if "alltoallw" in name:
        lengths = parts(CALLS["Alltoallw"], (sendbuf,), len(edges))
    elif "alltoallv" in name:
        lengths = parts(CALLS["Alltoallv"], (sendbuf,), len(edges))
    else:
        whole = bytes_of(sendbuf)
        lengths = np.full(len(edges), whole // max(len(edges), 1) if "alltoall" in name else whole)
    return _counting(name, comm, group, edges, lengths)


def _counting(
    name: str, comm: object, group: CountedRanks, edges: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Callable[[bool], None]:
    """A function that adds one call to the counters: its bytes per receiver, and itself in the tables of calls.

    It takes whether topompi's carriers ran the call.

    :param name: name of the method, blocking (``Neighbor_...``) or not (``Ineighbor_...``), or persistent
        (``..._init``).
    :param comm: the communicator.
    :param group: the ranks of the communicator as counted peers.
    :param edges: rank to which each edge leads, shape (edges,); negative if the edge leads nowhere.
    :param lengths: bytes sent along each edge, shape (edges,).
    """
    there = edges >= 0
    units, volume = group[edges[there]], lengths[there]
    method = name.removesuffix("_init")
    mean = int(volume.sum()) // max(len(volume), 1)
    recorded: Recorded = kept(comm, "_topompi_recorded")
    if recorded.graph is None:
        recorded.graph, group.graphs = group.graphs, group.graphs + 1
    every = np.asarray(group.units, dtype=np.int64)
    lowest = min(group.owner.peers[every[every >= 0]].tolist(), default=0)
    key = method, lowest, group.size, recorded.graph

    def count(carried: bool) -> None:
        group.owner.add("C", units, volume)
        group.owner.note(method, group.size, mean)
        group.owner.exchanged(key, units, volume, carried=carried)

    return count


def neighbour_objects(native: Method, counters: TrafficCounters, group_of: GroupOf) -> Method:
    """Make a neighbourhood method for Python objects that counts their bytes, for which it pickles them a second time.

    :param native: the method that makes the call.
    :param counters: the counters of the recording.
    :param group_of: function that returns the `Group` of a communicator, which translates its ranks into peers of the
        counters (ranks or hosts of the recorded communicator).
    """

    def count(self: Any, sendobj: Any) -> None:
        edges = np.array(plain(self).outedges, dtype=np.int64)
        each = sendobj if "alltoall" in native.__name__ else [sendobj] * len(edges)
        lengths = np.array([length_of(one) for one in each], dtype=np.int64)
        _counting(native.__name__, self, group_for(self, counters, group_of), edges, lengths)(False)

    return after(native, count, counters)
