"""The collective calls of SimGrid's time-independent traces, and the numbers in the arguments of all actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .collectives import ALL_TO_EACH, MessageCount, add_collective, add_exchange
from .operations import Operations

__all__ = ["BYTE", "COLLECTIVES", "DOUBLE", "CollectiveCalls", "Rank", "WrongActionError", "number_of", "whole_of"]

# Bytes of MPI's basic datatypes by SimGrid's number, as version 3.32 writes them.
TYPES = dict(
    enumerate(
        (8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8)
    )
) | {38: 4, 57: 1, 59: 8}
BYTE, DOUBLE = 6, 0
_TO_EACH = {*ALL_TO_EACH, "reducescatter", "alltoallv", "allgatherv"}
_NUMBER = re.compile(r"[+-]?(\d++(?:\.\d*+)?|\.\d++)([eE][+-]?\d++)?")


@dataclass
class Rank:
    """The state of one rank while its actions are read.

    :param requests: source, destination, tag and step of each message that no wait has completed; the step is None if
        the message is left out.
    :param posted: source, destination and tag of all messages so far.
    """

    number: int
    operations: Operations = field(default_factory=Operations)
    requests: list[tuple[int, int, int, int | None]] = field(default_factory=list)
    posted: set[tuple[int, int, int]] = field(default_factory=set)
    calls: int = 0
    basic: int = BYTE


class WrongActionError(ValueError):
    """A wrong action; the message lacks the place."""


class CollectiveCalls:
    """The conversion of collective calls.

    :ivar name: name of the trace.
    :ivar size: number of ranks.
    :ivar flops: flop/s of the recorded machine.
    :ivar algorithms: algorithm of each collective.
    :ivar messages: number of messages of all calls so far.
    """

    name: str
    size: int
    flops: float
    algorithms: Mapping[str, str]
    messages: MessageCount

    def collective(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """Add a rank's part of a collective call.

        :param rank: the rank.
        :param action: name of the collective, one of ``COLLECTIVES``.
        :param words: arguments of the action.
        :param line: line of the source.
        :raises WrongActionError: if an argument is wrong.
        :raises InterferenceError: if all calls so far have more messages than the limit ``rows`` allows.
        """
        rank.calls += 1
        self.messages.add(self.size, to_each=action in _TO_EACH)
        COLLECTIVES[action](self, rank, action, words, line)

    def _add(self, rank: Rank, collective: str, nbytes: float, line: int, root: int = 0, flops: float = 0.0) -> None:
        if not 0 <= root < self.size:
            raise WrongActionError(f"root: expecting a rank in range({self.size}), got {root}")
        if self.size > 1:
            where = (rank.operations, rank.number, self.size)
            add_collective(*where, collective, nbytes, -rank.calls, root=root, algorithms=self.algorithms, line=line)
        if flops:
            rank.operations.compute(flops / self.flops, line)

    def _barrier(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        self._add(rank, "barrier", 0.0, line)

    def _bcast(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``COUNT [ROOT [TYPE]]``."""
        self._add(rank, "bcast", number_of(words, 0, "count") * self.bytes_of(rank, words, 2), line, root_of(words, 1))

    def _reduce(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``COUNT FLOPS [ROOT [TYPE]]``."""
        nbytes = number_of(words, 0, "count") * self.bytes_of(rank, words, 3)
        self._add(rank, "reduce", nbytes, line, root_of(words, 2), number_of(words, 1, "flops"))

    def _vector(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``COUNT FLOPS [TYPE]`` of allreduce, scan and exscan."""
        nbytes = number_of(words, 0, "count") * self.bytes_of(rank, words, 2)
        self._add(rank, action, nbytes, line, flops=number_of(words, 1, "flops"))

    def _block(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``SENDCOUNT RECVCOUNT [SENDTYPE RECVTYPE]`` of alltoall and allgather."""
        self._add(rank, action, number_of(words, 0, "count") * self.bytes_of(rank, words, 2), line)

    def _rooted(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``SENDCOUNT RECVCOUNT [ROOT [SENDTYPE RECVTYPE]]`` of gather and scatter."""
        count = number_of(words, 0, "count") * self.bytes_of(rank, words, 3)
        self._add(rank, action, count, line, root_of(words, 2))

    def _reduce_scatter(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``COUNT... FLOPS [TYPE]``, with a count per rank; their mean is taken."""
        total = sum(number_of(words, at, "count") for at in range(self.size))
        nbytes = total / self.size * self.bytes_of(rank, words, self.size + 1)
        self._add(rank, "reduce_scatter", nbytes, line, flops=number_of(words, self.size, "flops"))

    def _alltoallv(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``BUFFER COUNT... BUFFER COUNT... [SENDTYPE RECVTYPE]``, with a count per rank."""
        here, there = (
            [number_of(words, first + at, "count") * self.bytes_of(rank, words, kind) for at in range(self.size)]
            for first, kind in ((1, 2 * self.size + 2), (self.size + 2, 2 * self.size + 3))
        )
        add_exchange(rank.operations, rank.number, here, there, -rank.calls, line)

    def _allgatherv(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``SENDCOUNT COUNT... [SENDTYPE RECVTYPE]``: blocks go round a ring."""
        size, tag, me = self.size, -rank.calls, rank.number
        each = [number_of(words, 1 + at, "count") * self.bytes_of(rank, words, size + 2) for at in range(size)]
        for turn in range(size - 1):
            given, taken = each[(me - turn) % size], each[(me - turn - 1) % size]
            step = rank.operations.post([((me - 1) % size, taken, tag)], [((me + 1) % size, given, tag)], line)
            rank.operations.wait(step)

    def _gatherv(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``SENDCOUNT COUNT... ROOT [SENDTYPE RECVTYPE]``; only the root has counts."""
        root = root_of(words, self.size + 1)
        mine = number_of(words, 0, "count") * self.bytes_of(rank, words, self.size + 2)
        each = [
            number_of(words, 1 + at, "count") * self.bytes_of(rank, words, self.size + 3) for at in range(self.size)
        ]
        self._linear(rank, root, mine, each, line, to_root=True)

    def _scatterv(self, rank: Rank, action: str, words: list[str], line: int) -> None:
        """``COUNT... RECVCOUNT ROOT [SENDTYPE RECVTYPE]``; only the root has counts."""
        root = root_of(words, self.size + 1)
        each = [number_of(words, at, "count") * self.bytes_of(rank, words, self.size + 2) for at in range(self.size)]
        mine = number_of(words, self.size, "count") * self.bytes_of(rank, words, self.size + 3)
        self._linear(rank, root, mine, each, line, to_root=False)

    def _linear(self, rank: Rank, root: int, mine: float, each: list[float], line: int, *, to_root: bool) -> None:
        """Messages between the root and all other ranks, which are all posted at once."""
        tag = -rank.calls
        if rank.number == root:
            messages = [(peer, nbytes, tag) for peer, nbytes in enumerate(each) if peer != root]
        else:
            messages = [(root, mine, tag)]
        if messages:
            receives = (rank.number == root) == to_root
            taken, given = (messages, []) if receives else ([], messages)
            rank.operations.wait(rank.operations.post(taken, given, line))

    def bytes_of(self, rank: Rank, words: list[str], at: int) -> int:
        """Bytes of the datatype whose number is a word, or of the default datatype if there are fewer words.

        :param rank: rank with the default datatype.
        :param words: arguments of the action.
        :param at: place of the word.
        """
        kind = whole_of(words, at, "type") if at < len(words) else rank.basic
        if kind not in TYPES:
            raise WrongActionError(
                f"expecting the number of a basic datatype, got {kind} (of a derived one the trace has no size)"
            )
        return TYPES[kind]


COLLECTIVES: dict[str, Callable[[CollectiveCalls, Rank, str, list[str], int], None]] = {
    "barrier": CollectiveCalls._barrier,
    "bcast": CollectiveCalls._bcast,
    "reduce": CollectiveCalls._reduce,
    **dict.fromkeys(("allreduce", "scan", "exscan"), CollectiveCalls._vector),
    **dict.fromkeys(("alltoall", "allgather"), CollectiveCalls._block),
    **dict.fromkeys(("gather", "scatter"), CollectiveCalls._rooted),
    "reducescatter": CollectiveCalls._reduce_scatter,
    "alltoallv": CollectiveCalls._alltoallv,
    "allgatherv": CollectiveCalls._allgatherv,
    "gatherv": CollectiveCalls._gatherv,
    "scatterv": CollectiveCalls._scatterv,
}


def number_of(words: list[str], at: int, name: str) -> float:
    """A number of at least 0 among the arguments of an action.

    :param words: arguments of the action.
    :param at: index of the argument.
    :param name: name of the argument, for errors.
    :raises WrongActionError: if it is missing, no number, or below 0.
    """
    if at >= len(words):
        raise WrongActionError(f"expecting {name} as argument {at + 1}, got {len(words)} arguments")
    if not _NUMBER.fullmatch(words[at]):
        raise WrongActionError(f"{name}: expecting a number, got {words[at]!r}")
    value = float(words[at])
    if not 0 <= value < 1e18:
        raise WrongActionError(f"{name}: expecting a number from 0 to 1e18, got {words[at]}")
    return value


def whole_of(words: list[str], at: int, name: str) -> int:
    """A whole number among the arguments of an action.

    :param words: arguments of the action.
    :param at: index of the argument.
    :param name: name of the argument, for errors.
    :raises WrongActionError: if it is missing or no whole number.
    """
    if at >= len(words):
        raise WrongActionError(f"expecting {name} as argument {at + 1}, got {len(words)} arguments")
    if not re.fullmatch(r"-?[0-9]{1,9}", words[at]):
        raise WrongActionError(f"{name}: expecting a whole number, got {words[at]!r}")
    return int(words[at])


def root_of(words: list[str], at: int) -> int:
    return whole_of(words, at, "root") if at < len(words) else 0
