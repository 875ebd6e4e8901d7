"""Values of pairs: difference of profiles, labels of the rules, and machine time saved by measured speed-ups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError
from ..profiles.system import Tag
from ..speedups.matrix import Speedups

__all__ = ["label_values", "machine_seconds", "require_known", "saved", "score", "scores", "weights_of"]

Reals = NDArray[np.float64]
_SCORED = ("flops", "memory", "mpi")  # the source leaves out the axes of the last-level cache


def score(one: Tag, other: Tag) -> float:
    """Return the distance of two programs on the normalised axes FLOPS, memory and MPI time, in [0, sqrt(3)].

    Programs that differ use different resources. Two runs of one program have score 0.

    :param one: profile of a program on normalised axes.
    :param other: profile of the other program.
    :raises ColocationError: if one of the axes is unknown.
    """
    return float(scores([one, other])[0, 1])


def scores(tags: Sequence[Tag]) -> Reals:
    """Return the distances of all programs, shape (n, n).

    :param tags: profiles of n programs on normalised axes.
    :raises ColocationError: if one of the axes is unknown.
    """
    for tag in tags:
        tag.require(*_SCORED)
    axes = np.array([[getattr(tag, name) for name in _SCORED] for tag in tags]).reshape(-1, len(_SCORED))
    return np.asarray(np.sqrt(((axes[:, None] - axes[None]) ** 2).sum(axis=2)), np.float64)


def label_values(labels: NDArray[np.int8]) -> Reals:
    """Return the number of good labels minus the number of bad ones of each pair, shape (n, n).

    :param labels: labels of the rows' programs beside the columns' programs, indices in ``bands.CLASSES``.
    """
    signs = labels.astype(np.float64) - 1
    return signs + signs.T


def machine_seconds(speedups: Speedups, weights: Reals) -> Reals:
    """Return the node seconds of each pair if it shares nodes, shape (n, n); NaN if a cell is unknown.

    A program that takes w node seconds in compact mode has w / s node seconds of half nodes beside a neighbour, at
    speed-up s. A half node counts as a half only because another job uses the other one.

    :param speedups: the speed-ups.
    :param weights: node seconds of each program in compact mode, shape (n,).
    """
    own = weights[:, None] / speedups.ratio
    return own + own.T


def saved(speedups: Speedups, weights: Reals) -> Reals:
    """Return the node seconds that each pair saves against nodes of its own, shape (n, n); negative if it loses.

    :param speedups: the speed-ups.
    :param weights: node seconds of each program in compact mode, shape (n,).
    """
    return weights[:, None] + weights[None] - machine_seconds(speedups, weights)


def weights_of(speedups: Speedups) -> Reals:
    """Return the relative node seconds of each program in compact mode, shape (n,), with mean 1.

    They are seconds times processes, or seconds alone if the processes of a program are unknown, and 1 if a run time
    is unknown: then all programs count as equally long, as in the source.

    :param speedups: the speed-ups.
    """
    if not np.isfinite(speedups.compact).all():
        return np.ones(len(speedups))
    found = speedups.compact * (speedups.processes if (speedups.processes > 0).all() else 1)
    return np.asarray(found / found.mean(), np.float64)


def require_known(speedups: Speedups, programs: Sequence[str]) -> None:
    """Check that the speed-ups of all pairs of a pool are known, in both directions.

    :param speedups: the speed-ups.
    :param programs: the program of each job of the pool.
    :raises ColocationError: if a cell is unknown, or a program is not in the matrix.
    """
    pool = speedups.only(list(dict.fromkeys(programs)))
    needed = ~pool.known
    once = [programs.count(name) == 1 for name in pool.programs]
    np.fill_diagonal(needed, needed.diagonal() & ~np.array(once, bool))
    cells = np.argwhere(needed)
    if len(cells):
        one, other = (pool.programs[at] for at in cells[0])
        more = f" and {len(cells) - 1} others" if len(cells) > 1 else ""
        raise ColocationError(f"expecting the speed-ups of all pairs, got none of {one} beside {other}{more}")
