"""The representation of all collectives: a table of which rank sends which blocks to which rank in which step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .phases import Phases

if TYPE_CHECKING:
    from .neighbourhood import Neighbourhood

__all__ = [
    "COLLECTIVES",
    "COLUMNS",
    "COPY",
    "INPUT",
    "NEIGHBOURHOODS",
    "OUTPUT",
    "REDUCE",
    "ROOTED",
    "SCRATCH",
    "Schedule",
]

Integers = NDArray[np.int64]
Column = NDArray[np.int32]

INPUT, OUTPUT, SCRATCH = range(3)  # buffers
COPY, REDUCE = range(2)  # operations

COLLECTIVES = (
    *("bcast", "gather", "scatter", "allgather", "reduce", "reduce_scatter", "allreduce", "alltoall"),
    *("scan", "exscan"),
    "barrier",
)
NEIGHBOURHOODS = ("neighbor_allgather", "neighbor_alltoall")  # collectives along the edges of a graph
ROOTED = ("bcast", "gather", "scatter", "reduce")
UNCOUNTED = (*NEIGHBOURHOODS, "barrier", "bcast", "reduce", "allreduce", "scan", "exscan")  # without ``counts``
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
    """A collective as columns with one row per transfer, of ``count`` consecutive blocks from one buffer to another.

    Every transfer of a step reads the state before the step and writes blocks that no other transfer of the step writes
    or reads (several reductions into one block are allowed). A rank enters its next step when its own transfers of this
    step are complete: there is no global barrier. A row with equal source and destination is a local move.

    The contents of the buffers, with b = ``blocks`` and p = ``size``:

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

    In a neighbourhood collective the input and the output have the blocks of each edge, in the order of the rank's
    edges; the input of a ``neighbor_allgather`` has one block for all edges.

    The input is never written. All blocks have the same size in bytes, which the caller chooses.

    A schedule made by ``from_phases`` computes its columns when one of them is first read; ``rows_of`` computes the
    rows of one rank only.

    :param collective: one of ``COLLECTIVES`` or ``NEIGHBOURHOODS``.
    :param size: number of ranks, p.
    :param algorithm: name of the generator, for display.
    :param root: the root of a rooted collective, else None.
    :param graph: the edges of a neighbourhood collective, with their numbers of blocks, else None.
    :param blocks: number of blocks of one message, b.
    :param counts: blocks of each rank, shape (p,), or of each pair of ranks, shape (p, p), for the v-forms; None if all
        are equal.
    :param independent: whether steps may overlap, so that a rank has transfers of several steps in flight.
    :param window: largest number of steps that a rank has in flight if ``independent``; 0 for no limit.
    :param step: step of each transfer, shape (rows,), from 0, ascending.
    :param source: sending rank of each transfer, shape (rows,).
    :param destination: receiving rank of each transfer, shape (rows,).
    :param source_buffer: buffer that each transfer reads (``INPUT``, ``OUTPUT`` or ``SCRATCH``), shape (rows,).
    :param source_block: first block that each transfer reads, shape (rows,).
    :param destination_buffer: buffer that each transfer writes (``OUTPUT`` or ``SCRATCH``), shape (rows,).
    :param destination_block: first block that each transfer writes, shape (rows,).
    :param count: number of blocks of each transfer, shape (rows,).
    :param operation: ``COPY`` or ``REDUCE`` at the destination, shape (rows,).
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
    graph: Neighbourhood | None = None
    phases: ClassVar[Phases | None] = None  # set on the instance by ``from_phases``

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
        """Refuse wrong values of the fields other than the columns."""
        if self.collective not in COLLECTIVES and self.collective not in NEIGHBOURHOODS:
            raise ValueError(f"expecting one of {', '.join(COLLECTIVES)}, got {self.collective!r}")
        if (self.collective in NEIGHBOURHOODS) != (self.graph is not None):
            raise ValueError(f"expecting {'a' if self.graph is None else 'no'} graph for {self.collective}")
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
        graph: Neighbourhood | None = None,
    ) -> Schedule:
        """Make a schedule from a table of its rows.

        :param collective: one of ``COLLECTIVES``.
        :param size: number of ranks, p.
        :param algorithm: name of the generator, for display.
        :param rows: rows in any order, shape (rows, 9): step, source, destination, source buffer, source block,
            destination buffer, destination block, count and operation.
        :param root: the root of a rooted collective, else None.
        :param blocks: number of blocks of one message.
        :param counts: blocks of each rank, shape (p,), or of each pair of ranks, shape (p, p); None if all are equal.
        :param independent: whether steps may overlap, so that a rank has transfers of several steps in flight.
        :param window: largest number of steps that a rank has in flight if ``independent``; 0 for no limit.
        :param graph: the edges of a neighbourhood collective, else None.
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
            graph=graph,
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
        """Make a schedule from phases; its rows are computed when they are first read.

        The schedule can be pickled if its phases can.

        :param collective: one of ``COLLECTIVES``.
        :param size: number of ranks, p.
        :param algorithm: name of the generator, for display.
        :param phases: phases, each with the step in which it begins.
        :param root: the root of a rooted collective, else None.
        :param blocks: number of blocks of one message.
        :param counts: blocks of each rank, shape (p,), or of each pair of ranks, shape (p, p); None if all are equal.
        :param independent: whether steps may overlap, so that a rank has transfers of several steps in flight.
        :param window: largest number of steps that a rank has in flight if ``independent``; 0 for no limit.
        """
        schedule = object.__new__(cls)
        settings = (collective, size, algorithm, phases, root, blocks, counts, independent, window)
        names = ("collective", "size", "algorithm", "phases", "root", "blocks", "counts", "independent", "window")
        for name, value in zip(names, settings, strict=True):
            object.__setattr__(schedule, name, value)
        schedule._check()
        return schedule

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Compute the columns of a schedule made from phases; no other attribute is ever missing."""
            if name not in COLUMNS or self.phases is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            tables = [_later(phase.rows(), start) for start, phase in self.phases]
            for one, column in zip(COLUMNS, _in_steps(_joined(tables)).T, strict=True):
                object.__setattr__(self, one, _frozen(one, column))
            return self.__dict__[name]

    def rows(self) -> Integers:
        """The columns as one table, shape (rows, 9)."""
        return np.stack(list(self.columns().values()), axis=1).astype(np.int64)

    def rows_of(self, rank: int) -> Integers:
        """The rows that a rank takes part in, in the schedule's order, shape (rows, 9).

        If the schedule is made from phases, the rows of other ranks are not computed.

        :raises ValueError: if ``rank`` is not in range(size).
        """
        if not 0 <= rank < self.size:
            raise ValueError(f"expecting rank in range({self.size}), got {rank}")
        if self.phases is None or "step" in self.__dict__:
            mine = self.of_rank(rank)
            return np.stack([column[mine] for column in self.columns().values()], axis=1).astype(np.int64)
        return _in_steps(_joined([_later(phase.of_rank(rank), start) for start, phase in self.phases]))

    def columns(self) -> dict[str, Column]:
        """The columns, each under its name."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def num_rows(self) -> int:
        """Number of transfers, including local moves."""
        return len(self.step)

    @cached_property
    def num_steps(self) -> int:
        """Number of steps."""
        if self.phases is not None:
            return max((start + phase.steps for start, phase in self.phases), default=0)
        return int(self.step[-1]) + 1 if self.num_rows else 0

    @cached_property
    def messages(self) -> NDArray[np.intp]:
        """Indices of the rows that are messages between two ranks, ascending."""
        return np.flatnonzero(self.source != self.destination)

    def of_rank(self, rank: int) -> NDArray[np.intp]:
        """Indices of the rows that a rank takes part in, ascending."""
        return np.flatnonzero((self.source == rank) | (self.destination == rank))

    def share(self) -> Integers:
        """The blocks of each rank, shape (p,); for alltoall the blocks of each ordered pair of ranks, shape (p, p)."""
        shape = (self.size, self.size) if self.collective == "alltoall" else (self.size,)
        if self.counts is None:
            return np.full(shape, self.blocks, dtype=np.int64)
        return np.asarray(self.counts, dtype=np.int64).reshape(shape)


def _joined(tables: Sequence[Integers]) -> Integers:
    return np.concatenate(tables) if tables else np.empty((0, len(COLUMNS)), dtype=np.int64)


def _in_steps(rows: Integers) -> Integers:
    """Sort rows by step; rows of one step keep their order."""
    return rows[np.argsort(rows[:, 0], kind="stable")]


def _later(rows: Integers, steps: int) -> Integers:
    """Delay rows by a number of steps."""
    return rows + np.eye(1, len(COLUMNS), dtype=np.int64) * steps if steps else rows


def _frozen(name: str, column: Column) -> Column:
    """A read-only copy of a column in 32-bit integers. Numbers beyond 32 bits are refused, because they would wrap."""
    given = np.asarray(column)
    own = given.astype(np.int32)
    if given.dtype != np.int32 and (own != given).any():
        raise ValueError(f"expecting 32-bit integers in {name}, got {given[own != given][0]}")
    own.setflags(write=False)
    return own
