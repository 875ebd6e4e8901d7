"""The block that each rank receives in each round of a broadcast on a circulant graph, in as few rounds as possible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrivals", "receive_blocks", "skips"]

Integers = NDArray[np.int64]


def skips(size: int) -> list[int]:
    """The q + 1 skips of the circulant graph of p ranks, q = ceil(log2 p): p halved q times, rounded up; ascending."""
    halves = [size]
    while halves[-1] > 1:
        halves.append(-(-halves[-1] // 2))
    return halves[::-1]


def receive_blocks(size: int) -> Integers:
    """The block that each rank receives in each of the q = ceil(log2 p) rounds of a phase, shape (p, q), for root 0.

    Blocks are numbered from phase to phase: if e is the entry of rank r for round k, the rank receives block q j + e
    from rank r - skip[k] (see `skips`) in this round of phase j. Each rank receives one block of the phase, its base
    block, and q - 1 different blocks of earlier phases, whose entries are negative. It has received each block before
    it sends it.

    J. L. Träff, Optimal Broadcast Schedules in Logarithmic Time with Applications to Broadcast, All-Broadcast,
    Reduction and All-Reduction, arXiv:2407.18004: the search for the receive side. The paper's separate search for the
    send side is not needed if all ranks' entries are known: a rank sends the block of its receiver's entry.

    Cost: O(p log^2 p) time at most, O(p log p) memory.
    """
    skip = skips(size)
    return np.array([_entries(rank, skip) for rank in range(size)], dtype=np.int64).reshape(size, len(skip) - 1)


def _base_block(rank: int, skip: list[int]) -> int:
    """The index of the last skip on the greedy path from the root to a rank; ``len(skip) - 1`` for the root itself."""
    for index in range(len(skip) - 2, -1, -1):
        if rank == skip[index]:
            return index
        if rank > skip[index]:
            rank -= skip[index]
    return len(skip) - 1


def _entries(rank: int, skip: list[int]) -> list[int]:
    """The row of one rank in ``receive_blocks``.

    This is the paper's depth-first search for a path of skips from the root for each round. In round k the path must
    end at or before ``rank - skip[k]``, from which the rank receives, and its last skip gives the block. Larger skips
    are tried first, and no block is taken twice.
    """
    rounds, base, target = len(skip) - 1, _base_block(rank, skip), rank + skip[-1]
    used = [block == base for block in range(rounds + 1)]
    found: list[int] = []
    nearest = 2 * skip[-1]

    def search(reached: int, largest: int) -> None:
        nonlocal nearest
        for block in range(largest, -1, -1):
            step = reached + skip[block]
            if used[block] or len(found) == rounds or step > target - skip[len(found)] or step >= nearest:
                continue
            if step <= target - skip[len(found) + 1]:
                search(step, block)
            if len(found) == rounds or reached > target - skip[len(found) + 1]:
                return
            nearest = step
            used[block] = True
            found.append(block)

    search(0, rounds)
    return [base if block == rounds else block - rounds for block in found]


def arrivals(size: int, blocks: int) -> tuple[Integers, Integers, Integers, Integers]:
    """The round, sender, receiver and block of all arrivals of a broadcast from rank 0; each rank gets each block once.

    Rounds: b - 1 + ceil(log2 p), the least possible if a rank sends and receives one block per round.

    :param size: number of ranks, p.
    :param blocks: number of blocks, b.
    """
    skip = np.array(skips(size))
    phase = len(skip) - 1
    if not phase:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none, none
    idle = -(blocks - 1) % phase  # rounds left out at the start of the first phase, so that the last one is complete
    rounds = np.arange(idle, blocks - 1 + phase + idle)
    number = receive_blocks(size)[1:, rounds % phase].T + (rounds // phase * phase - idle)[:, None]
    at, behind = np.nonzero(number >= 0)
    block, receiver = np.minimum(number[at, behind], blocks - 1), behind + 1
    # Beyond the last block the paper sends the last one again; only its first arrival is kept.
    _, first = np.unique(receiver * blocks + block, return_index=True)
    at, block, receiver = at[first], block[first], receiver[first]
    return at, (receiver - skip[rounds[at] % phase]) % size, receiver, block
