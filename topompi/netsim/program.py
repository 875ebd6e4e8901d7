"""The operations of the ranks of one job: the input of all network models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .errors import NetsimError

__all__ = ["BACKGROUND", "COMPUTE", "ONCE", "RECEIVE", "REPEATS", "SEND", "UNTIL_ALL_RAN", "Program", "ProgramMessages"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

COMPUTE, RECEIVE, SEND = range(3)
KINDS = ("compute", "receive", "send")
COLUMNS = ("rank", "step", "kind", "peer", "amount", "tag", "after")
ONCE, UNTIL_ALL_RAN, BACKGROUND = REPEATS = ("once", "until_all_ran", "background")


@dataclass(frozen=True, eq=False)
class ProgramMessages:
    """The messages of a program, each with its send and its receive.

    :param source: sending rank of each message, shape (messages,).
    :param destination: receiving rank of each message, shape (messages,).
    :param nbytes: bytes of each message, shape (messages,).
    :param send_row: row (operation) of the program that sends each message, shape (messages,).
    :param receive_row: row (operation) of the program that receives each message, shape (messages,).
    """

    source: Integers
    destination: Integers
    nbytes: Floats
    send_row: Integers
    receive_row: Integers


@dataclass(frozen=True, eq=False)
class Program:
    """The ranks of a job, and their operations as columns with one row per operation.

    A rank has at most ``window`` of its steps in flight and completes them in order. In a step it first computes, then
    posts its receives, then its sends. The k-th send from a rank to another with a tag matches the other's k-th receive
    from it with this tag. The rows are sorted by rank, step and kind; rows equal in these keep the given order.

    :param hosts: host of each rank, shape (p,).
    :param rank: rank of each operation, shape (rows,).
    :param step: step of each operation, shape (rows,); gaps in the numbers do not matter.
    :param kind: ``COMPUTE``, ``RECEIVE`` or ``SEND`` of each operation, shape (rows,).
    :param peer: other rank of each message, shape (rows,); ignored for compute bursts.
    :param amount: bytes of each message, or seconds of each compute burst, shape (rows,).
    :param tag: tag of each message, shape (rows,); ignored for compute bursts. By default all tags are 0.
    :param after: an earlier step of the same rank that must be complete before the operation begins, -1 for none, shape
        (rows,); by default -1. The rank's later operations wait, too, because operations begin in order.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    :param start: time at which the job begins, in seconds.
    :param lane: virtual lane of the job's messages; only the packet model has lanes.
    :param repeat: ``ONCE`` to run the program once; ``UNTIL_ALL_RAN`` to repeat it until every job that is not
        ``BACKGROUND`` has run once; ``BACKGROUND`` to repeat it until the same moment, but not to wait for its end.
    :param name: name of the job in error messages.
    :param named: step number by name; a session records the times at which these named steps are complete
        (``Runs.steps``).
    """

    hosts: Integers
    rank: Integers
    step: Integers
    kind: Integers
    peer: Integers
    amount: Floats
    window: int = 1
    start: float = 0.0
    lane: int = 0
    repeat: str = ONCE
    name: str = "job"
    named: Mapping[str, int] = field(default_factory=dict)
    tag: Integers = None  # type: ignore[assignment]  # set in __post_init__
    after: Integers = None  # type: ignore[assignment]  # set in __post_init__

    def __post_init__(self) -> None:
        for name, default in (("tag", 0), ("after", -1)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(np.shape(self.rank), default))
        columns = {name: np.asarray(getattr(self, name)) for name in COLUMNS}
        if len({column.shape for column in columns.values()}) != 1 or columns["rank"].ndim != 1:
            raise NetsimError(f"{self.name}: expecting columns of one length")
        order = np.lexsort((columns["kind"], columns["step"], columns["rank"]))
        for name, column in columns.items():
            kind = np.float64 if name == "amount" else np.int64
            object.__setattr__(self, name, np.ascontiguousarray(column[order], dtype=kind))
        object.__setattr__(self, "hosts", np.asarray(self.hosts, dtype=np.int64))
        self._check()

    def _check(self) -> None:
        size = len(self.hosts)
        if self.window < 0:
            raise NetsimError(f"{self.name}: expecting a window of at least 0, got {self.window}")
        if not (np.isfinite(self.start) and self.start >= 0):
            raise NetsimError(f"{self.name}: expecting a start of at least 0 s, got {self.start}")
        if self.lane < 0:
            raise NetsimError(f"{self.name}: expecting a lane of at least 0, got {self.lane}")
        if self.repeat not in REPEATS:
            raise NetsimError(f"{self.name}: repeat: expecting one of {', '.join(REPEATS)}, got {self.repeat!r}")
        for name, step in self.named.items():
            if not (self.step == step).any():
                raise NetsimError(f"{self.name}: {name}: expecting a step with operations, got {step}")
        peers = np.where(self.kind == COMPUTE, self.rank, self.peer)
        self._refuse((self.kind < COMPUTE) | (self.kind > SEND), "kind", f"one of {', '.join(KINDS)}")
        self._refuse((self.rank < 0) | (self.rank >= size), "rank", f"a rank in range({size})")
        self._refuse((peers < 0) | (peers >= size), "peer", f"a rank in range({size})")
        self._refuse((self.kind != COMPUTE) & (self.peer == self.rank), "peer", "another rank")
        self._refuse(~(np.isfinite(self.amount) & (self.amount >= 0)), "amount", "bytes or seconds of at least 0")
        self._refuse(self._waits_wrongly(), "after", "an earlier step of the rank, or -1")

    def _refuse(self, wrong: NDArray[np.bool_], column: str, wanted: str) -> None:
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            where = f"rank {self.rank[row]}, step {self.step[row]}: {column}"
            raise NetsimError(f"{self.name}: {where}: expecting {wanted}, got {getattr(self, column)[row]}")

    def _waits_wrongly(self) -> NDArray[np.bool_]:
        if (self.after < 0).all():
            return np.zeros(len(self.after), dtype=bool)
        wrong: NDArray[np.bool_] = (self.after >= 0) & ((self.after >= self.step) | (self.waits[1] < 0))
        return wrong

    @cached_property
    def waits(self) -> tuple[int, Integers]:
        """Number of steps of all ranks, and the number among them of the step that each operation waits for.

        The number is -1 for an operation that waits for none.
        """
        pair = np.stack((self.rank, self.step))
        begins = np.append(True, (np.diff(pair) != 0).any(axis=0))[: len(self.rank)]
        waiting = np.flatnonzero(self.after >= 0)
        found = np.full(len(self.rank), -1)
        if len(waiting):
            steps = pair[:, begins]
            low, size = int(self.step.min()), int(np.ptp(self.step)) + 1
            keys = steps[0] * size + steps[1] - low
            wanted = self.rank[waiting] * size + self.after[waiting] - low
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            there = (keys[at] == wanted) & (self.after[waiting] >= low)
            found[waiting] = np.where(there, at, -1)
        return int(begins.sum()), found

    @property
    def num_ranks(self) -> int:
        """Number of ranks, p."""
        return len(self.hosts)

    @property
    def marks(self) -> list[int]:
        """The numbers of the steps that have names, each once, ascending."""
        return sorted(set(self.named.values()))

    def cut(self, parts: int) -> Program:
        """Cut every message into equal parts; each step becomes ``parts`` steps, in which one part is sent.

        The window grows by the same factor. A step's name goes to the last of the steps that it becomes.

        :param parts: number of parts of every message.

        :raises NetsimError: if ``parts`` is below 1.
        """
        if parts < 1:
            raise NetsimError(f"{self.name}: expecting at least 1 part of a message, got {parts}")
        part = np.tile(np.arange(parts), len(self.rank))
        columns = {name: np.repeat(getattr(self, name), parts) for name in COLUMNS}
        once = columns["kind"] == COMPUTE
        kept = ~once | (part == 0)
        columns["step"] = columns["step"] * parts + part
        columns["amount"] = np.where(once, columns["amount"], columns["amount"] / parts)
        columns["after"] = self._cut_waits(parts)
        cut = {name: column[kept] for name, column in columns.items()}
        of_step = cut["step"] // parts
        named = {name: int(cut["step"][of_step == step].max()) for name, step in self.named.items()}
        return replace(self, window=self.window * parts, named=named, **cut)

    def _cut_waits(self, parts: int) -> Integers:
        """The step that each operation waits for if messages are cut, shape (rows * parts,).

        It is the last of the steps that the step becomes; a step of compute bursts alone becomes one step.

        :param parts: number of parts of every message.
        """
        steps, waits = self.waits
        begins = np.append(True, (np.diff(self.rank) != 0) | (np.diff(self.step) != 0))[: len(self.rank)]
        sends = np.bincount(np.cumsum(begins) - 1, weights=self.kind != COMPUTE, minlength=steps) > 0
        last = np.where(sends[waits], parts - 1, 0) if steps else np.zeros(0, dtype=np.int64)
        return np.repeat(np.where(waits < 0, -1, self.after * parts + last), parts)

    @cached_property
    def messages(self) -> ProgramMessages:
        """The messages, each with its send and its receive.

        :raises NetsimError: if a send has no receive, or its receive has another number of bytes.
        """
        size, tags = self.num_ranks, self._tags[0]
        (sends, sent), (receives, received) = self._ends(SEND), self._ends(RECEIVE)
        if len(sent) != len(received) or (sent != received).any():
            pairs = np.unique(np.concatenate((sent, received)))
            there, back = (
                np.searchsorted(keys, pairs, "right") - np.searchsorted(keys, pairs) for keys in (sent, received)
            )
            wrong = np.flatnonzero(there != back)[0]
            text = f"rank {pairs[wrong] // tags // size} to rank {pairs[wrong] // tags % size}"
            raise NetsimError(f"{self.name}: {text}: expecting {there[wrong]} receives, got {back[wrong]}")
        unlike = np.flatnonzero(self.amount[sends] != self.amount[receives])
        if len(unlike):
            row, other = sends[unlike[0]], receives[unlike[0]]
            text = f"rank {self.rank[other]}, step {self.step[other]}: amount"
            raise NetsimError(f"{self.name}: {text}: expecting {self.amount[row]:g} bytes, got {self.amount[other]:g}")
        return ProgramMessages(self.rank[sends], self.peer[sends], self.amount[sends], sends, receives)

    @cached_property
    def _tags(self) -> tuple[int, Integers]:
        """Number of different tags, and each row's index among them."""
        if not self.tag.any():
            return 1, self.tag
        tags, which = np.unique(self.tag, return_inverse=True)
        return len(tags), which

    def _ends(self, kind: int) -> tuple[Integers, Integers]:
        """The rows of all sends or receives, sorted by sender, receiver, tag and order, and a number for these three.

        The number is (sender * p + receiver) * (number of different tags) + index of the tag.

        :param kind: ``SEND`` or ``RECEIVE``.
        """
        rows = np.flatnonzero(self.kind == kind)
        source, target = (self.rank, self.peer) if kind == SEND else (self.peer, self.rank)
        tags, tag = self._tags
        pair = (source[rows] * self.num_ranks + target[rows]) * tags + tag[rows]
        order = np.argsort(pair, kind="stable")
        return rows[order], pair[order]
