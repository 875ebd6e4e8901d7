"""Alltoall and alltoallv with one message for each pair, and Bruck's with a logarithm of messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..symmetric.exchanges import sequence, starts
from ..transfers import local_moves, transfers

__all__ = [
    "alltoall_at_once",
    "alltoall_bruck",
    "alltoall_interleaved",
    "alltoall_pairwise",
    "alltoall_scatter_destination",
    "alltoall_shift",
    "of_pairs",
    "spread",
]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


def alltoall_pairwise(size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1) -> Schedule:
    """In step k rank r exchanges with rank r XOR k (Thakur, Rabenseifner, Gropp 2005, section 4.3).

    Where p is no power of two there are still as many steps as the next one has, and ranks without partner idle, for
    the sake of exchanges in pairs; ``alltoall_shift`` takes p steps. Messages: p (p - 1); bytes: each block once.
    It wins for long messages on full bisection, and where p is a power of two.

    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    """
    step, source = np.ix_(np.arange(1 << (size - 1).bit_length()), np.arange(size))
    destination = source ^ step
    there = destination < size
    step, source = (np.broadcast_to(axis, there.shape)[there] for axis in (step, source))
    return of_pairs(size, "XOR pairwise", (step, source, destination[there]), blocks, counts, window)


def alltoall_shift(size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1) -> Schedule:
    """In step k rank r sends to rank r + k and receives from rank r - k, modulo p.

    As MPICH does where p is no power of two. Messages: p (p - 1) in p - 1 steps and one of local moves; bytes: each
    block once. It wins over XOR pairwise for long messages where p is no power of two. With ranks placed in blocks, all
    ranks of a host send to one or two other hosts at once.

    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    """
    step, source = (axis.ravel() for axis in np.indices((size, size)))
    return of_pairs(size, "shift", (step, source, (source + step) % size), blocks, counts, window)


def alltoall_scatter_destination(
    size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 32
) -> Schedule:
    """All messages at once, each rank beginning with its neighbour, no more than a window in flight.

    The scattered-destination algorithm of MPICH, whose window is 32. Messages and bytes: as ``alltoall_shift``, of
    which it is the steps, overlapping. It wins for medium messages, where start-ups hide behind one another.

    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: messages that a rank has in flight each way at most, 0 for no bound.
    """
    step, source = (axis.ravel() for axis in np.indices((size, size)))
    return of_pairs(size, "scatter-destination", (step, source, (source + step) % size), blocks, counts, window)


def alltoall_at_once(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """All messages in flight at once: no order can be wrong, and none waits for another.

    Where links share max-min fairly and blocks are alike, this takes what the busiest link needs, which nothing
    undercuts. For each message has a full link on its route on which no other is faster (Bertsekas and Gallager, "Data
    Networks", 1992, section 6.5.2), so with n messages on that link of capacity C its rate is C / n or more; n only
    falls, so it always has the least C / n of all links at the start, and is through when that link is.
    It is the shift with no bound on its window. Real networks are not fair to thousands of messages, and real MPI
    libraries look through long queues: where that shows, ``even`` comes close with few in flight.

    Messages: p (p - 1), up to 2 (p - 1) of a rank in flight; bytes: each block once. It wins for long messages where
    routes are uneven, on networks that share fairly, as flow simulators do.

    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    """
    step, source = (axis.ravel() for axis in np.indices((size, size)))
    return of_pairs(size, "at once", (step, source, (source + step) % size), blocks, counts, 0)


def alltoall_interleaved(
    rank_host: ArrayLike, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1
) -> Schedule:
    """A shift in which the ranks of one host send to different hosts in every step, near and far mixed.

    Ours: position v of the ranks sorted by host sends to position a v + k modulo p in step k. With a prime to p every
    step is a permutation and every pair meets once; ``spread`` chooses a so that the targets of a host's ranks lie a
    host apart. With at most m ranks on a host and p at least m (m + 2), no two ranks of a host send to one host in a
    step, their own included; with fewer ranks the factor comes as near to that as it can. Messages: p (p - 1) in p
    steps, however uneven the hosts; bytes: each block once. It wins for long messages where the shift would load a few
    routes at a time.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    """
    host = np.asarray(rank_host)
    size, ranks = len(host), np.argsort(host, kind="stable")
    step, place = (axis.ravel() for axis in np.indices((size, size)))
    factor = spread(size, int(np.unique(host, return_counts=True)[1].max(initial=1)))
    rows = step, ranks[place], ranks[(factor * place + step) % size]
    return of_pairs(size, "interleaved shift", rows, blocks, counts, window)


def spread(size: int, ranks: int) -> int:
    """The least number prime to ``size`` whose multiples 1 to ``ranks`` - 1 keep farthest from 0 modulo ``size``, but
    farther than ``ranks`` is not asked for. Cost: O(size ranks) time."""
    factor = np.arange(1, size + 1)
    nearest = np.full(size, ranks)
    for multiple in range(1, ranks):
        rest = factor * multiple % size
        np.minimum(nearest, np.minimum(rest, size - rest), out=nearest)
    return int(factor[np.where(np.gcd(factor, size) == 1, nearest, -1).argmax()])


def alltoall_bruck(size: int, *, radix: int = 2, blocks: int = 1) -> Schedule:
    """Blocks travel by the digits of their distance, lowest first, all blocks of one digit in one message.

    Bruck and others 1997, the index algorithm, for any p; without its two rotations, after Träff, Rougier and Hunold
    2014: the block with distance j in all, wherever it has come to, lies in the output of its holder m at (m - j)
    modulo p, which at the end is its source. What a message carries is packed before and unpacked after it, so that it
    is one. The k - 1 messages of a digit go out at once.

    Messages: (k - 1) p ceil(log_k p) at most; bytes: each block once for each digit of its distance that is not 0,
    about (1 - 1/k) log_k p times. It wins for the smallest blocks; with a larger radix for somewhat larger ones.

    :param radix: k, at least 2; with p there is one message for each pair, all in one step.
    :raises ValueError: for a radix below 2.
    """
    if radix < 2:
        raise ValueError(f"expecting radix of at least 2, got {radix}")
    ranks, unit = np.arange(size), 1
    own, parts = local_moves(0, ranks, (INPUT, ranks), (OUTPUT, ranks), 1), []
    while unit < size:
        parts.append(_digit(size, radix, unit))
        unit *= radix
    rows = np.concatenate((own, sequence(*parts)))
    rows[:, [4, 6, 7]] *= blocks
    return Schedule.from_rows("alltoall", size, f"Bruck, radix {radix}", rows, blocks=blocks)


def _digit(size: int, radix: int, unit: int) -> Rows:
    """All ranks pack, send and unpack what has a digit other than 0 at the place of value ``unit``.

    Blocks go in runs of ``unit`` distances that begin with a multiple of it, which has not moved before.
    """
    ranks, run = np.arange(size)[:, None], np.arange(unit, size, unit)
    digit = run // unit % radix
    by_digit = np.argsort(digit, kind="stable")[np.count_nonzero(digit == 0) :]
    run, digit = run[by_digit], digit[by_digit]
    length = np.minimum(unit, size - run)
    bounds = starts(length)
    at, total, slot = bounds[:-1], bounds[-1], ranks - run - length + 1
    # A run's distances ascend and its slots descend, so what has not moved comes last.
    old, shift, moved = _unrolled(slot, length - 1, size)
    new, shift_back, arrived = _unrolled(slot, length, size)
    value, first = np.unique(digit, return_index=True)
    begin, count = at[first], np.diff(np.append(at[first], total))
    return np.concatenate(
        (
            local_moves(0, ranks, (INPUT, (ranks + run) % size), (SCRATCH, at + length - 1), 1),
            local_moves(0, ranks, (OUTPUT, old), (SCRATCH, at + shift), moved),
            transfers(1, ranks, (ranks + value * unit) % size, (SCRATCH, begin), (SCRATCH, total + begin), count),
            local_moves(2, ranks, (SCRATCH, total + at + shift_back), (OUTPUT, new), arrived),
        )
    )


def _unrolled(begin: Integers, count: Integers, size: int) -> tuple[Integers, Integers, Integers]:
    """Ranges modulo ``size`` as two plain ones each: begin, how far behind the range's begin, blocks."""
    begin = begin % size
    head = np.minimum(count, size - begin)
    zero = np.zeros_like(begin)
    return np.stack((begin, zero)), np.stack((zero, head)), np.stack((head, count - head))


def of_pairs(
    size: int,
    algorithm: str,
    pairs: tuple[Integers, Integers, Integers],
    blocks: int,
    counts: ArrayLike | None,
    window: int,
) -> Schedule:
    """One message for each pair, as an alltoall.

    :param pairs: step, source and destination of each message, each of shape (messages,).
    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    """
    step, source, destination = pairs
    share: ArrayLike = blocks
    given, here, there = None, blocks * destination, blocks * source
    if counts is not None:
        given = np.asarray(counts, dtype=np.int64)
        if given.shape != (size, size) or (given < 0).any():
            raise ValueError(f"expecting counts of shape ({size}, {size}), each at least 0")
        share = given[source, destination]
        here = (np.cumsum(given, axis=1) - given)[source, destination]
        there = (np.cumsum(given, axis=0) - given)[source, destination]
    rows = transfers(step, source, destination, (INPUT, here), (OUTPUT, there), share)
    return Schedule.from_rows(
        "alltoall", size, algorithm, rows, blocks=blocks, counts=given, independent=True, window=window
    )
