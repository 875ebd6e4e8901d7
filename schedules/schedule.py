"""The one representation of a collective: who sends which blocks to whom in which step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .phases import Phases

__all__ = ["COLLECTIVES", "COLUMNS", "COPY", "INPUT", "OUTPUT", "REDUCE", "ROOTED", "SCRATCH", "Schedule"]

Integers = NDArray[np.int64]
Column = NDArray[np.int32]

INPUT, OUTPUT, SCRATCH = range(3)  # buffers
COPY, REDUCE = range(2)  # operations

COLLECTIVES = (
    *("bcast", "gather", "scatter", "allgather", "reduce", "reduce_scatter", "allreduce", "alltoall"),
    *("scan", "exscan", "barrier"),
)
ROOTED = ("bcast", "gather", "scatter", "reduce")
UNCOUNTED = ("bcast", "reduce", "allreduce", "scan", "exscan", "barrier")  # all ranks have equally many blocks
COLUMNS = (
    "step",
    "source",
    "destination",
    "source_buffer",
    "source_block",
    "destination_buffer",
    "destination_block",
    "count",
    "operation",
)


@dataclass(frozen=True, eq=False)
class Schedule:
    """A collective as columns, one row a transfer of ``count`` consecutive blocks from one buffer to another.

    Within a step every transfer reads the state before the step and writes places that no other transfer of the step
    touches (reductions into one place excepted). A rank enters its next step when its own transfers of this step are
    complete: there is no global barrier. A row whose source is its destination is a local move.

    What the buffers hold, with b = ``blocks`` and p = ``size``:

    ============== ============================ =================================== =========================
    collective     input of rank r              output of rank r                    blocks of rank r's share
    ============== ============================ =================================== =========================
    bcast          root: b                      all: b (the root's input)           -
    gather         counts[r]                    root: sum of counts, by rank        counts[r], default b
    scatter        root: sum of counts          counts[r]                           counts[r], default b
    allgather      counts[r]                    sum of counts, by rank              counts[r], default b
    reduce         b                            root: b                             -
    reduce_scatter sum of counts, by rank       counts[r]                           counts[r], default b
    allreduce      b                            b                                   -
    alltoall       sum of row r, by destination sum of column r, by source          counts[r, d], default b
    scan           b                            b: ranks 0 to r combined            -
    exscan         b                            b: ranks 0 to r - 1; rank 0: none   -
    barrier        -                            - (all messages are empty)          -
    ============== ============================ =================================== =========================

    The input is never written. Blocks are of equal size; what that is in bytes is the caller's.

    A schedule ``from_phases`` makes its columns when one of them is first asked for; ``rows_of`` one rank does not ask.

    :param collective: one of ``COLLECTIVES``.
    :param size: number of ranks, p.
    :param algorithm: the generator's name, for people.
    :param root: the root of a rooted collective, else None.
    :param blocks: blocks of one message, b.
    :param counts: blocks of each rank, shape (p,), or of each pair, shape (p, p), for the v-forms; None if equal.
    :param independent: whether steps may overlap: a rank may have transfers of several steps in flight.
    :param window: how many steps a rank has in flight at most where ``independent``; 0 for no bound.
    :param step: step of each transfer, shape (rows,), from 0, ascending; likewise the further columns.
    """

    collective: str
    size: int
    algorithm: str
    step: Column
    source: Column
    destination: Column
    source_buffer: Column
    source_block: Column
    destination_buffer: Column
    destination_block: Column
    count: Column
    operation: Column
    root: int | None = None
    blocks: int = 1
    counts: Integers | None = None
    independent: bool = False
    window: int = field(default=1)
    phases: ClassVar[Phases | None] = None  # of those that ``from_phases`` made, theirs

    def __post_init__(self) -> None:
        self._check()
        columns = self.columns()
        if len({np.shape(column) for column in columns.values()}) != 1 or np.ndim(self.step) != 1:
            raise ValueError("expecting columns of one length")
        for name, column in columns.items():
            object.__setattr__(self, name, _frozen(name, column))
        if (np.diff(self.step) < 0).any():
            raise ValueError("expecting transfers in the order of their steps")
        if len(self.step) and self.step[0] < 0:
            raise ValueError(f"expecting steps from 0, got {self.step[0]}")

    def _check(self) -> None:
        """Refuse what no columns could be right for."""
        if self.collective not in COLLECTIVES:
            raise ValueError(f"expecting one of {', '.join(COLLECTIVES)}, got {self.collective!r}")
        if self.size < 1:
            raise ValueError(f"expecting at least one rank, got {self.size}")
        if (self.collective in ROOTED) != (self.root is not None):
            raise ValueError(f"expecting {'a' if self.root is None else 'no'} root for {self.collective}")
        if self.root is not None and not 0 <= self.root < self.size:
            raise ValueError(f"expecting root in range({self.size}), got {self.root}")
        for name, least in (("blocks", self.blocks), ("window", self.window)):
            if least < 0:
                raise ValueError(f"expecting at least 0 {name}, got {least}")
        self._freeze_counts()

    def _freeze_counts(self) -> None:
        if self.counts is None:
            return
        if self.collective in UNCOUNTED:
            raise ValueError(f"expecting no counts for {self.collective}")
        shape = (self.size,) * (2 if self.collective == "alltoall" else 1)
        counts = np.array(self.counts, dtype=np.int64)
        if counts.shape != shape:
            raise ValueError(f"expecting counts of shape {shape}, got {counts.shape}")
        if (counts < 0).any():
            raise ValueError(f"expecting counts of at least 0, got {counts.min()}")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    def __repr__(self) -> str:
        rooted = "" if self.root is None else f", root {self.root}"
        return f"Schedule({self.collective} {self.algorithm!r}{rooted}: {self.size:,} ranks, {self.blocks:,} block(s))"

    @classmethod
    def from_rows(
        cls,
        collective: str,
        size: int,
        algorithm: str,
        rows: Sequence[Sequence[int]] | Integers,
        *,
        root: int | None = None,
        blocks: int = 1,
        counts: Integers | None = None,
        independent: bool = False,
        window: int = 1,
    ) -> Schedule:
        """A schedule from its rows, in any order.

        :param collective: as the class; likewise ``size``, ``algorithm``, ``root``, ``blocks``, ``counts``,
            ``independent`` and ``window``.
        :param rows: in any order: step, source, destination, source buffer, source block, destination buffer,
            destination block, count and operation of each, shape (rows, 9).
        """
        table = _in_steps(np.asarray(rows, dtype=np.int64).reshape(-1, len(COLUMNS)))
        columns: dict[str, Any] = dict(zip(COLUMNS, table.T, strict=True))
        return cls(
            collective,
            size,
            algorithm,
            root=root,
            blocks=blocks,
            counts=counts,
            independent=independent,
            window=window,
            **columns,
        )

    @classmethod
    def from_phases(
        cls,
        collective: str,
        size: int,
        algorithm: str,
        phases: Phases,
        *,
        root: int | None = None,
        blocks: int = 1,
        counts: Integers | None = None,
        independent: bool = False,
        window: int = 1,
    ) -> Schedule:
        """A schedule from its phases, whose rows are made when they are asked for.

        It can be pickled where its phases can.

        :param collective: as the class; likewise ``size``, ``algorithm``, ``root``, ``blocks``, ``counts``,
            ``independent`` and ``window``.
        :param phases: what makes the rows.
        """
        schedule = object.__new__(cls)
        settings = (collective, size, algorithm, phases, root, blocks, counts, independent, window)
        names = ("collective", "size", "algorithm", "phases", "root", "blocks", "counts", "independent", "window")
        for name, value in zip(names, settings, strict=True):
            object.__setattr__(schedule, name, value)
        schedule._check()
        return schedule

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The columns of a schedule from phases: nothing else is ever missing."""
            if name not in COLUMNS or self.phases is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            tables = [_later(phase.rows(), start) for start, phase in self.phases]
            for one, column in zip(COLUMNS, _in_steps(_joined(tables)).T, strict=True):
                object.__setattr__(self, one, _frozen(one, column))
            return self.__dict__[name]

    def rows(self) -> Integers:
        """All columns as one table, shape (rows, 9)."""
        return np.stack(list(self.columns().values()), axis=1).astype(np.int64)

    def rows_of(self, rank: int) -> Integers:
        """The rows that a rank takes part in, in their order, shape (rows, 9).

        Where the schedule is made from phases, those of the other ranks are not made.

        :raises ValueError: for a rank that there is not.
        """
        if not 0 <= rank < self.size:
            raise ValueError(f"expecting rank in range({self.size}), got {rank}")
        if self.phases is None or "step" in self.__dict__:
            mine = self.of_rank(rank)
            return np.stack([column[mine] for column in self.columns().values()], axis=1).astype(np.int64)
        return _in_steps(_joined([_later(phase.of_rank(rank), start) for start, phase in self.phases]))

    def columns(self) -> dict[str, Column]:
        """The columns by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def num_rows(self) -> int:
        """Number of transfers, local moves included."""
        return len(self.step)

    @cached_property
    def num_steps(self) -> int:
        """Number of steps."""
        if self.phases is not None:
            return max((start + phase.steps for start, phase in self.phases), default=0)
        return int(self.step[-1]) + 1 if self.num_rows else 0

    @cached_property
    def messages(self) -> NDArray[np.intp]:
        """Rows that are messages between two ranks."""
        return np.flatnonzero(self.source != self.destination)

    def of_rank(self, rank: int) -> NDArray[np.intp]:
        """Rows that a rank takes part in."""
        return np.flatnonzero((self.source == rank) | (self.destination == rank))

    def share(self) -> Integers:
        """Blocks of each rank, shape (p,), or of each ordered pair, shape (p, p), for alltoall."""
        shape = (self.size, self.size) if self.collective == "alltoall" else (self.size,)
        if self.counts is None:
            return np.full(shape, self.blocks, dtype=np.int64)
        return np.asarray(self.counts, dtype=np.int64).reshape(shape)


def _joined(tables: Sequence[Integers]) -> Integers:
    return np.concatenate(tables) if tables else np.empty((0, len(COLUMNS)), dtype=np.int64)


def _in_steps(rows: Integers) -> Integers:
    """Rows by step, those of one step in the order given."""
    return rows[np.argsort(rows[:, 0], kind="stable")]


def _later(rows: Integers, steps: int) -> Integers:
    """Rows so many steps later."""
    return rows + np.eye(1, len(COLUMNS), dtype=np.int64) * steps if steps else rows


def _frozen(name: str, column: Column) -> Column:
    """A column of our own that nobody can write; what does not fit 32 bits is refused, not wrapped around."""
    given = np.asarray(column)
    own = given.astype(np.int32)
    if given.dtype != np.int32 and (own != given).any():
        raise ValueError(f"expecting 32-bit integers in {name}, got {given[own != given][0]}")
    own.setflags(write=False)
    return own
