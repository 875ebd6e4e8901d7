"""Schedules written by hand with plain loops, one for each textbook algorithm of a collective."""

from collections.abc import Callable, Iterator
from itertools import accumulate

import numpy as np

from topompi.schedules.schedule import COPY, INPUT, OUTPUT, REDUCE, ROOTED, SCRATCH, Schedule

__all__ = ["IN_RANK_ORDER", "UNIFORM", "WRITERS", "make", "power_of_two"]

Row = tuple[int, ...]
Rows = Iterator[Row]


class Shape:
    """What a writer needs: size, root, blocks of a message, each rank's share and where it begins."""

    def __init__(self, size: int, root: int, blocks: int, counts: list) -> None:
        self.p, self.root, self.b, self.n = size, root, blocks, counts
        if not counts or not isinstance(counts[0], list):
            self.at = [0, *accumulate(counts)]

    def ranks(self, low: int, high: int) -> tuple[int, int]:
        """First block of, and number of blocks of, the ranks low..high - 1."""
        return self.at[low], self.at[high] - self.at[low]


def linear_bcast(s: Shape) -> Rows:
    for r in range(s.p):
        yield 0, s.root, r, INPUT, 0, OUTPUT, 0, s.b, COPY


def binomial_bcast(s: Shape) -> Rows:
    yield 0, s.root, s.root, INPUT, 0, OUTPUT, 0, s.b, COPY
    reach, step = 1, 1
    while reach < s.p:
        for v in range(min(reach, s.p - reach)):
            yield step, (v + s.root) % s.p, (v + reach + s.root) % s.p, OUTPUT, 0, OUTPUT, 0, s.b, COPY
        reach, step = 2 * reach, step + 1


def chain_bcast(s: Shape) -> Rows:
    yield 0, s.root, s.root, INPUT, 0, OUTPUT, 0, s.b, COPY
    for hop in range(s.p - 1):
        for block in range(s.b):
            v = (s.root + hop) % s.p
            yield 1 + hop + block, v, (v + 1) % s.p, OUTPUT, block, OUTPUT, block, 1, COPY


def linear_gather(s: Shape) -> Rows:
    for r in range(s.p):
        yield 0, r, s.root, INPUT, 0, OUTPUT, s.at[r], s.n[r], COPY


def binomial_gather(s: Shape) -> Rows:
    for r in range(s.p):
        yield 0, r, r, INPUT, 0, SCRATCH, s.at[r], s.n[r], COPY
    reach, step = 1, 1
    while reach < s.p:
        for r in range(0, s.p - reach, 2 * reach):
            first, count = s.ranks(r + reach, min(r + 2 * reach, s.p))
            yield step, r + reach, r, SCRATCH, first, SCRATCH, first, count, COPY
        reach, step = 2 * reach, step + 1
    yield step, 0, s.root, SCRATCH, 0, OUTPUT, 0, s.at[s.p], COPY


def linear_scatter(s: Shape) -> Rows:
    for r in range(s.p):
        yield r, s.root, r, INPUT, s.at[r], OUTPUT, 0, s.n[r], COPY


def binomial_scatter(s: Shape) -> Rows:
    yield 0, s.root, 0, INPUT, 0, SCRATCH, 0, s.at[s.p], COPY
    reach, step = power_of_two(s.p), 1
    while reach:
        for r in range(0, s.p - reach, 2 * reach):
            first, count = s.ranks(r + reach, min(r + 2 * reach, s.p))
            yield step, r, r + reach, SCRATCH, first, SCRATCH, first, count, COPY
        reach, step = reach // 2, step + 1
    for r in range(s.p):
        yield step, r, r, SCRATCH, s.at[r], OUTPUT, 0, s.n[r], COPY


def linear_allgather(s: Shape) -> Rows:
    for r in range(s.p):
        for d in range(s.p):
            yield 0, r, d, INPUT, 0, OUTPUT, s.at[r], s.n[r], COPY


def ring_allgather(s: Shape) -> Rows:
    for r in range(s.p):
        yield 0, r, r, INPUT, 0, OUTPUT, s.at[r], s.n[r], COPY
        for k in range(1, s.p):
            c = (r - k + 1) % s.p
            yield k, r, (r + 1) % s.p, OUTPUT, s.at[c], OUTPUT, s.at[c], s.n[c], COPY


