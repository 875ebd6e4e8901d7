"""The data of a recorded run: messages and bytes between ranks, by kind of call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...mapping.graph import CommunicationGraph
from ...mapping.readers.topoprof import COUNTS, GRANULARITIES, KINDS, MOVES, RECORDED, Call, Exchanges, ProfileView
from .errors import ProfileError

__all__ = [
    "ASKED",
    "COUNTS",
    "KINDS",
    "MOVES",
    "RECORDED",
    "Call",
    "Exchanged",
    "Exchanges",
    "Profile",
    "ProfileView",
    "RankRows",
]

Integers = NDArray[np.int64]

ASKED = "C"  # letter of the kind with the bytes that collective calls ask to move


@dataclass(frozen=True, eq=False)
class RankRows:
    """The messages that one rank sent, summed in one row per kind of message and peer.

    :param rank: the sending rank; in rows of one-sided gets, the receiving rank.
    :param kind: index of each row's kind in ``KINDS``, shape (rows,).
    :param peer: the other rank of each row, shape (rows,).
    :param messages: number of messages of each row, shape (rows,).
    :param volume: bytes of each row, shape (rows,).
    :param host: host on which the rank ran; "" if unknown.
    :param calls: collective calls of the rank by size; empty if they were not recorded.
    :param exchanges: neighbourhood calls of the rank by communicator and method.
    """

    rank: int
    kind: Integers
    peer: Integers
    messages: Integers
    volume: Integers
    host: str = ""
    calls: tuple[Call, ...] = ()
    exchanges: tuple[Exchanges, ...] = ()

    @classmethod
    def of_rows(cls, rank: int, rows: Iterable[tuple[int, int, int, int]]) -> RankRows:
        """Make the data of a rank from rows of kind, peer, number of messages, and bytes."""
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
        return cls(rank, table[:, 0], table[:, 1], table[:, 2], table[:, 3])


@dataclass(frozen=True, eq=False)
class Exchanged:
    """The neighbourhood calls of one method on one communicator with a graph, of all ranks.

    :param name: mpi4py's method; that of the blocking call on buffers if topompi can run the call.
    :param times: number of calls.
    :param carried: number of these calls that topompi's carriers ran; the MPI library ran the others.
    :param source: sending rank of each edge, shape (edges,).
    :param destination: receiving rank of each edge, shape (edges,).
    :param volume: bytes of each edge in all calls, shape (edges,).
    """

    name: str
    times: int
    carried: int
    source: Integers
    destination: Integers
    volume: Integers


@dataclass(frozen=True, eq=False)
class Profile:
    """The messages that the ranks of one run sent.

    :param size: number of ranks.
    :param method: method of recording, in words.
    :param command: command of the run; "" if unknown.
    :param seconds: duration of the recording in seconds, or of the whole command if messages were recorded below the
        MPI library; 0 if unknown.
    :param hosts: host name of each rank, shape (size,); empty if unknown.
    :param of_rank: data of each rank, without ranks whose record is missing.
    :param moves: letters of the kinds that count as moved data. If calls were recorded above the MPI library, these
        include the bytes that collectives asked to move; if messages were recorded below it, its own messages instead.
    :param granularity: ``process``; or ``host`` if a peer is the lowest rank on a host and stands for all its ranks.
    :param virtual: True if the hosts are those of a virtual placement.
    :param counting: mean seconds that counting took per call of rank 0; 0 if unknown.
    :param view: kind of units, and counted quantity, with which the profile is shown by default.
    """

    size: int
    method: str
    command: str = ""
    seconds: float = 0.0
    hosts: tuple[str, ...] = ()
    of_rank: Sequence[RankRows] = ()
    moves: str = MOVES
    granularity: str = "process"
    virtual: bool = False
    counting: float = 0.0
    view: ProfileView = field(default_factory=ProfileView)

    def __post_init__(self) -> None:
        if self.hosts and len(self.hosts) != self.size:
            raise ProfileError(f"profile: expecting a host for each of {self.size} ranks, got {len(self.hosts)}")
        strange = next((one.rank for one in self.of_rank if not 0 <= one.rank < self.size), None)
        if strange is not None:
            raise ProfileError(f"profile: expecting ranks below {self.size}, got {strange}")

    def view_of(self, granularity: str = "", count: str = "", otherwise: str = "process") -> ProfileView:
        """The kind of units and the quantity with which to show the profile: the arguments', else the profile's own.

        :param granularity: process, host or switch; "" if none is asked for.
        :param count: ``bytes`` or ``messages``; "" if none is asked for.
        :param otherwise: granularity if neither the arguments nor the profile have one.
        :raises ProfileError: if a word is unknown, or processes are asked for in a profile by host.
        """
        units = granularity or self.view.granularity or ("host" if self.granularity == "host" else otherwise)
        known = GRANULARITIES if self.granularity == "process" else GRANULARITIES[1:]
        view = ProfileView(units, count or self.view.count or COUNTS[0])
        for what, word, words in (("granularity", view.granularity, known), ("count", view.count, COUNTS)):
            if word not in words:
                raise ProfileError(f"expecting a {what} of {', '.join(words)}, got {word!r}")
        return view

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """The ranks without a record."""
        return tuple(sorted(set(range(self.size)) - {one.rank for one in self.of_rank}))

    @property
    def timed(self) -> str:
        """Words for the meaning of ``seconds``: ``ran for`` (the whole command) or ``recorded for`` (a part of it)."""
        return "recorded for" if ASKED in self.moves else "ran for"

    @property
    def sent(self) -> tuple[int, int]:
        """Number of messages and of bytes of the kinds in ``moves``, over all ranks."""
        return self.total(self.moves)

    @cached_property
    def _graphs(self) -> dict[str, CommunicationGraph]:
        """Cache of communication graphs, by the letters of their kinds."""
        return {}

    def graph(self, kinds: str | None = None) -> CommunicationGraph:
        """The communication graph of the ranks, as `topompi.mapping` takes it; cached.

        :param kinds: letters of the kinds (keys of ``KINDS``) to count; if it is None, the kinds that moved data.
        :raises ProfileError: if a letter is unknown, or a peer is not a rank.
        """
        wanted = self.moves if kinds is None else kinds
        if wanted not in self._graphs:
            source, target, messages, volume = self._columns(wanted)
            try:
                self._graphs[wanted] = CommunicationGraph.from_arrays(self.size, source, target, volume, messages)
            except ValueError as error:
                raise ProfileError(f"profile: {error}") from error
        return self._graphs[wanted]

    def total(self, kinds: str) -> tuple[int, int]:
        """Numbers of messages and bytes of some kinds, over all ranks."""
        _, _, messages, volume = self._columns(kinds)
        return int(messages.sum()), int(volume.sum())

    @cached_property
    def exchanged(self) -> list[Exchanged]:
        """The neighbourhood calls, one item per communicator with a graph and method, those with most bytes first."""
        found: dict[tuple[str, int, int, int], list[tuple[int, Exchanges]]] = {}
        for one in self.of_rank:
            for row in one.exchanges:
                found.setdefault(row[:4], []).append((one.rank, row))
        items = []
        for (name, *_), rows in found.items():
            source = np.array([rank for rank, row in rows for _ in row.peers], dtype=np.int64)
            ends = np.array([peer for _, row in rows for peer in row.peers], dtype=np.int64)
            volume = np.array([nbytes for _, row in rows for nbytes in row.volume], dtype=np.int64)
            times, carried = max(row.times for _, row in rows), max(row.carried for _, row in rows)
            items.append(Exchanged(name, times, carried, source, ends, volume))
        return sorted(items, key=lambda one: -int(one.volume.sum()))

    @property
    def most_calls(self) -> int:
        """Number of messages plus collective calls of the rank that made the most."""
        sent = [one.messages[one.kind == list(KINDS).index("E")].sum() for one in self.of_rank]
        called = [sum(call.times for call in one.calls) for one in self.of_rank]
        return int(max((a + b for a, b in zip(sent, called, strict=True)), default=0))

    @property
    def coverage(self) -> float | None:
        """Fraction of the bytes of collectives that were recorded as messages; None if there are no collectives.

        If messages were recorded below the MPI library, the divisor is the bytes that collectives asked to move, and
        the fraction is below 1 if data went through shared memory, or if an algorithm moved fewer bytes than
        `counting.asked` counts. If calls were recorded above the library, the divisor is the bytes of topompi's own
        messages plus the bytes that calls asked the library to move, because the library's messages are not recorded.
        """
        seen, asked = self.total("I")[1], self.total(ASKED)[1]
        every = seen + asked if ASKED in self.moves else asked
        return seen / every if every else None

    @cached_property
    def _rows(self) -> tuple[Integers, ...]:
        """Rank, kind, peer, messages and bytes of all rows, each of shape (rows,)."""
        own = [np.full(len(one.kind), one.rank, dtype=np.int64) for one in self.of_rank]
        columns = [
            own,
            *([getattr(one, name) for one in self.of_rank] for name in ("kind", "peer", "messages", "volume")),
        ]
        return tuple(np.concatenate([np.zeros(0, dtype=np.int64), *column]) for column in columns)

    def _columns(self, kinds: str) -> tuple[Integers, Integers, Integers, Integers]:
        """Source, target, messages and bytes of the rows of some kinds, each of shape (rows,)."""
        if strange := set(kinds) - set(KINDS):
            raise ProfileError(f"profile: expecting kinds of {''.join(KINDS)}, got {min(strange)!r}")
        here = np.array([letter in kinds for letter in KINDS])[self._rows[1]]
        own, kind, peer, messages, volume = (column[here] for column in self._rows)
        got = kind == list(KINDS).index("R")  # data move from the peer to the recording rank
        return np.where(got, peer, own), np.where(got, own, peer), messages, volume
