"""Scans and exscans in lanes: each rank of a host adds up one part (a lane) of the vectors of all ranks of the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..nested import NestedPhase
from ..phases import Phase, Phases, sequence, taken
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import Rows, transfers

__all__ = ["scan_lanes", "scan_transposed"]

Integers = NDArray[np.int64]


def scan_transposed(size: int, *, inclusive: bool = True, blocks: int | None = None) -> Schedule:
    """A scan or exscan in which each rank receives one part of all vectors, and returns the prefix sums of this part.

    Messages: 2 p (p - 1), in two exchanges of all pairs. Bytes: 2 (1 - 1/p) of the vector from each rank, where
    `scan_doubling` sends up to log2 p vectors. It is fast for long vectors.

    :param size: number of ranks, p.
    :param inclusive: whether it is a scan; else an exscan.
    :param blocks: number of blocks of the vector, by default p.
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
    """A scan or exscan in lanes: `scan_transposed` inside hosts, with an exscan across hosts in each lane.

    Each rank of a host adds up one part (a lane) of the vectors of all ranks of its host. The ranks of different hosts
    with the same lane then run an exscan of the hosts' sums, and add the result to their prefix sums before they return
    these. A run of consecutive ranks on one host counts as a host, so ranks may be in any order. There are as many
    lanes as the median run has ranks.

    Messages: those of the exscans, and inside a host of r ranks 2 r (r - 1). Bytes: inside a host each rank receives
    about one vector and sends one in each of the two exchanges; a host sends as much as with one rank per host.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param across: function that takes a number of hosts (one rank each) and a number of blocks (None for the
        algorithm's default), and returns the schedule of an exscan.
    :param inclusive: whether it is a scan; else an exscan.
    :param blocks: number of blocks of the vector; by default the number of lanes times the default of ``across``.
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
    """The runs of consecutive ranks on one host, and the assignment of lanes to the ranks of each run.

    :param host: host of each rank, shape (p,), any numbers.
    :ivar first: first rank of each run, and p, shape (runs + 1,).
    :ivar sizes: number of ranks of each run, shape (runs,).
    :ivar number: number of runs.
    :ivar of_rank: run of each rank, shape (p,).
    :ivar place: index of each rank in its run, from 0, shape (p,).
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
        """The rank that adds up a lane in a run; arrays of runs and lanes of one shape give an array of ranks."""
        ranks: Integers = self.first[run] + lane * self.sizes[run] // self.lanes
        return ranks


@dataclass(frozen=True, eq=False)
class _Pairs(Phase):
    """A phase with one transfer for each rank and lane, between this rank and the rank of its run that has the lane.

    :param runs: the runs of ranks, with their lanes.
    :param make: function that takes ranks and lanes, two arrays of shape (transfers,), and returns the transfers as
        schedule rows.
    """

    runs: _Runs = field(kw_only=True)
    make: Callable[[Integers, Integers], Rows] = field(kw_only=True)

    def rows(self) -> Rows:
        """The schedule rows of all ranks and lanes, sorted by rank, then by lane."""
        rank, lane = np.indices((len(self.runs.of_rank), self.runs.lanes))
        return self.make(rank.ravel(), lane.ravel())

    def of_rank(self, rank: int) -> Rows:
        """The schedule rows that a rank takes part in, in the order of ``rows``.

        Cost: only the rows of this rank for all lanes, and of all ranks of its run for its own lanes, are made.
        """
        runs, lane = self.runs, np.arange(self.runs.lanes)
        run = runs.of_rank[rank]
        mine = lane[runs.owner(np.full_like(lane, run), lane) == rank]
        near = np.arange(runs.first[run], runs.first[run + 1])
        keys = np.concatenate((rank * runs.lanes + lane, (near[:, None] * runs.lanes + mine).ravel()))
        return taken(self.make(*np.divmod(np.unique(keys), runs.lanes)), rank)


