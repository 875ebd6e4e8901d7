"""Alltoall with one message for each pair of hosts: ranks hand their blocks to carriers, which exchange."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..symmetric.exchanges import sequence
from ..transfers import Rows, transfers

__all__ = ["alltoall_leaders", "alltoall_node_aware"]

Integers = NDArray[np.int64]


def alltoall_node_aware(rank_host: ArrayLike, *, carriers: int | None = None, blocks: int = 1) -> Schedule:
    """Each host sends one message to each other host; its ranks share the carrying.

    The three-step exchange of Bienz, Gropp and Olson 2019 for sparse messages, here for alltoall: ranks hand a carrier
    what goes to its hosts, carriers exchange, and hand out what arrived. Hosts at distance k, modulo n, are served by
    carrier k - 1 modulo the carriers of a host, so a rank sends as much as it receives. Blocks for ranks of the same
    host go directly, with the first messages.

    Messages: n (n - 1) between hosts; inside a host of m ranks with c carriers m (m - 1), then c (m - 1). Bytes: each
    block between hosts once, and up to twice more inside one. It wins for small and medium blocks, where the
    m^2 start-ups of a pair of hosts cost more than memory does.

    :param rank_host: host of each rank, shape (p,), any numbers; hosts may have differently many ranks.
    :param carriers: ranks of a host that exchange at most, by default all.
    :raises ValueError: for fewer carriers than one.
    """
    host = np.asarray(rank_host)
    return _aggregated(_Hosts(host, len(host) if carriers is None else carriers), "node-aware", blocks, direct=True)


def alltoall_leaders(rank_host: ArrayLike, *, blocks: int = 1) -> Schedule:
    """Everything of a host is gathered at its lowest rank; these leaders exchange, and scatter what arrived.

    Hierarchical aggregation as in Träff and Rougier 2014. Messages: 2 (m - 1) in each host of m ranks, blocks inside
    the host included, and n (n - 1) between hosts: the least start-ups for ranks that are no leaders. Bytes: each block
    three times at most, twice through a leader, which sends m times its own share. It wins for the smallest blocks.

    :param rank_host: host of each rank, shape (p,), any numbers; hosts may have differently many ranks.
    """
    return _aggregated(_Hosts(np.asarray(rank_host), 1), "leaders", blocks, direct=False)


class _Hosts:
    """The ranks of each host, hosts being numbered by their lowest rank."""

    def __init__(self, rank_host: NDArray[np.integer], carriers: int) -> None:
        if carriers < 1:
            raise ValueError(f"expecting at least one carrier, got {carriers}")
        _, first, host = np.unique(rank_host, return_index=True, return_inverse=True)
        self.of_rank: Integers = np.argsort(np.argsort(first))[host]
        self.members = np.argsort(self.of_rank, kind="stable")
        self.ranks = np.bincount(self.of_rank)
        self.begin: Integers = np.cumsum(self.ranks) - self.ranks
        self.local = np.empty_like(self.members)
        self.local[self.members] = np.arange(len(host)) - self.begin[self.of_rank[self.members]]
        self.carriers = np.minimum(self.ranks, carriers)

    def carrier(self, host: Integers, distance: Integers) -> Integers:
        """The rank of a host that serves another one, by their distance less 1."""
        chosen: Integers = self.members[self.begin[host] + distance % self.carriers[host]]
        return chosen

    def turn(self, here: Integers, there: Integers) -> Integers:
        """Step of a shift inside a host in which one rank sends to another."""
        return (self.local[there] - self.local[here]) % self.ranks[self.of_rank[here]]


@dataclass(frozen=True, eq=False)
class _Stage:
    """Where every block lies between two phases.

    :param holder: rank that has each block; what it has lies side by side in the order of ``keys``.
    """

    buffer: int
    holder: Integers
    keys: tuple[Integers, ...]

    @cached_property
    def sequence(self) -> Integers:
        """All blocks by holder, then by place."""
        columns = (self.holder, *self.keys)
        return np.argsort(np.ravel_multi_index(columns, [int(column.max()) + 1 for column in columns]))

    @cached_property
    def place(self) -> Integers:
        """Place of each block among its holder's."""
        held = np.bincount(self.holder)
        place = np.empty_like(self.holder)
        place[self.sequence] = np.arange(len(place)) - np.repeat(np.cumsum(held) - held, held)
        return place

    def alike(self, other: _Stage) -> bool:
        """Whether no block moves from one stage to the other."""
        return bool((self.holder == other.holder).all() and (self.place == other.place).all())


