"""The matrix of speed-ups: how fast each program runs beside each other program, relative to nodes of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ColocationError

__all__ = ["Speedups", "draw_speedups"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Speedups:
    """Speed-ups of n programs beside each other, NaN if unknown. The matrix is not symmetric.

    A speed-up is the run time in compact mode (whole nodes of its own, all cores used) over the run time on half of the
    cores of twice as many nodes, whose other halves run the neighbour. Below 1 the program is slowed down.

    :ivar programs: names of the programs.
    :ivar ratio: speed-up of the row's program beside the column's program, shape (n, n).
    :ivar compact: run time in compact mode in seconds, shape (n,).
    :ivar alone: speed-up on half nodes whose other halves are empty (spread mode), shape (n,).
    :ivar low: lower ends of the intervals of ``ratio``, shape (n, n).
    :ivar high: upper ends of the intervals of ``ratio``, shape (n, n).
    :ivar processes: number of processes of each program, 0 if unknown, shape (n,).
    """

    programs: tuple[str, ...]
    ratio: Reals
    compact: Reals
    alone: Reals
    low: Reals
    high: Reals
    processes: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        programs: Sequence[str],
        ratio: ArrayLike,
        *,
        compact: ArrayLike = np.nan,
        alone: ArrayLike = np.nan,
        low: ArrayLike = np.nan,
        high: ArrayLike = np.nan,
        processes: ArrayLike = 0,
    ) -> Speedups:
        """Return a matrix; what is left out is unknown.

        :param programs: names of the n programs, each once.
        :param ratio: speed-up of the row's program beside the column's program, shape (n, n), NaN if unknown.
        :param compact: run time in compact mode in seconds, shape (n,).
        :param alone: speed-up beside empty halves of nodes, shape (n,).
        :param low: lower ends of the intervals of ``ratio``, shape (n, n).
        :param high: upper ends of the intervals of ``ratio``, shape (n, n).
        :param processes: number of processes of each program, shape (n,).
        :raises ColocationError: if a name is there twice, a shape is wrong, or a value is not positive.
        """
        n = len(programs)
        if len(set(programs)) < n:
            twice = max(Counter(programs).items(), key=lambda one: one[1])[0]
            raise ColocationError(f"programs: expecting each name once, got {twice!r} twice")
        made: dict[str, Reals] = {}
        for name, value in (("ratio", ratio), ("low", low), ("high", high), ("compact", compact), ("alone", alone)):
            shape = (n, n) if name in ("ratio", "low", "high") else (n,)
            made[name] = _positive(name, value, shape)
        counts = np.broadcast_to(np.asarray(processes, np.int64), n)
        return cls(tuple(programs), processes=counts, **made)

    def __len__(self) -> int:
        return len(self.programs)

    @cached_property
    def number(self) -> dict[str, int]:
        """Row and column of each program."""
        return {name: at for at, name in enumerate(self.programs)}

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether the speed-up of each cell is known, shape (n, n)."""
        found: NDArray[np.bool_] = np.isfinite(self.ratio)
        return found

    @property
    def beside_nothing(self) -> Reals:
        """Speed-up beside empty halves, shape (n,): as measured, else the row's largest (a row without cells: 1)."""
        most = np.where(self.known, self.ratio, 0).max(axis=1, initial=0)
        fallback = np.where(most > 0, most, 1.0)
        return np.where(np.isfinite(self.alone), self.alone, fallback)

    def complete(self) -> Speedups:
        """Return the matrix without unknown cells; the programs with most unknown cells are taken out in turn."""
        left = np.arange(len(self))
        while len(left):
            unknown = ~self.known[np.ix_(left, left)]
            missing = unknown.sum(axis=0) + unknown.sum(axis=1)
            if not missing.any():
                break
            left = np.delete(left, int(missing.argmax()))
        return self.only([self.programs[at] for at in left.tolist()])

    def only(self, programs: Sequence[str]) -> Speedups:
        """Return the matrix of some of the programs, in the given order.

        :param programs: names of the programs.
        :raises ColocationError: if a program is unknown.
        """
        missing = [name for name in programs if name not in self.number]
        if missing:
            raise ColocationError(f"expecting one of {', '.join(self.programs)}, got {missing[0]!r}")
        at = np.array([self.number[name] for name in programs], np.int64)
        square = np.ix_(at, at)
        return Speedups(
            tuple(programs), self.ratio[square], self.compact[at], self.alone[at], self.low[square], self.high[square],
            self.processes[at],
        )  # fmt: skip


def _positive(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Reals:
    """Return an array of this shape whose entries are positive or NaN."""
    try:
        made = np.broadcast_to(np.asarray(value, np.float64), shape).copy()
    except ValueError:
        raise ColocationError(f"{name}: expecting numbers of shape {shape}, got {np.shape(value)}") from None
    if (made <= 0).any() or np.isinf(made).any():
        wrong = made[(made <= 0) | np.isinf(made)].flat[0]
        raise ColocationError(f"{name}: expecting positive numbers, got {wrong:g}")
    return made


def draw_speedups(programs: int, seed: int) -> Speedups:
    """Draw speed-ups of programs ``p0``, ``p1`` and so on, by a matrix of rank one.

    Beside empty halves a program is 1 to 1.3 times as fast as on nodes of its own; a partner takes the share
    sensitivity x aggressiveness of this, with both uniform, up to 0.8 and 0.6.

    :param programs: number of programs, 1 or more.
    :param seed: seed of the draw.
    :raises ColocationError: if there is no program.
    """
    if programs < 1:
        raise ColocationError(f"programs: expecting 1 or more, got {programs}")
    rng = np.random.default_rng(seed)
    alone, sensitivity, aggressiveness = rng.uniform((1, 0, 0), (1.3, 0.8, 0.6), (programs, 3)).T
    ratio = alone[:, None] * (1 - np.outer(sensitivity, aggressiveness))
    return Speedups.of([f"p{number}" for number in range(programs)], ratio, alone=alone)
