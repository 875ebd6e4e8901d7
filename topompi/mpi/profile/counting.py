"""Counters of one rank's traffic: messages and bytes per peer and kind, and numbers of collective calls.

A collective call is only counted in a table of calls. The bytes that the calls ask to move are computed when the
counters are read, so that counting a call costs one look-up.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import CALLS, CallSpec, Form
from .recording import KINDS, Call, Exchanges, RankRows

if TYPE_CHECKING:
    from ..execution.binding import Sent

__all__ = ["CountedRanks", "Recorded", "TrafficCounters", "asked"]

Integers = NDArray[np.int64]
MOST_CALLS = 512  # different calls in ``Group.calls``, at most, to limit its memory; ``fold`` empties it then
MOST_EXCHANGES = 256  # maximum number of pairs of a graph and a method whose edges are counted, to limit memory
MOST_SIZES = 512  # maximum number of rows of the table of calls with exact sizes; later sizes are rounded up to 2^k


def asked(spec: CallSpec, size: int, rank: int, root: int, nbytes: int) -> tuple[Integers, Integers]:
    """The ranks to which a collective call asks rank ``rank`` to send data, and the bytes to each, both shape (peers,).

    A broadcast or scatter moves data from the root to each rank, a gather or reduction from each rank to the root, an
    allgather or alltoall from each rank to each. An allreduce counts as the least that has to move (Patarasuk and Yuan
    2009): a reduce-scatter, in which each rank sends every other rank its part of the vector, and an allgather of the
    parts. A scan moves data from each rank to the next. Data that stay on a rank are not counted.

    :param spec: the description of the call.
    :param size: number of ranks of the communicator.
    :param rank: the sending rank.
    :param root: the root; ignored in calls without one.
    :param nbytes: bytes of the rank's message; in alltoall, allgather and reduce-scatter, of all blocks together.
    """
    if spec.form is Form.NOTHING:
        peers, each = [], 0
    elif spec.collective in ("scan", "exscan"):
        peers, each = list(range(rank + 1, size))[:1], nbytes
    elif spec.rooted and spec.form in (Form.GATHER, Form.REDUCTION):
        peers, each = [root] if rank != root else [], nbytes
    elif spec.rooted:
        peers, each = [one for one in range(size) if one != root] if rank == root else [], nbytes
    else:
        peers, each = [one for one in range(size) if one != rank], _share(spec, size, nbytes)
    return np.array(peers, dtype=np.int64), np.full(len(peers), each, dtype=np.int64)


def _share(spec: CallSpec, size: int, nbytes: int) -> int:
    if spec.form is Form.REDUCTION:
        return 2 * nbytes // size
    return nbytes if spec.name == "Allgatherv" else nbytes // size


class TrafficCounters:
    """The counters of one rank's traffic, by kind and peer.

    A kind is a letter of ``KINDS``, for example E for messages sent by the program. A peer is a receiving rank or host.

    :param size: number of peers.
    :param peers: rank that names each peer in the profile's file, shape (size,): the rank, or the host's lowest rank.

    :ivar timed_calls: number of calls whose counting was timed.
    :ivar timed_seconds: seconds that the counting of these calls took.

    Cost: 16 bytes per peer and kind of message that occurs.
    """

    def __init__(self, size: int, peers: Integers) -> None:
        self.size, self.peers = size, peers
        self.tables: dict[str, tuple[array[int], array[int]]] = {}
        self.groups: dict[Hashable, CountedRanks] = {}
        self.sizes: dict[tuple[str, int, int], int] = {}
        self.exchanges: dict[tuple[str, int, int, int], tuple[Integers, Integers, list[int]]] = {}
        self.timed_calls, self.timed_seconds = 0, 0.0

    def table(self, kind: str) -> tuple[array[int], array[int]]:
        """The number of messages and of bytes to each peer, for one kind, as two arrays that the caller may increase.

        :param kind: a letter of ``KINDS``.
        """
        if kind not in self.tables:
            self.tables[kind] = array("q", bytes(8 * self.size)), array("q", bytes(8 * self.size))
        return self.tables[kind]

    def group(self, rank: int, units: Integers) -> CountedRanks:
        """The `Group` of a communicator; communicators with the same ranks in the same order share one `Group`.

        :param rank: this rank's number in the communicator.
        :param units: number of the peer for each rank of the communicator, shape (ranks,); -1 if the rank is not
            recorded.
        """
        key = rank, units.tobytes()
        if key not in self.groups:
            self.groups[key] = CountedRanks(self, rank, units)
        return self.groups[key]

    def add(self, kind: str, units: Integers, volume: Integers, count: int = 1) -> None:
        """Count messages of one kind to some peers.

        :param kind: a letter of ``KINDS``.
        :param units: numbers of the peers, shape (peers,); entries of -1 are skipped.
        :param volume: bytes of one message to each of these peers, shape (peers,).
        :param count: number of messages to each of these peers.
        """
        known = units >= 0
        for column, amount in zip(self.table(kind), (np.full(len(units), count), count * volume), strict=True):
            np.add.at(np.frombuffer(column, dtype=np.int64), units[known], amount[known])

    def note(self, name: str, ranks: int, nbytes: int, count: int = 1) -> None:
        """Count calls of a collective in the table of calls.

        :param name: mpi4py's method; that of the blocking call on buffers if topompi can run the call.
        :param ranks: number of ranks of the communicator.
        :param nbytes: bytes of the rank's message; in alltoall and allgather, of one block.
        :param count: number of calls.
        """
        if len(self.sizes) >= MOST_SIZES and (name, ranks, nbytes) not in self.sizes:
            nbytes = 1 << max(nbytes - 1, 0).bit_length()
        self.sizes[name, ranks, nbytes] = self.sizes.get((name, ranks, nbytes), 0) + count

    def exchanged(self, key: tuple[str, int, int, int], units: Integers, volume: Integers, *, carried: bool) -> None:
        """Count a call of a neighbourhood collective, with the bytes of its edges.

        :param key: name of the method, lowest peer and number of ranks of the communicator, and index of its graph.
        :param units: numbers of the peers to which the rank's edges lead, shape (edges,); -1 if a rank is not recorded.
        :param volume: bytes of each edge, shape (edges,).
        :param carried: whether topompi's carriers ran the call.
        """
        if key not in self.exchanges:
            if len(self.exchanges) >= MOST_EXCHANGES:
                return
            known = units >= 0
            self.exchanges[key] = self.peers[units[known]], np.zeros(int(known.sum()), dtype=np.int64), [0, 0]
        _, total, times = self.exchanges[key]
        total += volume[units >= 0]
        times[0] += 1
        times[1] += carried

    def seconds_a_call(self, quick: float) -> float:
        """Mean seconds that counting took per message or collective call of this rank; ``quick`` if it made none.

        :param quick: seconds that counting takes per call of those whose counting was not timed.
        """
        for group in list(self.groups.values()):
            group.fold()
        number = sum(self.table("E")[0]) + sum(self.sizes.values())
        return (quick * max(0, number - self.timed_calls) + self.timed_seconds) / number if number else quick

    def rows(self, rank: int, host: str) -> RankRows:
        """All counts, as the `RankRows` of this rank.

        :param rank: the rank in the profile.
        :param host: name of the host on which it runs.
        """
        for group in list(self.groups.values()):
            group.fold()
        parts = [np.empty((4, 0), dtype=np.int64)]
        for number, kind in enumerate(KINDS):
            if kind in self.tables:
                messages, volume = (np.array(column, dtype=np.int64) for column in self.tables[kind])
                there = np.flatnonzero(messages)
                parts.append(np.stack((np.full_like(there, number), self.peers[there], messages[there], volume[there])))
        calls = tuple(Call(*key, count) for key, count in sorted(self.sizes.copy().items()))
        exchanges = tuple(
            Exchanges(*key, times[0], times[1], tuple(peers.tolist()), tuple(total.tolist()))
            for key, (peers, total, times) in self.exchanges.copy().items()
        )
        kind, peer, messages, volume = np.concatenate(parts, axis=1)
        return RankRows(rank, kind, peer, messages, volume, host, calls, exchanges)


@dataclass(slots=True)
class Recorded:
    """A communicator as a recording counts it.

    :param group: the communicator's ranks as counted peers.
    :param graph: number of the communicator's graph; None before it has counted neighbourhood calls.
    """

    group: CountedRanks
    graph: int | None = None


class CountedRanks:
    """The ranks of a communicator as counted peers, and its collective calls that are not in the counters yet.

    :param owner: the counters.
    :param rank: this rank's number in the communicator.
    :param units: number of the peer for each rank of the communicator, shape (ranks,); -1 if the rank is not recorded.
    :ivar owner: the counters.
    :ivar units: the same numbers as a range or array of Python, which is faster to index than numpy's.
    :ivar graphs: number of communicators with a graph of these ranks that have made a neighbourhood call.
    :ivar calls: number of calls by (name, root, bytes, messages), with the messages that topompi's plan of the call
        sends, or None if the MPI library ran the call.
    """

    def __init__(self, owner: TrafficCounters, rank: int, units: Integers) -> None:
        self.owner, self.rank, self.size = owner, rank, len(units)
        same = len(units) == owner.size and bool((units == np.arange(len(units))).all())
        self.units: range | array[int] = range(len(units)) if same else array("i", units.tolist())
        self.calls: dict[tuple[str, int, int, Sent | None], int] = {}
        self.graphs = 0

    def __getitem__(self, ranks: Integers) -> Integers:
        return np.asarray(self.units, dtype=np.int64)[ranks]

    def called(self, name: str, root: int, nbytes: int, sent: Sent | None = None) -> None:
        """Count a call in ``calls``; if ``calls`` is full, first add its calls to the counters.

        :param name: a key of ``CALLS``; or the method, if the library runs it: a non-blocking one, or one for objects.
        :param root: the root; 0 in calls without one.
        :param nbytes: bytes of the rank's message; in alltoall, allgather and reduce-scatter, of all blocks together.
        :param sent: the messages of topompi's plan that ran the call; None if the MPI library ran it.
        """
        if len(self.calls) >= MOST_CALLS:
            self.fold()
        key = name, root, nbytes, sent
        self.calls[key] = self.calls.get(key, 0) + 1

    def fold(self) -> None:
        """Add the calls in ``calls`` to the counters, and remove them from ``calls``."""
        for key in list(self.calls):
            (name, root, nbytes, sent), count = key, self.calls.pop(key)
            spec = CALLS[name.removeprefix("I").capitalize()]  # of Iallreduce and allreduce that of Allreduce
            if sent is None:
                peers, volume = asked(spec, self.size, self.rank, root, nbytes)
                self.owner.add("C", self[peers], volume, count)
            else:
                self.owner.add("I", self[sent.peers], sent.nbytes, count)
            in_blocks = spec.name in ("Alltoall", "Allgather")  # the table of calls has the size of one block
            self.owner.note(name, self.size, nbytes // self.size if in_blocks else nbytes, count)