def _aggregated(hosts: _Hosts, algorithm: str, blocks: int, *, direct: bool) -> Schedule:
    """Blocks (s, d) go from s over a carrier of its host and one of d's host to d, packed wherever a message leaves.

    :param direct: blocks inside a host take no carriers, but the first message between their ranks.
    """
    size, num_hosts = len(hosts.members), len(hosts.ranks)
    s, d = (axis.ravel() for axis in np.indices((size, size)))
    h, g = hosts.of_rank[s], hosts.of_rank[d]
    distance = (g - h) % num_hosts - 1
    out, into = hosts.carrier(h, distance), hosts.carrier(g, distance)
    if direct:
        out, into = (np.where(h == g, d, carrier) for carrier in (out, into))
    stages = [
        _Stage(INPUT, s, (d,)),
        _Stage(SCRATCH, s, (out, g, d)),
        _Stage(SCRATCH, out, (s, g, d)),
        _Stage(SCRATCH, out, (g, d, s)),
        _Stage(SCRATCH, into, (h, d, s)),
        _Stage(SCRATCH, into, (d, h, s)),
        _Stage(SCRATCH, d, (into, h, s)),
        _Stage(OUTPUT, d, (s,)),
    ]
    none, round_ = np.zeros_like(s), np.maximum(distance, 0) // hosts.carriers.max()
    rows = _moves(stages, [none, hosts.turn(s, out), none, round_, none, hosts.turn(into, d), none])
    rows[:, [4, 6, 7]] *= blocks
    return Schedule.from_rows("alltoall", size, algorithm, rows, blocks=blocks)


def _moves(stages: Sequence[_Stage], turns: Sequence[Integers]) -> Rows:
    """Rows from stage to stage; what already lies as the next stage wants it is left there.

    :param turns: step within its phase in which each block moves on from each stage but the last.
    """
    kept, phases = [stages[0]], []
    for stage, turn in zip(stages[1:], turns, strict=True):
        if not kept[-1].alike(stage) or (kept[-1].buffer, stage.buffer) == (INPUT, OUTPUT):
            kept.append(stage)
            phases.append(turn)
        elif stage.buffer == OUTPUT:
            kept[-1] = stage
    area = max(int(np.bincount(stage.holder).max()) for stage in kept)
    # Two areas of scratch take turns, so that no phase writes what it reads.
    bases = [area * (number % 2) if stage.buffer == SCRATCH else 0 for number, stage in enumerate(kept)]
    pairs = zip(itertools.pairwise(kept), itertools.pairwise(bases), phases, strict=True)
    return sequence(*(_phase(here, there, base, turn) for (here, there), base, turn in pairs))


def _phase(here: _Stage, there: _Stage, base: tuple[int, int], turn: Integers) -> Rows:
    """One transfer for each run of blocks that lies side by side before and after."""
    block = here.sequence
    columns = np.stack((here.holder, there.holder, here.place, there.place))[:, block]
    first = np.flatnonzero((np.diff(columns, prepend=-2) != [[0], [0], [1], [1]]).any(axis=0))
    source, destination, at, to = columns[:, first]
    count = np.diff(np.append(first, len(block)))
    return transfers(
        turn[block[first]], source, destination, (here.buffer, base[0] + at), (there.buffer, base[1] + to), count
    )
