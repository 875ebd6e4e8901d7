"""The four communication patterns of the paper's section V-B as kernels; all that its text leaves open is ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from topompi.machine.interference.kernels import trace_of
from topompi.machine.interference.kernels.halo import Stencil4D
from topompi.machine.interference.kernels.kernel import Alltoalls, Burst, Kernel, Phase, pairs_within
from topompi.machine.interference.kernels.registry import balanced
from topompi.machine.interference.traces import Trace
from topompi.netsim import COMPUTE, SEND

__all__ = ["PATTERNS", "trace"]


@dataclass(frozen=True)
class UnstructuredMesh(Kernel):
    """Exchanges of a rank with about half of the 26 ranks around it in an open 3D grid, drawn once per job."""

    seed: int = 0
    share: float = 0.5  # probability that two ranks side by side, or at a common edge or corner, exchange

    name, title, message = "unstr-mesh", "unstructured near neighbours", "bytes of a message"
    dimensions = (3,)
    stencil = False

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return one phase, in which the messages of both directions of all pairs are sent at once."""
        place = np.stack(np.unravel_index(np.arange(self.ranks), self.grid), axis=1)
        offsets = np.array([one for one in np.ndindex(3, 3, 3) if one > (1, 1, 1)]) - 1  # half of the 26
        reached = place[:, None] + offsets
        there = ((reached >= 0) & (reached < self.grid)).all(axis=2)
        there &= np.random.default_rng(self.seed).random(there.shape) < self.share
        source = np.nonzero(there)[0]
        return (_both_ways(source, np.ravel_multi_index(tuple(reached[there].T), self.grid), nbytes),)


@dataclass(frozen=True)
class Pairs(Kernel):
    """Exchanges within random pairs of ranks, drawn once per job; a last single rank sends nothing."""

    seed: int = 0

    name, title, message = "pairs", "random pairs", "bytes of a message"
    dimensions = (3,)
    stencil = False

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return one phase, the messages of both directions."""
        order = np.random.default_rng(self.seed).permutation(self.ranks)
        half = self.ranks // 2
        return (_both_ways(order[:half], order[half : 2 * half], nbytes),)


@dataclass(frozen=True)
class SubAlltoall(Kernel):
    """Alltoalls in the lines of a 3D grid along its last dimension, then along its second.

    :param at_once: whether a rank sends all messages of both at once, instead of pairwise steps.
    """

    at_once: bool = False

    name, title, message = "sub-a2a", "sub-communicator alltoalls", "bytes that a rank has for one other"
    dimensions = (3,)
    stencil = False

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return two phases of alltoalls."""
        ranks = np.arange(self.ranks).reshape(self.grid)
        lines = (np.moveaxis(ranks, axis, -1).reshape(-1, self.grid[axis]) for axis in (2, 1))
        made = tuple(Alltoalls(f"axis {axis}", groups, nbytes) for axis, groups in zip((2, 1), lines, strict=True))
        if not self.at_once:
            return made
        source, target = np.concatenate([pairs_within(one.groups) for one in made], axis=1)
        return (Burst(source, target, np.full(len(source), nbytes), np.zeros(len(source), dtype=np.int64)),)


def _both_ways(source: np.ndarray, target: np.ndarray, nbytes: int) -> Burst:
    ends = np.concatenate((source, target)), np.concatenate((target, source))
    count = len(ends[0])
    return Burst(*ends, np.full(count, nbytes), np.zeros(count, dtype=np.int64))


PATTERNS: dict[str, Callable[[tuple[int, ...], int], Kernel]] = {
    "Unstr-mesh": lambda grid, seed: UnstructuredMesh(grid, seed=seed),
    "Stencil": lambda grid, _: Stencil4D(grid, periodic=True),
    "Sub-a2a": lambda grid, _: SubAlltoall(grid),
    "Sub-a2a at once": lambda grid, _: SubAlltoall(grid, at_once=True),
    "Pairs": lambda grid, seed: Pairs(grid, seed=seed),
}


def trace(pattern: str, ranks: int, seed: int, nbytes: int, *, share: str = "mean", burst: float = 0.0) -> Trace:
    """Make one iteration of a pattern on a grid as even as possible.

    :param pattern: key of ``PATTERNS``.
    :param ranks: number of ranks.
    :param seed: seed of what the pattern draws.
    :param nbytes: bytes, see ``share``.
    :param share: ``mean`` if all messages are equal, and a rank sends ``nbytes`` per iteration in the mean over ranks;
        ``each`` if every rank sends ``nbytes``, in equal messages; ``message`` if each message has ``nbytes``.
    :param burst: seconds of computation of each rank before it sends.
    """
    grid = balanced(ranks, 4 if pattern == "Stencil" else 3)
    one = trace_of(PATTERNS[pattern](grid, seed), nbytes, burst=burst, name=pattern)
    if share == "message":
        return one
    program = one.ranks
    sends = program.kind == SEND
    count = (
        np.bincount(program.rank[sends], minlength=ranks) if share == "each" else np.full(ranks, sends.sum() / ranks)
    )
    sender = np.where(sends, program.rank, program.peer)
    amount = np.where(program.kind == COMPUTE, program.amount, nbytes / np.maximum(count, 1)[sender])
    return replace(one, ranks=replace(program, amount=amount))
