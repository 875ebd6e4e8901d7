"""Alltoall and alltoallv with one message for each pair, and Bruck's with a logarithm of messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exchanges import starts
from ..phases import Given, Grid, sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import local_moves, transfers
from .pairs import Permutations, Shares, of_pairs

__all__ = [
    "alltoall_at_once",
    "alltoall_bruck",
    "alltoall_interleaved",
    "alltoall_pairwise",
    "alltoall_scatter_destination",
    "alltoall_shift",
    "spread",
]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


def alltoall_pairwise(size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1) -> Schedule:
    """In step k rank r exchanges with rank r XOR k (Thakur, Rabenseifner, Gropp 2005, section 4.3).

    Where p is no power of two there are still as many steps as the next one has, and ranks without partner idle, for
    the sake of exchanges in pairs; ``alltoall_shift`` takes p steps. Messages: p (p - 1); bytes: each block once.
    It wins for long messages on full bisection, and where p is a power of two.

    :param size: number of ranks, p.
    :param blocks: blocks of one message.
    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    """

    def partner(step: Integers, rank: Integers) -> Integers:
        other = rank ^ step
        return np.where(other < size, other, -1)

    steps = 1 << (size - 1).bit_length()
    pairs = Permutations(steps, share=Shares.of(size, blocks, counts), target=partner, origin=partner)
    return of_pairs("XOR pairwise", pairs, window)


def alltoall_shift(size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1) -> Schedule:
    """In step k rank r sends to rank r + k and receives from rank r - k, modulo p.

    As MPICH does where p is no power of two. Messages: p (p - 1) in p - 1 steps and one of local moves; bytes: each
    block once. It wins over XOR pairwise for long messages where p is no power of two. With ranks placed in blocks, all
    ranks of a host send to one or two other hosts at once.

    :param size: number of ranks, p.
    :param blocks: blocks of one message.
    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    """
    return of_pairs("shift", _shifts(Shares.of(size, blocks, counts)), window)


def alltoall_scatter_destination(
    size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 32
) -> Schedule:
    """All messages at once, each rank beginning with its neighbour, no more than a window in flight.

    The scattered-destination algorithm of MPICH, whose window is 32. Messages and bytes: as ``alltoall_shift``, of
    which it is the steps, overlapping. It wins for medium messages, where start-ups hide behind one another.

    :param size: number of ranks, p.
    :param blocks: blocks of one message.
    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: messages that a rank has in flight each way at most, 0 for no bound.
    """
    return of_pairs("scatter-destination", _shifts(Shares.of(size, blocks, counts)), window)


def alltoall_at_once(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """All messages in flight at once: no order can be wrong, and none waits for another.

    Where links share max-min fairly and blocks are of one size, this takes what the busiest link needs, the least
    time of any schedule. Each message has a full link on its route on which no other message is faster (Bertsekas and
    Gallager, "Data Networks", 1992, section 6.5.2), so with n messages on that link of capacity C its rate is C / n or
    more. As n only falls, the rate is never below the least C / n of all links at the start, so the message is
    complete when the busiest link is.
    It is the shift with no bound on its window. Real networks are not fair to thousands of messages, and real MPI
    libraries look through long queues: where that shows, ``even`` comes close with few in flight.

    Messages: p (p - 1), up to 2 (p - 1) of a rank in flight; bytes: each block once. It wins for long messages where
    routes are uneven, on networks that share fairly, as flow simulators do.

    :param size: number of ranks, p.
    :param blocks: blocks of one message.
    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    """
    return of_pairs("at once", _shifts(Shares.of(size, blocks, counts)), 0)


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
    :param blocks: blocks of one message.
    :param counts: blocks of each pair for alltoallv, shape (p, p); pairs without any have no message.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    """
    host = np.asarray(rank_host)
    size, ranks = len(host), np.argsort(host, kind="stable")
    place = np.argsort(ranks)
    factor = spread(size, int(np.unique(host, return_counts=True)[1].max(initial=1)))
    inverse = pow(factor, -1, size)

    def target(step: Integers, rank: Integers) -> Integers:
        met: Integers = ranks[(factor * place[rank] + step) % size]
        return met

    def origin(step: Integers, rank: Integers) -> Integers:
        met: Integers = ranks[inverse * (place[rank] - step) % size]
        return met

    pairs = Permutations(size, share=Shares.of(size, blocks, counts), target=target, origin=origin)
    return of_pairs("interleaved shift", pairs, window)


