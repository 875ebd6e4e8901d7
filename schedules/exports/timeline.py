"""The messages of each rank in the order in which it starts them, for simulators of MPI programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..analysis.loads import Messages, messages_of
from ..schedule import Schedule

__all__ = ["Line", "RankStep", "Timeline"]

Integers = NDArray[np.int64]


class Line(NamedTuple):
    """One end of a message: whether the rank sends (1 or 0), the other rank, the step, and the bytes."""

    sends: int
    peer: int
    step: int
    nbytes: int


class RankStep(NamedTuple):
    """The messages that a rank starts at once: its receives, then its sends, each sorted by peer."""

    step: int
    lines: tuple[Line, ...]


class Timeline:
    """The messages of a schedule grouped by rank; transfers of one step between two ranks are one message.

    A rank starts all messages of a step at once. It has at most ``window`` of its steps in flight (0 for no limit) and
    waits for the oldest first. Local moves are no messages, and steps without messages are omitted.

    :param schedule: the schedule.
    :param block_bytes: bytes per block.
    :raises ValueError: if a block has less than one byte.
    Cost: a sort of the messages; then one operation per message of a rank.
    """

    def __init__(self, schedule: Schedule, block_bytes: int = 1) -> None:
        if block_bytes < 1:
            raise ValueError(f"expecting blocks of at least one byte, got {block_bytes}")
        messages = messages_of(schedule)
        self.size = schedule.size
        self.window = schedule.window if schedule.independent else 1
        self._columns = _ends(messages, block_bytes)
        self._bounds = np.searchsorted(self._columns[0], np.arange(schedule.size + 1))

    def of_rank(self, rank: int) -> Iterator[RankStep]:
        """Yield the steps, ascending, in which a rank has messages."""
        _, step, sends, peer, nbytes = self._columns[:, self._bounds[rank] : self._bounds[rank + 1]].tolist()
        lines = map(Line, sends, peer, step, nbytes)
        for number, together in itertools.groupby(lines, key=attrgetter("step")):
            yield RankStep(number, tuple(together))


def _ends(messages: Messages, block_bytes: int) -> Integers:
    """Rank, step, direction (1 if it sends), peer and bytes of both ends of all messages, sorted, shape (5, ends)."""
    rank = np.concatenate((messages.source, messages.destination))
    peer = np.concatenate((messages.destination, messages.source))
    sends = np.repeat(np.array([1, 0]), len(messages))
    step, nbytes = np.tile(messages.step, 2), np.tile(messages.blocks * block_bytes, 2)
    # Receives first, so that no message arrives before a receive that could have been posted in time.
    order = np.lexsort((peer, sends, step, rank))
    return np.stack((rank, step, sends, peer, nbytes))[:, order]
