"""Schedules in GOAL, the text that LogGOPSim reads.

Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, 2009; Hoefler, Schneider, Lumsdaine: LogGOPSim, 2010.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...inputs.writing import open_output
from ..analysis.loads import ScheduleMessages, messages_of
from ..schedule import Schedule

__all__ = ["MessageEnd", "RankStep", "Timeline", "write_goal"]

Integers = NDArray[np.int64]


class MessageEnd(NamedTuple):
    """One end of a message: whether the rank sends (1 or 0), the other rank, the step, and the bytes."""

    sends: int
    peer: int
    step: int
    nbytes: int


class RankStep(NamedTuple):
    """The messages that a rank starts at once: its receives, then its sends, each sorted by peer."""

    step: int
    lines: tuple[MessageEnd, ...]


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
        lines = map(MessageEnd, sends, peer, step, nbytes)
        for number, together in itertools.groupby(lines, key=attrgetter("step")):
            yield RankStep(number, tuple(together))


def _ends(messages: ScheduleMessages, block_bytes: int) -> Integers:
    """Rank, step, direction (1 if it sends), peer and bytes of both ends of all messages, sorted, shape (5, ends)."""
    rank = np.concatenate((messages.source, messages.destination))
    peer = np.concatenate((messages.destination, messages.source))
    sends = np.repeat(np.array([1, 0]), len(messages))
    step, nbytes = np.tile(messages.step, 2), np.tile(messages.blocks * block_bytes, 2)
    # Receives first, so that no message arrives before a receive that could have been posted in time.
    order = np.lexsort((peer, sends, step, rank))
    return np.stack((rank, step, sends, peer, nbytes))[:, order]


def write_goal(schedule: Schedule, path: str | Path, block_bytes: int = 1, adapters: int = 1) -> None:
    """Write a schedule as GOAL text.

    The messages that a rank starts in one step may run at once. They require that the rank's previous step is complete
    or, if the schedule declares its steps independent, the step that is ``window`` of the rank's steps earlier. A step
    with several messages ends with a ``calc 0`` that requires them all, so that the text grows with the number of
    messages, not of pairs of messages. The tag is the step. Local moves and reductions take no time.

    Messages that are striped over several adapters have a part for each, which names its adapter (``nic``); their tags
    are the step times the number of adapters, plus the adapter.

    :param schedule: schedule to write.
    :param path: path of the file.
    :param block_bytes: bytes per block.
    :param adapters: number of adapters over which each message is striped.
    Cost: about two lines for each send and each receive; the text of one rank is in memory at a time.
    """
    timeline = Timeline(schedule, block_bytes)
    with open_output(path) as file:
        file.write(f"num_ranks {schedule.size}\n")
        for rank in range(schedule.size):
            file.write(f"\nrank {rank} {{\n")
            file.writelines(f"{statement}\n" for statement in _statements(timeline, rank, adapters))
            file.write("}\n")


def _statements(timeline: Timeline, rank: int, adapters: int) -> Iterator[str]:
    """Yield the lines of GOAL text for one rank: its sends and receives, and the operations that each requires."""
    done: list[str] = []
    for number, step in enumerate(timeline.of_rank(rank)):
        after = done[number - timeline.window] if 0 < timeline.window <= number else None
        operations = [one for line in step.lines for one in _operations(line, adapters)]
        labels = [f"s{number}m{position}" for position in range(len(operations))]
        for label, operation in zip(labels, operations, strict=True):
            yield f"{label}: {operation}"
            if after:
                yield f"{label} requires {after}"
        # With several steps in flight a step requires the step before it, because a rank waits for its oldest step.
        before = [done[-1]] if done and timeline.window != 1 else []
        if len(labels) + len(before) > 1:
            yield f"s{number}: calc 0"
            yield from (f"s{number} requires {label}" for label in (*labels, *before))
            labels = [f"s{number}"]
        done += labels


def _operations(line: MessageEnd, adapters: int) -> Iterator[str]:
    """Yield the operations of one end of a message: one for each adapter that carries a part of it."""
    words, way = ("send", "to") if line.sends else ("recv", "from")
    for adapter in range(adapters):
        nbytes = line.nbytes * (adapter + 1) // adapters - line.nbytes * adapter // adapters
        if adapters == 1:
            yield f"{words} {nbytes}b {way} {line.peer} tag {line.step}"
        elif nbytes or (not line.nbytes and not adapter):
            yield f"{words} {nbytes}b {way} {line.peer} tag {line.step * adapters + adapter} nic {adapter}"
