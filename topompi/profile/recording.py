"""What a program sent: who sent how many messages and bytes to whom, and by what kind of call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..mapping.graph import CommunicationGraph
from ..mapping.readers.topoprof import COUNTS, GRANULARITIES, KINDS, MOVES, RECORDED, Call, View
from .errors import ProfileError

__all__ = ["ASKED", "COUNTS", "KINDS", "MOVES", "RECORDED", "Call", "Profile", "RankRows", "View"]

Integers = NDArray[np.int64]

ASKED = "C"


@dataclass(frozen=True, eq=False)
class RankRows:
    """What one rank sent.

    :param rank: the sending rank; of what it got by one-sided calls, the receiving one.
    :param kind: index into ``KINDS`` of each row, shape (rows,).
    :param peer: the other rank, shape (rows,).
    :param messages: how many, shape (rows,).
    :param volume: bytes, shape (rows,).
    :param host: where it ran; empty where that is unknown.
    :param calls: its collective calls by size; none where they were not recorded.
    """

    rank: int
    kind: Integers
    peer: Integers
    messages: Integers
    volume: Integers
    host: str = ""
    calls: tuple[Call, ...] = ()

    @classmethod
    def of_rows(cls, rank: int, rows: Iterable[tuple[int, int, int, int]]) -> RankRows:
        """From rows of kind, peer, messages, bytes."""
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
        return cls(rank, table[:, 0], table[:, 1], table[:, 2], table[:, 3])


@dataclass(frozen=True, eq=False)
class Profile:
    """What the ranks of one run sent.

    :param size: number of ranks, p.
    :param method: how it was recorded, in words.
    :param command: what ran; empty where that is unknown.
    :param seconds: how long it ran; 0 where that is unknown.
    :param hosts: host name of each rank, p of them; empty where that is unknown.
    :param of_rank: what each rank sent; a rank whose record is missing has none.
    :param moves: the kinds whose rows are what moved. Recorded above the MPI library these include what collectives
        were asked for; recorded below it the same bytes are the library's own messages.
    :param granularity: ``process``, or ``host`` where a peer is the lowest rank on a host and stands for all there.
    :param virtual: whether the hosts are those of a virtual placement.
    :param counting: seconds that counting added to a call; 0 where that is unknown.
    :param view: how to look at it where nothing else is asked for.
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
    view: View = field(default_factory=View)

    def __post_init__(self) -> None:
        if self.hosts and len(self.hosts) != self.size:
            raise ProfileError(f"profile: expecting a host for each of {self.size} ranks, got {len(self.hosts)}")
        strange = next((one.rank for one in self.of_rank if not 0 <= one.rank < self.size), None)
        if strange is not None:
            raise ProfileError(f"profile: expecting ranks below {self.size}, got {strange}")

    def view_of(self, granularity: str = "", count: str = "", otherwise: str = "process") -> View:
        """How to look at it: as is asked for here, else as when it was recorded, else by units that it knows.

        :param granularity: process, host or switch; empty for none asked for.
        :param count: ``bytes`` or ``messages``, likewise.
        :param otherwise: the granularity where none was ever asked for.
        :raises ProfileError: for another word, or processes of a profile by host.
        """
        units = granularity or self.view.granularity or ("host" if self.granularity == "host" else otherwise)
        known = GRANULARITIES if self.granularity == "process" else GRANULARITIES[1:]
        view = View(units, count or self.view.count or COUNTS[0])
        for what, word, words in (("granularity", view.granularity, known), ("count", view.count, COUNTS)):
            if word not in words:
                raise ProfileError(f"expecting a {what} of {', '.join(words)}, got {word!r}")
        return view

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """The ranks of which there is no record."""
        return tuple(sorted(set(range(self.size)) - {one.rank for one in self.of_rank}))

    @property
    def sent(self) -> tuple[int, int]:
        """Messages and bytes that moved."""
        return self.total(self.moves)

    @cached_property
    def _graphs(self) -> dict[str, CommunicationGraph]:
        """Those that were asked for, by their kinds."""
        return {}

    def graph(self, kinds: str | None = None) -> CommunicationGraph:
        """Who sent how much to whom, as `topompi.mapping` takes it; made once.

        :param kinds: the letters of ``KINDS`` that count; else those of what moved.
        :raises ProfileError: for another letter, or a peer that is no rank.
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
        """Messages and bytes of some kinds of all ranks."""
        _, _, messages, volume = self._columns(kinds)
        return int(messages.sum()), int(volume.sum())

    @property
    def most_calls(self) -> int:
        """Messages of the program and collective calls on the rank that has most of both."""
        sent = [one.messages[one.kind == list(KINDS).index("E")].sum() for one in self.of_rank]
        called = [sum(call.times for call in one.calls) for one in self.of_rank]
        return int(max((a + b for a, b in zip(sent, called, strict=True)), default=0))

    @property
    def coverage(self) -> float | None:
        """Bytes of collectives that were seen as messages, a part of all; None without any.

        Recorded below the library all are what collectives were asked to move: the part is below 1 where these go
        through shared memory, or move less than each rank is told of. Above it all are what topompi's plans sent and
        what the library was asked to move by the other calls, of which no message is seen.
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
        """Source, target, messages and bytes of the rows of some kinds."""
        if strange := set(kinds) - set(KINDS):
            raise ProfileError(f"profile: expecting kinds of {''.join(KINDS)}, got {min(strange)!r}")
        here = np.array([letter in kinds for letter in KINDS])[self._rows[1]]
        own, kind, peer, messages, volume = (column[here] for column in self._rows)
        got = kind == list(KINDS).index("R")  # the peer is the one whose data moves
        return np.where(got, peer, own), np.where(got, own, peer), messages, volume