def doubling_allgather(s: Shape) -> Rows:
    """Recursive doubling for the largest power of two; the ranks beyond hand theirs over first, receive all last."""
    half, step = power_of_two(s.p + 1), 1
    for r in range(s.p):
        yield 0, r, r, INPUT, 0, OUTPUT, s.at[r], s.n[r], COPY
        if r >= half:
            yield 1, r, r - half, INPUT, 0, OUTPUT, s.at[r], s.n[r], COPY
    while 1 << (step - 1) < half:
        for r in range(half):
            near = r >> (step - 1) << (step - 1)
            for base in (0, half):
                first, count = s.ranks(min(base + near, s.p), min(base + near + (1 << (step - 1)), s.p))
                yield step + 1, r, r ^ (1 << (step - 1)), OUTPUT, first, OUTPUT, first, count, COPY
        step += 1
    for r in range(half, s.p):
        for first, count in (s.ranks(0, r), s.ranks(r + 1, s.p)):
            yield step + 1, r - half, r, OUTPUT, first, OUTPUT, first, count, COPY


def linear_reduce(s: Shape) -> Rows:
    for r in range(s.p):
        yield r, r, s.root, INPUT, 0, OUTPUT, 0, s.b, REDUCE if r else COPY


def fan_reduce(s: Shape) -> Rows:
    yield 0, s.root, s.root, INPUT, 0, OUTPUT, 0, s.b, COPY
    for r in range(s.p):
        if r != s.root:
            yield 1, r, s.root, INPUT, 0, OUTPUT, 0, s.b, REDUCE


def binomial_reduce(s: Shape) -> Rows:
    for r in range(s.p):
        yield 0, r, r, INPUT, 0, SCRATCH, 0, s.b, COPY
    reach, step = 1, 1
    while reach < s.p:
        for r in range(0, s.p - reach, 2 * reach):
            yield step, r + reach, r, SCRATCH, 0, SCRATCH, 0, s.b, REDUCE
        reach, step = 2 * reach, step + 1
    yield step, 0, s.root, SCRATCH, 0, OUTPUT, 0, s.b, COPY


def linear_reduce_scatter(s: Shape) -> Rows:
    for d in range(s.p):
        for r in range(s.p):
            yield r, r, d, INPUT, s.at[d], OUTPUT, 0, s.n[d], REDUCE if r else COPY


def ring_reduce_scatter(s: Shape) -> Rows:
    for r in range(s.p):
        yield 0, r, r, INPUT, 0, SCRATCH, 0, s.at[s.p], COPY
        for k in range(1, s.p):
            c = (r - k) % s.p
            yield k, r, (r + 1) % s.p, SCRATCH, s.at[c], SCRATCH, s.at[c], s.n[c], REDUCE
        yield s.p, r, r, SCRATCH, s.at[r], OUTPUT, 0, s.n[r], COPY


def linear_allreduce(s: Shape) -> Rows:
    for d in range(s.p):
        for r in range(s.p):
            yield r, r, d, INPUT, 0, OUTPUT, 0, s.b, REDUCE if r else COPY


def backward_allreduce(s: Shape) -> Rows:
    """As the linear one, from the last rank to the first, each joining in front."""
    for d in range(s.p):
        for r in range(s.p):
            yield s.p - 1 - r, r, d, INPUT, 0, OUTPUT, 0, s.b, REDUCE if r < s.p - 1 else COPY


def doubling_allreduce(s: Shape) -> Rows:
    """Recursive doubling for the largest power of two, by way of a second buffer; the ranks beyond fold in first."""
    half, step = power_of_two(s.p + 1), 0
    extra = s.p - half
    for r in range(s.p):
        yield 0, r, r, INPUT, 0, OUTPUT, 0, s.b, COPY
    folded = [2 * r if r < extra else r + extra for r in range(half)]
    for r in range(extra):
        yield 1, 2 * r + 1, 2 * r, OUTPUT, 0, OUTPUT, 0, s.b, REDUCE
    while 1 << step < half:
        for v in range(half):
            yield 2 * step + 2, folded[v], folded[v ^ (1 << step)], OUTPUT, 0, SCRATCH, step * s.b, s.b, COPY
            yield 2 * step + 3, folded[v], folded[v], SCRATCH, step * s.b, OUTPUT, 0, s.b, REDUCE
        step += 1
    for r in range(extra):
        yield 2 * step + 2, 2 * r, 2 * r + 1, OUTPUT, 0, OUTPUT, 0, s.b, COPY


