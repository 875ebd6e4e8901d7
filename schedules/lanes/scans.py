"""Scans and exscans in lanes: a rank of each host adds up one part of the vectors for all ranks of the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..nested import Placed
from ..phases import Phase, Phases, sequence, taken
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import Rows, transfers

__all__ = ["scan_lanes", "scan_transposed"]

Integers = NDArray[np.int64]


def scan_transposed(size: int, *, inclusive: bool = True, blocks: int | None = None) -> Schedule:
    """Each rank gets one part of all vectors, adds it up in rank order, and sends each rank its sum.

    Two exchanges of all pairs, so 2 (1 - 1/p) of the vector leave each rank, where doubling sends log2 p vectors.
    Messages: 2 p (p - 1). It wins for long vectors.

    :param size: number of ranks, p.
    :param inclusive: scan, else exscan.
    :param blocks: blocks of the vector, by default p.
    """
    return scan_lanes(np.zeros(size, dtype=np.int64), inclusive=inclusive, blocks=blocks)


def _exscan_transposed(size: int, blocks: int | None) -> Schedule:
    return scan_transposed(size, inclusive=False, blocks=blocks)


def scan_lanes(
    rank_host: ArrayLike,
    across: Callable[[int, int | None], Schedule] = _exscan_transposed,
    *,
    inclusive: bool = True,
    blocks: int | None = None,
) -> Schedule:
    """As `scan_transposed` inside hosts; between them the ranks with the same part run an exscan of their sums.

    A run of consecutive ranks on one host counts as a host, so that ranks may be in any order; there are as many parts,
    or lanes, as the median run has ranks. Messages: those of the exscans, and inside a host of r ranks 2 r (r - 1).
    Bytes: inside a host each rank receives one vector and sends one; a host sends as much as one rank per host would.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param across: function that takes a number of hosts (one rank each) and a number of blocks (None for the
        algorithm's own), and returns the schedule of an exscan.
    :param inclusive: scan, else exscan.
    :param blocks: blocks of the vector, by default those of ``across`` for each part.
    """
    runs = _Runs(np.asarray(rank_host))
    several = runs.number > 1
    each = across(runs.number, None).blocks if several else 1
    vector = _Vector(runs, runs.lanes * each if blocks is None else blocks)
    parts = [vector.phase(vector.collected), vector.phase(vector.added, vector.most - 1, local=True)]
    inner = vector.between(across) if several else ()
    if several:
        parts.append(vector.phase(vector.preceded, 1, local=True))
    ends = vector.phase(vector.spread if inclusive else vector.spread_before)
    name = f"lanes, {across(runs.number, None).algorithm}" if several else "transposed"
    collective = "scan" if inclusive else "exscan"
    phases = sequence(*parts[:2], inner, *parts[2:], ends)
    return Schedule.from_phases(collective, len(runs.of_rank), name, phases, blocks=vector.blocks)


class _Runs:
    """The runs of consecutive ranks on one host, and which rank of each has which lane.

    :ivar of_rank: run of each rank, shape (p,).
    :ivar first: first rank of each run, and p, shape (runs + 1,).
    :ivar place: of each rank in its run, shape (p,).
    :ivar lanes: number of lanes.
    """

    def __init__(self, host: Integers) -> None:
        begins = np.flatnonzero(np.diff(host, prepend=host[:1] - 1))
        self.first = np.append(begins, len(host))
        self.sizes = np.diff(self.first)
        self.number = len(begins)
        self.of_rank = np.repeat(np.arange(self.number), self.sizes)
        self.place = np.arange(len(host)) - begins[self.of_rank]
        self.lanes = int(np.sort(self.sizes)[(self.number - 1) // 2])

    def owner(self, run: Integers, lane: Integers) -> Integers:
        """The rank that has a lane in a run."""
        ranks: Integers = self.first[run] + lane * self.sizes[run] // self.lanes
        return ranks


@dataclass(frozen=True, eq=False)
class _Pairs(Phase):
    """A phase whose transfers each move or add one rank's part of one lane, at the rank of its run that has the lane.

    :param make: the rows of some ranks' parts of some lanes, two arrays of one shape.
    """

    runs: _Runs = field(kw_only=True)
    make: Callable[[Integers, Integers], Rows] = field(kw_only=True)

    def rows(self) -> Rows:
        """Rank by rank, lane by lane."""
        rank, lane = np.indices((len(self.runs.of_rank), self.runs.lanes))
        return self.make(rank.ravel(), lane.ravel())

    def of_rank(self, rank: int) -> Rows:
        """As ``rows``; cost: that of the rank's parts, and of all parts of its own lanes."""
        runs, lane = self.runs, np.arange(self.runs.lanes)
        run = runs.of_rank[rank]
        mine = lane[runs.owner(np.full_like(lane, run), lane) == rank]
        near = np.arange(runs.first[run], runs.first[run + 1])
        keys = np.concatenate((rank * runs.lanes + lane, (near[:, None] * runs.lanes + mine).ravel()))
        return taken(self.make(*np.divmod(np.unique(keys), runs.lanes)), rank)


@dataclass(frozen=True, eq=False)
class _Vector:
    """The vector of a scan, in parts; the scratch holds a vector for each rank of a run, one before them, and more.

    :param runs: the runs of ranks.
    :param blocks: blocks of the vector.
    """

    runs: _Runs
    blocks: int

    @cached_property
    def bounds(self) -> Integers:
        """First block of each part, and behind the last, shape (lanes + 1,)."""
        return np.arange(self.runs.lanes + 1) * self.blocks // self.runs.lanes

    @cached_property
    def most(self) -> int:
        """Ranks of the longest run."""
        return int(self.runs.sizes.max())

    def phase(self, make: Callable[[Integers, Integers], Rows], steps: int = 1, *, local: bool = False) -> Phase:
        """The phase of some rows."""
        return _Pairs(steps, local=local, runs=self.runs, make=make)

    def between(self, across: Callable[[int, int | None], Schedule]) -> Phases:
        """The exscans of all lanes, of each run's sum: those of parts of one length run one schedule."""
        lengths, run = np.diff(self.bounds), np.arange(self.runs.number)
        return tuple(
            (0, self._exscan(across(len(run), int(length)), length, run)) for length in np.unique(lengths) if length
        )

    def _exscan(self, inner: Schedule, length: np.int64, run: Integers) -> Phase:
        lane = np.flatnonzero(np.diff(self.bounds) == length)[:, None]
        begin = self.bounds[lane]
        places = {
            INPUT: (SCRATCH, (self.runs.sizes - 1) * self.blocks + begin),
            OUTPUT: (SCRATCH, self.most * self.blocks + begin),
            SCRATCH: (SCRATCH, (self.most + 1) * self.blocks + begin),
        }
        return Placed.of(inner, self.runs.owner(run, lane), places, vectors=(inner.blocks, self.blocks))

    def collected(self, rank: Integers, lane: Integers) -> Rows:
        """Rows in which each rank sends each part of its vector to the rank that has the lane."""
        at, count = self._part(lane)
        return transfers(0, rank, self._owner(rank, lane), (INPUT, at), (SCRATCH, self._slot(rank) + at), count)

    def added(self, rank: Integers, lane: Integers) -> Rows:
        """Rows that add each rank's part to the sum of the parts of earlier ranks of its run."""
        rank, lane = (one[self.runs.place[rank] > 0] for one in (rank, lane))
        owner, (at, count) = self._owner(rank, lane), self._part(lane)
        here = self._slot(rank) + at
        step = self.runs.place[rank] - 1
        return transfers(step, owner, owner, (SCRATCH, here - self.blocks), (SCRATCH, here), count, REDUCE)

    def preceded(self, rank: Integers, lane: Integers) -> Rows:
        """Rows that add the sum of all earlier runs to every sum of a run."""
        rank, lane = (one[self.runs.of_rank[rank] > 0] for one in (rank, lane))
        owner, (at, count) = self._owner(rank, lane), self._part(lane)
        before = (SCRATCH, self.most * self.blocks + at)
        return transfers(0, owner, owner, before, (SCRATCH, self._slot(rank) + at), count, REDUCE)

    def spread(self, rank: Integers, lane: Integers) -> Rows:
        """Rows that send each rank its sums."""
        at, count = self._part(lane)
        return transfers(0, self._owner(rank, lane), rank, (SCRATCH, self._slot(rank) + at), (OUTPUT, at), count)

    def spread_before(self, rank: Integers, lane: Integers) -> Rows:
        """Rows that send each rank the sums of the rank before it, or of all earlier runs; rank 0 gets nothing."""
        rank, lane = rank[rank > 0], lane[rank > 0]
        at, count = self._part(lane)
        slot = np.where(self.runs.place[rank] > 0, self._slot(rank) - self.blocks, self.most * self.blocks)
        return transfers(0, self._owner(rank, lane), rank, (SCRATCH, slot + at), (OUTPUT, at), count)

    def _part(self, lane: Integers) -> tuple[Integers, Integers]:
        """First block of a lane's part, and its blocks."""
        return self.bounds[lane], np.diff(self.bounds)[lane]

    def _owner(self, rank: Integers, lane: Integers) -> Integers:
        return self.runs.owner(self.runs.of_rank[rank], lane)

    def _slot(self, rank: Integers) -> Integers:
        """Where in the scratch the vector of a rank begins."""
        return self.runs.place[rank] * self.blocks
