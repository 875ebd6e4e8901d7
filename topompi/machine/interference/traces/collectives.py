"""Collective calls of traces as messages between ranks, by textbook algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ....inputs.limits import current_limits
from ....network import Tables
from ....schedules import Network, Schedule, make
from ....schedules.analysis.loads import messages_of
from ..errors import InterferenceError
from .operations import Operations

__all__ = [
    "ALGORITHMS",
    "ALL_TO_EACH",
    "MessageCount",
    "add_collective",
    "add_exchange",
    "messages_between",
    "steps_of",
]

# Algorithm of each collective: those of the libraries' small and medium messages, which depend on no network.
ALGORITHMS = {
    "barrier": "dissemination",
    "bcast": "binomial",
    "reduce": "binomial",
    "allreduce": "doubling",
    "alltoall": "pairwise",
    "allgather": "ring",
    "gather": "binomial",
    "scatter": "binomial",
    "reduce_scatter": "ring",
    "scan": "doubling",
    "exscan": "doubling",
}
ALL_TO_EACH = ("alltoall", "allgather", "reduce_scatter")  # every rank sends, or passes on, a message for each rank
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
RankSteps = list[tuple[list[tuple[int, float]], list[tuple[int, float]]]]


class MessageCount:
    """The number of messages of all collective calls of a trace so far, which the limit ``rows`` bounds.

    :param name: name of the trace.
    """

    def __init__(self, name: str) -> None:
        self.name, self.total = name, 0

    def add(self, size: int, *, to_each: bool) -> None:
        """Count a rank's messages of one call, before they are made.

        :param size: number of ranks of the call.
        :param to_each: whether the rank sends a message for each rank.
        :raises InterferenceError: if all calls so far have more messages than the limit allows.
        """
        self.total += size if to_each else 2 * size.bit_length()
        current_limits().check("rows", self.total, f"{self.name}: messages of collectives", InterferenceError)


def messages_between(
    collective: str, algorithm: str, size: int, root: int = 0
) -> tuple[Integers, Integers, Integers, Floats]:
    """The messages of a collective: step, source, destination, and bytes as a share of one message.

    :param collective: name of the collective, one of ``ALGORITHMS``.
    :param algorithm: name of the algorithm.
    :param size: number of ranks.
    :param root: root of a rooted collective.
    :raises InterferenceError: if the algorithm is unknown, or needs another number of ranks.
    """
    schedule = _schedule(collective, algorithm, size, root)
    messages = messages_of(schedule)
    return messages.step, messages.source, messages.destination, messages.blocks / max(schedule.blocks, 1)


def _schedule(collective: str, algorithm: str, size: int, root: int) -> Schedule:
    if collective in ALL_TO_EACH:
        current_limits().check("rows", size**2, f"{collective} of {size} ranks", InterferenceError)
    try:
        schedule = make(collective, algorithm, _one_switch(size), root)
        len(schedule.step)  # its rows are made when they are first read
        return schedule
    except ValueError as error:
        raise InterferenceError(f"{collective} of {size} ranks: {error}") from error


@lru_cache(maxsize=64)
def steps_of(collective: str, algorithm: str, size: int, root: int = 0) -> tuple[int, list[RankSteps]]:
    """The steps of each rank: for each step, peer and share of a message of the receives, and of the sends.

    :param collective: name of the collective, one of ``ALGORITHMS``.
    :param algorithm: name of the algorithm.
    :param size: number of ranks.
    :param root: root of a rooted collective.
    :returns: largest number of steps in flight (0 for no limit), then the steps of each rank.
    :raises InterferenceError: if the algorithm is unknown, or needs another number of ranks.
    """
    schedule = _schedule(collective, algorithm, size, root)
    messages = messages_of(schedule)
    ends = np.concatenate((messages.source, messages.destination)), np.tile(messages.step, 2)
    sends = np.repeat([1, 0], len(messages))
    peer = np.concatenate((messages.destination, messages.source))
    order = np.lexsort((peer, sends, ends[1], ends[0]))
    share = np.tile(messages.blocks / max(schedule.blocks, 1), 2)
    rows = zip(*(column[order].tolist() for column in (*ends, sends, peer, share)), strict=True)
    found: list[RankSteps] = [[] for _ in range(size)]
    for (rank, _), group in groupby(rows, key=lambda row: row[:2]):
        together: tuple[list[tuple[int, float]], list[tuple[int, float]]] = ([], [])
        for _, _, is_send, other, part in group:
            together[is_send].append((other, part))
        found[rank].append(together)
    return (schedule.window if schedule.independent else 1), found


@lru_cache(maxsize=4)
def _one_switch(size: int) -> Network:
    paths = Tables.one_switch(size)
    hosts = np.arange(size)
    hops = (1 - np.eye(size)).astype(np.int16)
    return Network(hosts, hops, paths, np.ones(2 * size), np.zeros((1, size), dtype=np.int64), paths.latency)


def add_collective(
    operations: Operations,
    rank: int,
    size: int,
    collective: str,
    nbytes: float,
    tag: int,
    *,
    root: int = 0,
    algorithms: Mapping[str, str] = ALGORITHMS,
    line: int = 0,
    members: Sequence[int] | None = None,
) -> None:
    """Add a rank's messages of a collective call, and wait for them.

    :param operations: operations of the rank.
    :param rank: the rank, in the communicator of the call.
    :param size: number of ranks of this communicator.
    :param collective: name of the collective.
    :param nbytes: bytes of one message: of the whole vector of a broadcast or reduction, else of each rank's block.
    :param tag: tag of the messages, below 0, of this call alone.
    :param root: root of a rooted collective.
    :param algorithms: algorithm of each collective.
    :param line: line of the source.
    :param members: rank in the trace of each rank of the communicator; None if they are the same.
    """
    known = range(size) if members is None else members
    window, ranks = steps_of(collective, algorithms[collective], size, root)
    done: list[int] = []
    for receives, sends in ranks[rank]:
        if window and len(done) >= window:
            operations.wait(done[-window])
        taken, given = ([(known[peer], part * nbytes, tag) for peer, part in some] for some in (receives, sends))
        done.append(operations.post(taken, given, line))
    for step in done[-window:] if window else done:
        operations.wait(step)


def add_exchange(
    operations: Operations, rank: int, sends: Sequence[float], receives: Sequence[float], tag: int, line: int = 0
) -> None:
    """Add a rank's messages of an alltoall with a size per rank, in the pairwise order, and wait for them.

    :param operations: operations of the rank.
    :param rank: the rank.
    :param sends: bytes to each rank; no message is sent for 0 bytes.
    :param receives: bytes from each rank.
    :param tag: tag of the messages, below 0, of this call alone.
    :param line: line of the source.
    """
    size = len(sends)
    for step in range(1, size):
        to, source = (rank + step) % size, (rank - step) % size
        taken = [(source, receives[source], tag)] if receives[source] else []
        given = [(to, sends[to], tag)] if sends[to] else []
        if taken or given:
            operations.wait(operations.post(taken, given, line))
