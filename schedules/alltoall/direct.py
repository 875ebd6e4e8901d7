"""Alltoall and alltoallv with one message per pair of ranks, and Bruck's algorithm with O(log p) messages per rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..exchanges import starts
from ..phases import Given, GridPhase, sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import Integers
from .pairs import Permutations, Shares, of_pairs

__all__ = [
    "alltoall_at_once",
    "alltoall_bruck",
    "alltoall_pairwise",
    "alltoall_scatter_destination",
    "alltoall_shift",
]


def alltoall_pairwise(size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 1) -> Schedule:
    """An alltoall in which ranks r and r XOR k exchange in step k (Thakur, Rabenseifner, Gropp 2005, section 4.3).

    If p is no power of two, it takes the steps of the next power of two, so that ranks always exchange in pairs, and
    ranks without a partner idle; ``alltoall_shift`` takes p steps. Messages: p (p - 1). Bytes: each block is sent once.
    It is fast for long messages on networks of full bisection if p is a power of two.

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
    each block once. It is faster than `alltoall_pairwise` for long messages if p is no power of two. If the ranks of
    each host are consecutive, all of them send to the same one or two hosts in a step.

    :param size: number of ranks, p.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    """
    return of_pairs("shift", _shifts(Shares.of(size, blocks, counts)), window)


def alltoall_scatter_destination(
    size: int, *, blocks: int = 1, counts: ArrayLike | None = None, window: int = 32
) -> Schedule:
    """An alltoall in which each rank sends in the order of `alltoall_shift`, with many messages in flight.

    This is MPICH's scattered-destination algorithm, whose window is 32. Messages and bytes: as `alltoall_shift`. It is
    fast for medium messages, because the start-ups of messages in flight overlap.

    :param size: number of ranks, p.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    :param window: largest number of messages that a rank has in flight in each direction; 0 for no limit.
    """
    return of_pairs("scatter-destination", _shifts(Shares.of(size, blocks, counts)), window)


def alltoall_at_once(size: int, *, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """An alltoall with all messages in flight at once, so that no message waits for another.

    If links share max-min fairly and all blocks have one size, it takes the time that the busiest link needs, the least
    of any schedule: each message has a full link on its route on which no other message is faster (Bertsekas and
    Gallager, "Data Networks", 1992, section 6.5.2), so with n messages on this link of capacity C its rate is at least
    C / n. As n only falls, the rate is never below the least C / n of all links at the start, so the message is
    complete when the busiest link is. The schedule is that of `alltoall_shift` with an unlimited window. Real networks
    are not fair to thousands of messages, and real MPI libraries search long queues; if that costs time, `even.even`
    comes close with few messages in flight.

    Messages: p (p - 1), up to 2 (p - 1) in flight per rank. Bytes: each block once. It is fast for long messages and
    uneven routes on networks that share fairly, as flow simulators do.

    :param size: number of ranks, p.
    :param blocks: number of blocks that each rank sends to each rank.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv; pairs with 0 blocks have no message.
    """
    return of_pairs("at once", _shifts(Shares.of(size, blocks, counts)), 0)


def _shifts(share: Shares) -> Permutations:
    """The messages of `alltoall_shift`: in step k rank r sends to rank r + k modulo p.

    :param share: number of blocks of each pair of ranks.
    """
    size = share.size
    return Permutations(
        size,
        share=share,
        target=lambda step, rank: (rank + step) % size,
        origin=lambda step, rank: (rank - step) % size,
    )


def alltoall_bruck(size: int, *, radix: int = 2, blocks: int = 1) -> Schedule:
    """An alltoall by Bruck's algorithm, which forwards a block once per non-zero digit of its distance in base k.

    The distance of a block is its destination minus its source, modulo p. In phase i = 0, 1, ... each rank sends all
    blocks in whose distance the digit of value k^i is d, packed into one message, to the rank d k^i ahead; the k - 1
    messages of a phase are sent at once. Bruck and others 1997, the index algorithm, for any p; without its two
    rotations, after Träff, Rougier and Hunold 2014: rank m stores a block of distance j in its output at (m - j) modulo
    p, which is the block's source when it arrives.

    Messages: at most (k - 1) p ceil(log_k p). Bytes: each block is sent about (1 - 1/k) log_k p times. It is fast for
    the smallest blocks; with a larger radix for somewhat larger blocks.

    :param size: number of ranks, p.
    :param radix: base k of the digits, at least 2; if it is p, each pair has one message, all in one step.
    :param blocks: number of blocks that each rank sends to each rank.
    :raises ValueError: if the radix is below 2.
    """
    if radix < 2:
        raise ValueError(f"expecting radix of at least 2, got {radix}")
    ranks, unit = np.arange(size), 1
    own = local_moves(0, ranks, (INPUT, ranks * blocks), (OUTPUT, ranks * blocks), blocks)
    digits: list[GridPhase] = []
    while unit < size:
        digits.extend(_digit(size, radix, unit, blocks))
        unit *= radix
    phases = (0, Given.of(own)), *sequence(*digits)
    return Schedule.from_phases("alltoall", size, f"Bruck, radix {radix}", phases, blocks=blocks)


def _digit(size: int, radix: int, unit: int, blocks: int) -> tuple[GridPhase, GridPhase, GridPhase]:
    """Phases that pack, send and unpack all blocks whose distance has a non-zero digit at the place of value ``unit``.

    Blocks move in runs of ``unit`` distances that begin with a multiple of ``unit``; the first block of a run has not
    moved before.

    :param size: number of ranks, p.
    :param radix: base of the digits.
    :param unit: value of the digit's place, a power of ``radix``.
    :param blocks: number of blocks that each rank sends to each rank.
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

    # Along a run distances ascend and positions in the output descend. The first block of a run has not moved, so it
    # comes from the input, and it has the highest position.
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
        GridPhase(1, members=size, make=pack, near=alone, local=True),
        GridPhase(1, members=size, make=send, near=ends),
        GridPhase(1, members=size, make=unpack, near=alone, local=True),
    )


def _unrolled(begin: Integers, count: Integers, size: int) -> tuple[Integers, Integers, Integers]:
    """Split each range modulo ``size`` at ``size`` into two plain ranges, of which the second may be empty.

    Return the begin of each plain range, its offset in the given range, and its length, three arrays with a row for the
    first plain ranges and a row for the second ones.

    :param begin: first element of each range.
    :param count: length of each range, at most ``size``.
    :param size: modulus.
    """
    begin = begin % size
    head = np.minimum(count, size - begin)
    zero = np.zeros_like(begin)
    return np.stack((begin, zero)), np.stack((zero, head)), np.stack((head, count - head))
