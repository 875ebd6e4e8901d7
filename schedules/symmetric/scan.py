"""Scans and exscans: along a chain, by recursive doubling, and by doubling first inside and then between runs of ranks.

In a scan, rank r gets the combination of the vectors of ranks 0 to r; in an exscan it gets that of ranks 0 to r - 1,
and rank 0 gets nothing. Only adjacent ranges of ranks are combined, so all of these algorithms keep rank order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..phases import Phases, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import local_moves, transfers

__all__ = ["scan_chain", "scan_doubling", "scan_leaders"]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]
Place = tuple[ArrayLike, ArrayLike]  # buffer and first block


def scan_chain(size: int, *, inclusive: bool = True, blocks: int = 1) -> Schedule:
    """A scan or exscan in which each rank adds its vector to the received one and sends the result on, by blocks.

    This is the linear scan of MPI libraries, pipelined. Messages: (p - 1) b of one block, in p - 2 + b steps (twice as
    many for an exscan). It is fast for long vectors on few ranks, because no rank sends its vector twice.

    :param size: number of ranks, p.
    :param inclusive: whether it is a scan; else an exscan.
    :param blocks: number of blocks into which the vector is divided, b.
    """
    rank, block = np.arange(1, size)[:, None], np.arange(blocks)
    turn = rank - 1 + block
    if inclusive:
        moved = transfers(turn, rank - 1, rank, (OUTPUT, block), (OUTPUT, block), 1, REDUCE)
        phases = sequence(local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), blocks), moved)
        return _schedule(size, inclusive, "chain", phases, blocks)
    # Inner ranks send from their scratch, rank 0 from its input, and the last rank sends nothing.
    inner = np.arange(1, size - 1)
    source = np.where(rank == 1, INPUT, SCRATCH)
    moved = transfers(2 * turn, rank - 1, rank, (source, block), (OUTPUT, block), 1)
    adds = _combined(2 * turn[:-1] + 1, inner[:, None], (OUTPUT, block), (SCRATCH, block), 1)
    own = local_moves(0, inner, (INPUT, 0), (SCRATCH, 0), blocks)
    return _schedule(size, inclusive, "chain", sequence(own, np.concatenate((moved, adds))), blocks)


def scan_doubling(size: int, *, inclusive: bool = True, blocks: int = 1) -> Schedule:
    """A scan or exscan in which rank r adds in step k the partial sum of rank r - 2^k.

    W. D. Hillis and G. L. Steele, Data parallel algorithms, 1986; for any p. Messages:
    p ceil(log2 p) - 2^ceil(log2 p) + 1 of the whole vector. It is fast for short vectors on one switch, because it has
    the fewest start-ups.

    :param size: number of ranks, p.
    :param inclusive: whether it is a scan; else an exscan.
    :param blocks: number of blocks of the vector; they travel together.
    """
    return scan_leaders(size, (), inclusive=inclusive, blocks=blocks)


def scan_leaders(size: int, clusters: Sequence[ArrayLike] = (), *, inclusive: bool = True, blocks: int = 1) -> Schedule:
    """A scan or exscan by doubling inside runs of near ranks, then between runs; the prefix of each run is then added.

    Our own algorithm, after the leaders of Subramoni 2013, section 3. A run is a range of consecutive ranks in one
    cluster, because prefixes can be summed over consecutive ranks only. After the scan of a run, its last rank has the
    run's sum, and is its leader in the scan between runs. Messages: those of a doubling inside each run and between the
    leaders of each level, and one to each rank with ranks before its run. Only leaders send across the border of a
    cluster. It is fast if each host has several consecutive ranks and links between hosts are slower.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, any numbers; if empty, all are one run.
    :param inclusive: whether it is a scan; else an exscan.
    :param blocks: number of blocks of the vector; they travel together.
    :raises ValueError: if a cluster lies in two clusters of the level above.
    """
    layers = _layers(clusters, size)
    prefix = (SCRATCH, blocks)  # the second vector of the scratch, because the first one is for received vectors
    totals: list[Place] = [(OUTPUT, 0) if inclusive else (SCRATCH, 2 * blocks)]
    befores: list[Place] = []  # places of the sums before each member, at all levels except the innermost
    parts = [local_moves(0, np.arange(size), (INPUT, 0), totals[0], blocks)]
    for depth, layer in enumerate(layers):
        if depth:
            totals.append((SCRATCH, (2 + 2 * depth) * blocks))
            befores.append((SCRATCH, (3 + 2 * depth) * blocks))
            parts.append(local_moves(0, layer.members, totals[depth - 1], totals[depth], blocks))
        before = befores[-1] if depth else None if inclusive else (OUTPUT, 0)
        parts.append(_doubled(layer, totals[depth], before, blocks))
    for layer, before in reversed(list(zip(layers[1:], befores, strict=True))):
        later = layer.place > 0
        parts.append(_spread(layer, prefix, blocks))
        parts.append(_combined(0, layer.members[later & layer.behind], before, prefix, blocks))
        parts.append(local_moves(0, layer.members[later & ~layer.behind], before, prefix, blocks))
    inner = layers[0]
    adds = inner.behind & (inclusive | (inner.place > 0))
    parts.append(_spread(inner, prefix, blocks))
    parts.append(_combined(0, inner.members[adds], prefix, (OUTPUT, 0), blocks))
    parts.append(local_moves(0, inner.members[inner.behind & ~adds], prefix, (OUTPUT, 0), blocks))
    name = "leaders" if len(layers) > 1 else "recursive doubling"
    return _schedule(size, inclusive, name, sequence(*parts), blocks)


@dataclass(frozen=True, eq=False)
class _Layer:
    """The runs of one level, and the ranks that take part in their scans.

    :param members: all ranks, or the leaders of the runs one level inside, ascending, shape (members,).
    :param place: place of each member in its run, from 0, shape (members,).
    :param count: number of members of each member's run, shape (members,).
    :param behind: whether there are ranks before each member's run, shape (members,).
    """

    members: Integers
    place: Integers
    count: Integers
    behind: NDArray[np.bool_]


def _layers(clusters: Sequence[ArrayLike], size: int) -> list[_Layer]:
    """The levels of runs, innermost first; the last is a single run. Levels without messages are left out."""
    runs = [np.zeros(size, dtype=np.int64)]
    for label in map(np.asarray, clusters):
        begins = np.append(True, label[1:] != label[:-1])
        if (np.diff(runs[-1]) > 0)[~begins[1:]].any():
            raise ValueError("expecting nested clusters, got a cluster in two clusters of the level above")
        runs.append(np.cumsum(begins) - 1)
    members = np.arange(size)
    layers: list[_Layer] = []
    for run in reversed(runs):
        _, first, inverse, count = np.unique(run[members], return_index=True, return_inverse=True, return_counts=True)
        if count.max(initial=0) > 1 or not (layers or run.any()):
            layers.append(_Layer(members, np.arange(len(members)) - first[inverse], count[inverse], run[members] > 0))
        members = members[first + count - 1]
    return layers


def _doubled(layer: _Layer, total: Place, before: Place | None, blocks: int) -> Rows:
    """The rows of a scan inside each run by doubling.

    A received vector waits in the first blocks of the scratch until the receiver has sent its own sum.

    :param layer: the runs.
    :param total: buffer and first block of each member's sum, which ends as the sum of the members up to itself.
    :param before: buffer and first block for the sum of the members before each member; None if it is not needed.
    :param blocks: number of blocks of the vector.
    """
    parts = [np.empty((0, 9), dtype=np.int64)]
    for step in range(int(layer.count.max(initial=1) - 1).bit_length()):
        to = np.flatnonzero(layer.place >= 1 << step)
        source, target = layer.members[to - (1 << step)], layer.members[to]
        parts.append(transfers(2 * step, source, target, total, (SCRATCH, 0), blocks))
        parts.append(_combined(2 * step + 1, target, (SCRATCH, 0), total, blocks))
        if before is not None:
            put = local_moves if step == 0 else _combined
            parts.append(put(2 * step + 1, target, (SCRATCH, 0), before, blocks))
    return np.concatenate(parts)


def _spread(layer: _Layer, prefix: Place, blocks: int) -> Rows:
    """The rows that broadcast the sum of all ranks before a run from its leader to its members, by a binomial tree."""
    parts = [np.empty((0, 9), dtype=np.int64)]
    from_end = layer.count - 1 - layer.place
    for step in range(int(layer.count.max(initial=1) - 1).bit_length()):
        to = np.flatnonzero((from_end >> step == 1) & layer.behind)
        parts.append(transfers(step, layer.members[to + (1 << step)], layer.members[to], prefix, prefix, blocks))
    return np.concatenate(parts)


def _schedule(size: int, inclusive: bool, algorithm: str, phases: Phases, blocks: int) -> Schedule:
    return Schedule.from_phases("scan" if inclusive else "exscan", size, algorithm, phases, blocks=blocks)


def _combined(step: ArrayLike, rank: ArrayLike, source: Place, target: Place, blocks: int) -> Rows:
    rows = local_moves(step, rank, source, target, blocks)
    rows[:, 8] = REDUCE
    return rows