def _shifts(share: Shares) -> Permutations:
    """In step k rank r sends to rank r + k modulo p."""
    size = share.size
    return Permutations(
        size,
        share=share,
        target=lambda step, rank: (rank + step) % size,
        origin=lambda step, rank: (rank - step) % size,
    )


def spread(size: int, ranks: int) -> int:
    """The least number prime to ``size`` whose multiples 1 to ``ranks`` - 1 stay farthest from 0 modulo ``size``.

    A distance of ``ranks`` is enough. Cost: O(size ranks) time.
    """
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

    :param size: number of ranks, p.
    :param radix: k, at least 2; with p there is one message for each pair, all in one step.
    :param blocks: blocks of one message.
    :raises ValueError: for a radix below 2.
    """
    if radix < 2:
        raise ValueError(f"expecting radix of at least 2, got {radix}")
    ranks, unit = np.arange(size), 1
    own = local_moves(0, ranks, (INPUT, ranks * blocks), (OUTPUT, ranks * blocks), blocks)
    digits: list[Grid] = []
    while unit < size:
        digits.extend(_digit(size, radix, unit, blocks))
        unit *= radix
    phases = (0, Given.of(own)), *sequence(*digits)
    return Schedule.from_phases("alltoall", size, f"Bruck, radix {radix}", phases, blocks=blocks)


def _digit(size: int, radix: int, unit: int, blocks: int) -> tuple[Grid, Grid, Grid]:
    """All ranks pack, send and unpack what has a digit other than 0 at the place of value ``unit``.

    Blocks go in runs of ``unit`` distances that begin with a multiple of it, which has not moved before.
    """
    run = np.arange(unit, size, unit)
    digit = run // unit % radix
    by_digit = np.argsort(digit, kind="stable")[np.count_nonzero(digit == 0) :]
    run, digit = run[by_digit], digit[by_digit]
    length = np.minimum(unit, size - run)
    bounds = starts(length)
    at, total = bounds[:-1], bounds[-1]
    value, first = np.unique(digit, return_index=True)
    begin, count = at[first], np.diff(np.append(at[first], total))

    # A run's distances ascend and its slots descend, so what has not moved comes last.
    def pack(step: Integers, rank: Integers) -> Rows:
        ranks = rank[:, None]
        old, shift, moved = _unrolled(ranks - run - length + 1, length - 1, size)
        fresh = local_moves(0, ranks, (INPUT, (ranks + run) % size), (SCRATCH, at + length - 1), 1)
        return _of_blocks(np.concatenate((fresh, local_moves(0, ranks, (OUTPUT, old), (SCRATCH, at + shift), moved))))

    def send(step: Integers, rank: Integers) -> Rows:
        ranks = rank[:, None]
        there = (ranks + value * unit) % size
        return _of_blocks(transfers(0, ranks, there, (SCRATCH, begin), (SCRATCH, total + begin), count))

    def unpack(step: Integers, rank: Integers) -> Rows:
        ranks = rank[:, None]
        new, shift, arrived = _unrolled(ranks - run - length + 1, length, size)
        return _of_blocks(local_moves(0, ranks, (SCRATCH, total + at + shift), (OUTPUT, new), arrived))

    def _of_blocks(rows: Rows) -> Rows:
        rows[:, [4, 6, 7]] *= blocks
        return rows

    def alone(rank: int) -> Integers:
        return np.array([rank])

    def ends(rank: int) -> Integers:
        return np.unique(np.append(rank, rank - value * unit) % size)

    return (
        Grid(1, members=size, make=pack, near=alone, local=True),
        Grid(1, members=size, make=send, near=ends),
        Grid(1, members=size, make=unpack, near=alone, local=True),
    )


def _unrolled(begin: Integers, count: Integers, size: int) -> tuple[Integers, Integers, Integers]:
    """Ranges modulo ``size`` as two plain ones each: begin, how far behind the range's begin, blocks."""
    begin = begin % size
    head = np.minimum(count, size - begin)
    zero = np.zeros_like(begin)
    return np.stack((begin, zero)), np.stack((zero, head)), np.stack((head, count - head))
