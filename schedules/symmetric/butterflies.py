"""Allreduces, reduce-scatters and allgathers by any butterfly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..butterfly import Butterfly
from ..exchanges import moves, runs, starts, working
from ..phases import sequence
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares

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
    butterflies: Sequence[Butterfly], algorithm: str, blocks: int | None = None, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter by a butterfly; each rank first brings its vector into the order of the butterfly's layout.

    Several butterflies of equally many steps run at the same time. Each has an equal piece of every rank's part, so
    that every rank ends with all pieces of its own part.

    :param butterflies: messages of the reduce-scatters.
    :param algorithm: name of the algorithm, for display.
    :param blocks: number of blocks of each rank's part, by default one per butterfly; used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    size, blocks = len(butterflies[0].layout), len(butterflies) if blocks is None else blocks
    share, ranks, buffer = shares(size, blocks, counts), np.arange(size), np.full(size, SCRATCH)
    pieces = _pieces(butterflies, share)
    phases = sequence(
        tuple((0, moves(ranks, INPUT, one.there, SCRATCH, one.here, one.many)) for one in pieces),
        tuple((0, one.butterfly.reducing(one.bounds, buffer)) for one in pieces),
        np.concatenate([one.own((SCRATCH, one.bounds[:-1]), (OUTPUT, one.low)) for one in pieces]),
    )
    given = None if counts is None else share
    return Schedule.from_phases("reduce_scatter", size, algorithm, phases, blocks=blocks, counts=given)


def by_allgather(
    butterflies: Sequence[Butterfly], algorithm: str, blocks: int | None = None, counts: ArrayLike | None = None
) -> Schedule:
    """An allgather by a butterfly backwards; each rank at last moves all shares to rank order, if they are in another.

    Several butterflies of equally many steps run at the same time. Each has an equal piece of every rank's share.

    :param butterflies: messages of the reduce-scatters.
    :param algorithm: name of the algorithm, for display.
    :param blocks: number of blocks of each rank, by default one per butterfly; used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    size, blocks = len(butterflies[0].layout), len(butterflies) if blocks is None else blocks
    share, ranks = shares(size, blocks, counts), np.arange(size)
    buffer = working(butterflies[0].layout) if len(butterflies) == 1 else np.full(size, SCRATCH)
    pieces, in_place = _pieces(butterflies, share), bool((buffer == OUTPUT).all())
    phases = sequence(
        np.concatenate([one.own((INPUT, one.low), (buffer[0], one.bounds[:-1])) for one in pieces]),
        tuple((0, one.butterfly.gathering(one.bounds, buffer)) for one in pieces),
        () if in_place else tuple((0, moves(ranks, SCRATCH, one.here, OUTPUT, one.there, one.many)) for one in pieces),
    )
    given = None if counts is None else share
    return Schedule.from_phases("allgather", size, algorithm, phases, blocks=blocks, counts=given)


class _Piece(NamedTuple):
    """The piece of all shares that one butterfly carries.

    :ivar butterfly: the butterfly.
    :ivar bounds: first block of each rank's piece in the working buffer, and the end, in the order of the layout, shape
        (p + 1,).
    :ivar low: first block of each rank's piece in its share, in the order of the layout, shape (p,).
    :ivar here: first block of each move between the working buffer and rank order in the former, shape (moves,).
    :ivar there: first block of each move in rank order, shape (moves,).
    :ivar many: number of blocks of each move, shape (moves,).
    """

    butterfly: Butterfly
    bounds: Integers
    low: Integers
    here: Integers
    there: Integers
    many: Integers

    def own(self, source: tuple[ArrayLike, ArrayLike], destination: tuple[ArrayLike, ArrayLike]) -> Rows:
        """The rows by which each rank moves the piece of its own share.

        :param source: buffer, and first block of each rank in the order of the layout.
        :param destination: the same for the place to which the piece is moved.
        """
        return local_moves(0, self.butterfly.layout, source, destination, np.diff(self.bounds))


def _pieces(butterflies: Sequence[Butterfly], share: Integers) -> list[_Piece]:
    """Divide the share of each rank, shape (p,), among butterflies, as equally as possible."""
    if len(butterflies) == 1:
        layout = butterflies[0].layout
        return [_Piece(butterflies[0], starts(share[layout]), 0 * layout, *runs(layout, share))]
    found, end, begin = list[_Piece](), 0, starts(share)[:-1]
    cuts = share * np.arange(len(butterflies) + 1)[:, None] // len(butterflies)
    for one, low, high in zip(butterflies, cuts[:-1], cuts[1:], strict=True):
        count = (high - low)[one.layout]
        bounds = end + starts(count)
        found.append(_Piece(one, bounds, low[one.layout], bounds[:-1], (begin + low)[one.layout], count))
        end = int(bounds[-1])
    return found
