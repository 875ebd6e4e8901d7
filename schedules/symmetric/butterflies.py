"""Allreduces, reduce-scatters and allgathers by any butterfly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..butterfly import Butterfly
from ..exchanges import moves, runs, starts, working
from ..phases import sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import local_moves, shares

__all__ = ["by_allgather", "by_allreduce", "by_reduce_scatter"]

Integers = NDArray[np.int64]


def by_allreduce(butterflies: Sequence[Butterfly], algorithm: str, blocks: int | None = None) -> Schedule:
    """An allreduce by the reduce-scatter of a butterfly, then by its allgather.

    Several butterflies of equally many steps run at the same time; each has an equal part of the vector.

    :param butterflies: messages of the reduce-scatters.
    :param algorithm: name of the algorithm, for display.
    :param blocks: number of blocks of the vector, by default one per rank and butterfly; with fewer, ranks idle.
    """
    size, pieces = len(butterflies[0].layout), sum(len(one.layout) for one in butterflies)
    total = pieces if blocks is None else blocks
    bounds, buffer = np.arange(pieces + 1) * total // pieces, np.full(size, OUTPUT)
    parts = [(one, bounds[place * size : (place + 1) * size + 1]) for place, one in enumerate(butterflies)]
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), total),
        tuple((0, one.reducing(part, buffer)) for one, part in parts),
        tuple((0, one.gathering(part, buffer)) for one, part in parts),
    )
    return Schedule.from_phases("allreduce", size, algorithm, phases, blocks=total)


def by_reduce_scatter(
    butterfly: Butterfly, algorithm: str, blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter by a butterfly; each rank first brings its vector into the order of the butterfly's layout.

    :param butterfly: messages of the reduce-scatter.
    :param algorithm: name of the algorithm, for display.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    layout = butterfly.layout
    size, share = len(layout), shares(len(layout), blocks, counts)
    bounds, (here, there, count) = starts(share[layout]), runs(layout, share)
    phases = sequence(
        moves(np.arange(size), INPUT, there, SCRATCH, here, count),
        butterfly.reducing(bounds, np.full(size, SCRATCH)),
        local_moves(0, layout, (SCRATCH, bounds[:-1]), (OUTPUT, 0), share[layout]),
    )
    given = None if counts is None else share
    return Schedule.from_phases("reduce_scatter", size, algorithm, phases, blocks=blocks, counts=given)


def by_allgather(butterfly: Butterfly, algorithm: str, blocks: int = 1, counts: ArrayLike | None = None) -> Schedule:
    """An allgather by a butterfly backwards; each rank at last moves all shares to rank order, if they are in another.

    :param butterfly: messages of the reduce-scatter.
    :param algorithm: name of the algorithm, for display.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    layout, buffer = butterfly.layout, working(butterfly.layout)
    size, share = len(layout), shares(len(layout), blocks, counts)
    bounds, (here, there, count) = starts(share[layout]), runs(layout, share)
    in_place = bool((buffer == OUTPUT).all())
    phases = sequence(
        local_moves(0, layout, (INPUT, 0), (buffer[layout], bounds[:-1]), share[layout]),
        butterfly.gathering(bounds, buffer),
        () if in_place else moves(np.arange(size), SCRATCH, here, OUTPUT, there, count),
    )
    given = None if counts is None else share
    return Schedule.from_phases("allgather", size, algorithm, phases, blocks=blocks, counts=given)