def _pairs(s: Shape) -> dict[tuple[int, int], tuple[int, int, int]]:
    """First input block, first output block and number of blocks of each pair."""
    n = np.array(s.n).reshape(s.p, s.p)
    return {(i, j): (int(n[i, :j].sum()), int(n[:i, j].sum()), int(n[i, j])) for i in range(s.p) for j in range(s.p)}


def shift_alltoall(s: Shape) -> Rows:
    for (i, j), (first, last, count) in _pairs(s).items():
        yield (j - i) % s.p, i, j, INPUT, first, OUTPUT, last, count, COPY


def xor_alltoall(s: Shape) -> Rows:
    for (i, j), (first, last, count) in _pairs(s).items():
        yield i ^ j, i, j, INPUT, first, OUTPUT, last, count, COPY


def bruck_alltoall(s: Shape) -> Rows:
    """Bruck et al. 1997 with radix 2, received beside what is sent and moved over in a step of its own."""
    p, b, step = s.p, s.b, 0
    for r in range(p):
        for j in range(p):
            yield 0, r, r, INPUT, (r + j) % p * b, SCRATCH, j * b, b, COPY
    while 1 << step < p:
        for r in range(p):
            for j in range(p):
                if j >> step & 1:
                    d = (r + (1 << step)) % p
                    yield 2 * step + 1, r, d, SCRATCH, j * b, SCRATCH, (p + j) * b, b, COPY
                    yield 2 * step + 2, r, r, SCRATCH, (p + j) * b, SCRATCH, j * b, b, COPY
        step += 1
    for r in range(p):
        for j in range(p):
            yield 2 * step + 1, r, r, SCRATCH, (r - j) % p * b, OUTPUT, j * b, b, COPY


def power_of_two(p: int) -> int:
    """The largest power of two below p, 0 for p = 1."""
    return 1 << (p - 1).bit_length() - 1 if p > 1 else 0


WRITERS: dict[str, Callable[[Shape], Rows]] = {
    f"{writer.__name__}": writer
    for writer in (
        linear_bcast, binomial_bcast, chain_bcast, linear_gather, binomial_gather, linear_scatter, binomial_scatter,
        linear_allgather, ring_allgather, doubling_allgather, linear_reduce, fan_reduce, binomial_reduce,
        linear_reduce_scatter, ring_reduce_scatter, linear_allreduce, backward_allreduce, doubling_allreduce,
        shift_alltoall, xor_alltoall, bruck_alltoall,
    )
}  # fmt: skip
IN_RANK_ORDER = (
    "linear_reduce",
    "binomial_reduce",
    "linear_reduce_scatter",
    "linear_allreduce",
    "backward_allreduce",
    "doubling_allreduce",
)
INDEPENDENT = ("linear_bcast", "linear_gather", "linear_scatter", "linear_allgather", "shift_alltoall", "xor_alltoall")
UNIFORM = ("bruck_alltoall",)


def make(
    name: str, size: int, root: int = 0, blocks: int = 1, counts: list | None = None, independent: bool | None = None
) -> Schedule:
    """The schedule of one writer; ``counts`` only where the collective has any."""
    collective = name.split("_", 1)[1]
    if collective in ("bcast", "reduce", "allreduce") or name in UNIFORM:
        counts = None
    shape = (size, size) if collective == "alltoall" else (size,)
    share = counts if counts is not None else np.full(shape, blocks).tolist()
    rows = list(WRITERS[name](Shape(size, root, blocks, share)))
    return Schedule.from_rows(
        collective,
        size,
        name,
        np.array(rows).reshape(-1, 9),
        root=root if collective in ROOTED else None,
        blocks=blocks,
        counts=None if counts is None else np.array(counts),
        independent=name in INDEPENDENT if independent is None else independent,
        window=2,
    )