@dataclass(frozen=True, eq=False)
class _Vector:
    """The vector of a scan, which is divided into a part per lane, and the transfers of its stages.

    The scratch buffer of a rank has, one after another: room for a vector of each rank of the longest run, of which the
    rank uses the parts of its own lanes; room for the sum of all earlier runs; and the scratch blocks of the exscan
    across runs.

    :param runs: the runs of ranks, with their lanes.
    :param blocks: number of blocks of the vector.
    """

    runs: _Runs
    blocks: int

    @cached_property
    def bounds(self) -> Integers:
        """The first block of each lane's part of the vector, and the end, shape (lanes + 1,)."""
        return np.arange(self.runs.lanes + 1) * self.blocks // self.runs.lanes

    @cached_property
    def most(self) -> int:
        """The number of ranks of the longest run."""
        return int(self.runs.sizes.max())

    def phase(self, make: Callable[[Integers, Integers], Rows], steps: int = 1, *, local: bool = False) -> Phase:
        """Make a phase with the transfers that ``make`` returns for all pairs of a rank and a lane.

        :param make: one of the methods `collected`, `added`, `preceded`, `spread` and `spread_before`, which take ranks
            and lanes, two arrays of one shape, and return transfers as schedule rows.
        :param steps: number of steps of the phase, of which each row has one.
        :param local: whether all transfers are local moves, that is, between buffers of one rank.
        """
        return _Pairs(steps, local=local, runs=self.runs, make=make)

    def between(self, across: Callable[[int, int | None], Schedule]) -> Phases:
        """The phases in which the ranks with the same lane in all runs make an exscan of the sums of their runs.

        A run is consecutive ranks on one host. Lanes whose parts have the same number of blocks share a phase.

        :param across: function that takes the number of runs and the number of blocks of a part, and returns the
            schedule of an exscan.
        """
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
        return NestedPhase.of(inner, self.runs.owner(run, lane), places, vectors=(inner.blocks, self.blocks))

    def collected(self, rank: Integers, lane: Integers) -> Rows:
        """The schedule rows by which ranks send parts of their vectors to the ranks of their runs that add them up.

        :param rank: rank whose vector each part belongs to.
        :param lane: lane of each part.
        """
        at, count = self._part(lane)
        return transfers(0, rank, self._owner(rank, lane), (INPUT, at), (SCRATCH, self._slot(rank) + at), count)

    def added(self, rank: Integers, lane: Integers) -> Rows:
        """The local moves that add to each rank's part the sum of the parts of earlier ranks of its run.

        The i-th rank of a run, from 0, has its sum after step i - 1.

        :param rank: rank whose vector each part belongs to.
        :param lane: lane of each part.
        """
        rank, lane = (one[self.runs.place[rank] > 0] for one in (rank, lane))
        owner, (at, count) = self._owner(rank, lane), self._part(lane)
        here = self._slot(rank) + at
        step = self.runs.place[rank] - 1
        return transfers(step, owner, owner, (SCRATCH, here - self.blocks), (SCRATCH, here), count, REDUCE)

    def preceded(self, rank: Integers, lane: Integers) -> Rows:
        """The local moves that add the sum of all earlier runs to the prefix sums within a run.

        :param rank: last rank that each prefix sum includes.
        :param lane: lane of each sum.
        """
        rank, lane = (one[self.runs.of_rank[rank] > 0] for one in (rank, lane))
        owner, (at, count) = self._owner(rank, lane), self._part(lane)
        before = (SCRATCH, self.most * self.blocks + at)
        return transfers(0, owner, owner, before, (SCRATCH, self._slot(rank) + at), count, REDUCE)

    def spread(self, rank: Integers, lane: Integers) -> Rows:
        """The schedule rows of a scan that send each rank's prefix sums, including its own vector, to its output.

        :param rank: receiving rank of each sum.
        :param lane: lane of each sum.
        """
        at, count = self._part(lane)
        return transfers(0, self._owner(rank, lane), rank, (SCRATCH, self._slot(rank) + at), (OUTPUT, at), count)

    def spread_before(self, rank: Integers, lane: Integers) -> Rows:
        """The schedule rows of an exscan that send each rank the prefix sums of the rank before it.

        The first rank of a run gets the sum of all earlier runs, and rank 0 nothing.

        :param rank: receiving rank of each sum.
        :param lane: lane of each sum.
        """
        rank, lane = rank[rank > 0], lane[rank > 0]
        at, count = self._part(lane)
        slot = np.where(self.runs.place[rank] > 0, self._slot(rank) - self.blocks, self.most * self.blocks)
        return transfers(0, self._owner(rank, lane), rank, (SCRATCH, slot + at), (OUTPUT, at), count)

    def _part(self, lane: Integers) -> tuple[Integers, Integers]:
        """The first block of each lane's part of the vector, and the number of its blocks."""
        return self.bounds[lane], np.diff(self.bounds)[lane]

    def _owner(self, rank: Integers, lane: Integers) -> Integers:
        return self.runs.owner(self.runs.of_rank[rank], lane)

    def _slot(self, rank: Integers) -> Integers:
        """The first block, in the scratch buffer, of the room for each rank's vector."""
        return self.runs.place[rank] * self.blocks
