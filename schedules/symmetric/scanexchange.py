"""Scan and exscan by pairwise exchanges, as MPICH runs them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..phases import GridPhase, sequence
from ..schedule import COPY, INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from ..transfers import Rows, local_moves, transfers

__all__ = ["scan_exchange"]

Integers = NDArray[np.int64]


def scan_exchange(size: int, *, inclusive: bool = True, blocks: int = 1) -> Schedule:
    """A scan or exscan in which ranks r and r XOR 2^k exchange sums in step k; the higher rank adds them to its prefix.

    Each sum is that of the aligned group of 2^k ranks that contains the sender. Messages: p log2 p of the whole vector,
    in ceil(log2 p) steps; ranks without a partner wait. ``scan_doubling`` has the same number of steps and half the
    messages.

    :param size: number of ranks, p.
    :param inclusive: whether it is a scan; else an exscan.
    :param blocks: number of blocks of the vector; they travel together.
    """
    ranks, dimensions = np.arange(size), (size - 1).bit_length()

    def make(step: Integers, rank: Integers) -> Rows:
        partner = rank ^ (1 << step // 2)
        step, rank, partner = (column[partner < size] for column in (step, rank, partner))
        sends, adds, upper = step % 2 == 0, step % 2 == 1, rank > partner
        first = (not inclusive) & (rank & ((1 << step // 2) - 1) == 0)  # the rank is the first of its group
        prefix = adds & upper
        return np.concatenate(
            (
                transfers(step[sends], rank[sends], partner[sends], (SCRATCH, blocks), (SCRATCH, 0), blocks),
                _own(step[adds], rank[adds], (SCRATCH, blocks), blocks, np.full(adds.sum(), REDUCE)),
                _own(step[prefix], rank[prefix], (OUTPUT, 0), blocks, np.where(first[prefix], COPY, REDUCE)),
            )
        )

    def near(rank: int) -> Integers:
        some = np.append(rank, rank ^ (1 << np.arange(dimensions)))
        return np.sort(some[some < size])

    own = [local_moves(0, ranks, (INPUT, 0), (SCRATCH, blocks), blocks)]
    if inclusive:
        own.append(local_moves(0, ranks, (INPUT, 0), (OUTPUT, 0), blocks))
    exchange = GridPhase(2 * dimensions, members=size, make=make, near=near)
    phases = sequence(np.concatenate(own), exchange)
    collective = "scan" if inclusive else "exscan"
    return Schedule.from_phases(collective, size, "recursive exchange", phases, blocks=blocks)


def _own(step: Integers, rank: Integers, target: tuple[int, int], blocks: int, operation: Integers) -> Rows:
    """The rows that copy a received vector to a place, or combine it with the vector there."""
    return transfers(step, rank, rank, (SCRATCH, 0), target, blocks, operation)
