"""The operations of one rank of a trace, in order, and their conversion into a program."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....netsim import COMPUTE, RECEIVE, SEND, Program
from ..errors import InterferenceError

__all__ = ["Message", "Operations", "Trace"]

Integers = NDArray[np.int64]
Message = tuple[int, float, int]  # peer, bytes, tag
COLUMNS = {"step": "q", "kind": "q", "peer": "q", "amount": "d", "tag": "q", "after": "q", "line": "q"}


@dataclass(frozen=True, eq=False)
class Trace:
    """A recorded or generated program of MPI ranks, without the nodes on which it runs.

    :param ranks: program with rank r on host r; compute bursts have the seconds of the recorded machine.
    :param notes: oddities of the source, one sentence each.
    :param ordered: whether the source has an order of messages and bursts.
    :param recorded: seconds of the recorded run, from which the computation of a source without bursts follows; 0 if
        they are unknown, or the bursts are given.
    """

    ranks: Program
    notes: tuple[str, ...] = ()
    ordered: bool = True
    recorded: float = 0.0

    @property
    def name(self) -> str:
        """Name of the trace."""
        return self.ranks.name

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.ranks.num_ranks

    def on(self, hosts: ArrayLike, speed: float = 1.0, **about: Any) -> Program:
        """Place the ranks on hosts.

        :param hosts: host of each rank (Dimemas' mapping vector), shape (ranks,).
        :param speed: speed of the processors relative to the recorded machine; bursts are divided by it.
        :param about: further parameters of ``Program``: ``repeat``, ``lane``, ``start``, ``name``.
        :raises InterferenceError: if there are not as many hosts as ranks, or the speed is not above 0.
        """
        mapping = np.asarray(hosts, dtype=np.int64)
        if mapping.shape != (self.size,):
            raise InterferenceError(f"{self.name}: expecting a host of each of {self.size} ranks, got {mapping.size}")
        if not (np.isfinite(speed) and speed > 0):
            raise InterferenceError(f"{self.name}: expecting a speed above 0, got {speed:g}")
        burst = self.ranks.kind == COMPUTE
        amount = np.where(burst, self.ranks.amount / speed, self.ranks.amount)
        return replace(self.ranks, hosts=mapping, amount=amount, **about)

    def computing(self, seconds: float) -> Trace:
        """The same trace with all bursts equally long, so that the mean rank computes for these seconds."""
        burst = self.ranks.kind == COMPUTE
        each = seconds * self.size / max(int(burst.sum()), 1)
        ranks = replace(self.ranks, amount=np.where(burst, each, self.ranks.amount))
        return replace(self, ranks=ranks, recorded=0.0)


class Operations:
    """The operations of one rank, which are added in the order in which the rank begins them.

    Messages do not block; ``wait`` makes the rank's next operation wait for a step. A step is a burst, or messages that
    are posted together.
    """

    def __init__(self) -> None:
        self.columns: dict[str, array[Any]] = {name: array(code) for name, code in COLUMNS.items()}
        self._append = tuple(self.columns[name].append for name in COLUMNS)
        self._steps = 0
        self._waits: list[int] = []
        self._complete: set[int] = set()  # steps for which an earlier operation waits

    def _row(self, *values: float) -> None:
        for append, value in zip(self._append, values, strict=True):
            append(value)

    def compute(self, seconds: float, line: int = 0) -> int:
        """Add a compute burst, and return its step.

        :param seconds: length of the burst in seconds.
        :param line: line of the source.
        """
        after = self._begin(line)
        kinds, amounts = self.columns["kind"], self.columns["amount"]
        if after < 0 and kinds and kinds[-1] == COMPUTE:
            amounts[-1] += seconds
            return self._steps - 1
        self._row(self._steps, COMPUTE, 0, seconds, 0, after, line)
        self._steps += 1
        return self._steps - 1

    def post(self, receives: Iterable[Message], sends: Iterable[Message], line: int = 0) -> int:
        """Add messages that are posted together, and return their step.

        :param receives: peer, bytes and tag of each message to receive.
        :param sends: peer, bytes and tag of each message to send.
        :param line: line of the source.
        """
        after = self._begin(line)
        for kind, messages in ((RECEIVE, receives), (SEND, sends)):
            for peer, nbytes, tag in messages:
                self._row(self._steps, kind, peer, nbytes, tag, after, line)
                after = -1  # the rank's operations begin in order, so that the first one waits for all
        self._steps += 1
        return self._steps - 1

    def wait(self, step: int) -> None:
        """Make the next operation wait until a step is complete.

        :param step: result of ``post``.
        """
        if step not in self._complete:
            self._complete.add(step)
            self._waits.append(step)

    def _begin(self, line: int) -> int:
        """Add a burst of 0 s for each step to wait for but the last, and return the last; -1 if there is none."""
        *several, last = self._waits or [-1]
        for step in several:
            self._row(self._steps, COMPUTE, 0, 0.0, 0, step, line)
            self._steps += 1
        self._waits.clear()
        return last


def columns_of(ranks: Sequence[Operations]) -> dict[str, NDArray[Any]]:
    """The operations of all ranks as columns, with a further column ``rank``.

    :param ranks: operations of each rank.
    """
    found: dict[str, NDArray[Any]] = {
        name: np.concatenate([np.array(one.columns[name]) for one in ranks]) for name in COLUMNS
    }
    counts = [len(one.columns["kind"]) for one in ranks]
    return found | {"rank": np.repeat(np.arange(len(ranks)), counts)}
