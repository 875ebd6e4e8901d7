"""Alltoall and alltoallv with one message per pair of ranks, and Bruck's algorithm with O(log p) messages per rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..exchanges import starts
from ..phases import Given, Grid, sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import Integers
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


def alltoall_pairwise(size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1) -> Schedule:
    """An alltoall in which ranks r and r XOR k exchange in step k (Thakur, Rabenseifner, Gropp 2005, section 4.3).

    If p is no power of two, it takes the steps of the next power of two, so that ranks always exchange in pairs, and
    ranks without a partner idle; ``alltoall_shift`` takes p steps. Messages: p (p - 1). Bytes: each block once. It is
    fast for long messages on networks of full bisection if p is a power of two.

    :param size: number of ranks, p.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    """

    def partner(step: Integers, rank: Integers) -> Integers:
        other = rank ^ step
        return np.where(other < size, other, -1)

    steps = 1 << (size - 1).bit_length()
    pairs = Permutations(steps, share=Shares.of(size, blocks, counts), target=partner, origin=partner)
    return of_pairs("XOR pairwise", pairs, window)


def alltoall_shift(size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1) -> Schedule:
    """An alltoall in which rank r sends to rank r + k and receives from rank r - k, modulo p, in step k.

    MPICH runs it if p is no power of two. Messages: p (p - 1) in p - 1 steps, after one step of local moves. Bytes:
    each block once. It is faster than XOR pairwise for long messages if p is no power of two. If ranks are placed in
    blocks, all ranks of a host send to one or two other hosts at once.

    :param size: number of ranks, p.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    """
    return of_pairs("shift", _shifts(Shares.of(size, blocks, counts)), window)


def alltoall_scatter_destination(
    size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 32
) -> Schedule:
    """An alltoall that sends all messages without waiting between steps, with a limited number in flight.

    This is MPICH's scattered-destination algorithm, whose window is 32: each rank begins with its neighbour. Messages
    and bytes: as ``alltoall_shift``, whose steps here overlap. It is fast for medium messages, because start-ups
    overlap.

    :param size: number of ranks, p.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    :param window: largest number of messages that a rank has in flight in each direction; 0 for no limit.
    """
    return of_pairs("scatter-destination", _shifts(Shares.of(size, blocks, counts)), window)


def alltoall_at_once(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """An alltoall with all messages in flight at once, so that none waits for another and no order can be wrong.

    If links share max-min fairly and all blocks have one size, it takes the time that the busiest link needs, the least
    of any schedule: each message has a full link on its route on which no other message is faster (Bertsekas and
    Gallager, "Data Networks", 1992, section 6.5.2), so with n messages on this link of capacity C its rate is at least
    C / n. As n only falls, the rate is never below the least C / n of all links at the start, so the message is
    complete when the busiest link is. It is the shift with an unlimited window. Real networks are not fair to thousands
    of messages, and real MPI libraries search long queues; if that costs time, ``even`` comes close with few messages
    in flight.

    Messages: p (p - 1), up to 2 (p - 1) in flight per rank. Bytes: each block once. It is fast for long messages and
    uneven routes on networks that share fairly, as flow simulators do.

    :param size: number of ranks, p.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    """
    return of_pairs("at once", _shifts(Shares.of(size, blocks, counts)), 0)


def alltoall_interleaved(
    rank_host: ArrayLike, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1
) -> Schedule:
    """A shift that mixes short and long routes, because in every step the ranks of one host send to different hosts.

    Our own algorithm: the rank at position v of the p ranks sorted by host sends to position a v + k modulo p in step
    k. If a is prime to p, every step is a permutation and every pair of ranks occurs once; ``spread`` chooses a so that
    the targets of a host's ranks lie a host apart. With at most m ranks per host and p >= m (m + 2), no two ranks of a
    host send to one host in a step, their own included; for smaller p the factor comes as close to that as possible.
    Messages: p (p - 1) in p steps, for any sizes of hosts. Bytes: each block once. It is fast for long messages if the
    shift would load few routes at a time.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
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
    """The pairs of a shift: in step k rank r sends to rank r + k modulo p."""
    size = share.size
    return Permutations(
        size,
        share=share,
        target=lambda step, rank: (rank + step) % size,
        origin=lambda step, rank: (rank - step) % size,
    )


def spread(size: int, ranks: int) -> int:
    """The number prime to ``size`` whose multiples by 1 to ``ranks`` - 1 are farthest from 0 modulo ``size``.

    Among equals it is the least. Distances above ``ranks`` count as ``ranks``, because they suffice. Cost: O(size
    ranks) time.
    """
    factor = np.arange(1, size + 1)
    nearest = np.full(size, ranks)
    for multiple in range(1, ranks):
        rest = factor * multiple % size
        np.minimum(nearest, np.minimum(rest, size - rest), out=nearest)
    return int(factor[np.where(np.gcd(factor, size) == 1, nearest, -1).argmax()])


def alltoall_bruck(size: int, *, radix: int = 2, blocks: int = 1) -> Schedule:
    """An alltoall in which blocks travel by the digits of their distance to base k, lowest first, packed by digit.

    Bruck and others 1997, the index algorithm, for any p; without its two rotations, after Träff, Rougier and Hunold
    2014: a block with total distance j that rank m holds lies in m's output at (m - j) modulo p, which is the block's
    source when it arrives. All blocks with the same digit are packed into one message before it and unpacked after it.
    The k - 1 messages of a digit's place are sent at once.

    Messages: at most (k - 1) p ceil(log_k p). Bytes: each block once for each non-zero digit of its distance, about
    (1 - 1/k) log_k p times. It is fast for the smallest blocks; with a larger radix for somewhat larger ones.

    :param size: number of ranks, p.
    :param radix: base k of the digits, at least 2; if it is p, each pair has one message, all in one step.
    :param blocks: number of blocks that each rank sends to each rank.
    :raises ValueError: if the radix is below 2.
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
    """Phases that pack, send and unpack all blocks whose distance has a non-zero digit at the place of value ``unit``.

    Blocks move in runs of ``unit`` distances that begin with a multiple of ``unit``; the first block of a run has not
    moved before.
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

    # Along a run distances ascend and slots descend, so the block that has not moved is the last slot.
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
    """Split ranges modulo ``size`` into two plain ranges each: begins, offsets from the range's begin, block counts."""
    begin = begin % size
    head = np.minimum(count, size - begin)
    zero = np.zeros_like(begin)
    return np.stack((begin, zero)), np.stack((zero, head)), np.stack((head, count - head))
