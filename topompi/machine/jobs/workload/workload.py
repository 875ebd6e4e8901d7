"""The workload, a list of jobs that is stored as columns in the order of their arrival."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import WorkloadError

__all__ = ["LATEST", "Column", "LeftOut", "Workload", "header_cores", "header_number", "larger", "segments"]

Integers = NDArray[np.int64]
Column = NDArray[Any]
FIXED = ("number", "submit", "run", "request", "nodes", "user")
LATEST = 10**15  # seconds; all times are below it, so that sums over some thousand jobs stay within 64 bits


@dataclass
class LeftOut:
    """A record of the jobs that a reader left out.

    :param partial: whether a wrong line is counted and reading continues; else an error is raised.
    :param dropped: number of jobs left out, by reason.
    :param problems: error messages of the wrong lines so far; empty unless ``partial`` is set.
    :param notes: lines about guesses and about jobs that are read as something else than the log has.
    """

    partial: bool = False
    dropped: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def drop(self, reason: str) -> None:
        """Count a job that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def problem(self, error: WorkloadError) -> None:
        """Raise the error; if ``partial`` is set, record its message and return instead."""
        if not self.partial:
            raise error
        self.problems.append(str(error))


@dataclass(frozen=True, eq=False)
class Workload:
    """A list of n jobs in the order of their arrival, as columns of shape (n,); times are whole seconds.

    :param name: name of the source of the jobs.
    :param number: numbers of the jobs in the log.
    :param submit: second at which each job arrives, ascending.
    :param run: seconds that each job runs unless it is ended before, 0 or more.
    :param request: run time in seconds that each job's user requested, 0 if none.
    :param nodes: number of nodes that each job needs, 1 or more.
    :param user: numbers of the users, -1 if unknown.
    :param header: the log's header, line by line.
    :param reading: record of the jobs that the reader left out.
    :param columns: further columns by name, of truth values, whole or real numbers, or texts. Two have a meaning here:
        ``slots`` is the number of slots that a job asks for, 0 if it asks for whole nodes; ``shared`` is whether its
        nodes may be shared with other jobs.
    """

    name: str
    number: Integers
    submit: Integers
    run: Integers
    request: Integers
    nodes: NDArray[np.int32]
    user: NDArray[np.int32]
    header: tuple[str, ...] = ()
    reading: LeftOut = field(default_factory=LeftOut)
    columns: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        *,
        submit: ArrayLike,
        run: ArrayLike,
        nodes: ArrayLike,
        request: ArrayLike | None = None,
        number: ArrayLike | None = None,
        user: ArrayLike | None = None,
        header: tuple[str, ...] = (),
        reading: LeftOut | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
    ) -> Workload:
        """Make a workload from columns of jobs in any order; jobs are sorted by arrival, stably.

        :param name: name of the source of the jobs.
        :param submit: seconds at which jobs arrive, shape (n,), below ``LATEST``.
        :param run: seconds that jobs run, shape (n,), below ``LATEST``.
        :param nodes: number of nodes of each job, 1 or more, shape (n,).
        :param request: run time in seconds that users requested, shape (n,), below ``LATEST``; None if there are no
            requests.
        :param number: numbers of the jobs, shape (n,); None to number them from 1 to n.
        :param user: numbers of the users, shape (n,); None if they are unknown (-1).
        :param header: header lines to keep.
        :param reading: record of the jobs that the reader left out.
        :param columns: further columns by name.
        :raises WorkloadError: if columns differ in length or have a wrong type, a time is negative, or a job has no
            nodes.
        """
        arrive = _column(name, "submit", submit, 0)
        count = len(arrive)
        fixed = {
            "run": _column(name, "run", run, 0),
            "request": np.zeros(count, np.int64) if request is None else _column(name, "request", request, 0),
            "number": np.arange(1, count + 1) if number is None else _column(name, "number", number, -LATEST),
            "nodes": _column(name, "nodes", nodes, 1, 2**31),
            "user": np.full(count, -1) if user is None else _column(name, "user", user, -1, 2**31),
        }
        free = {word: _free_column(name, word, values) for word, values in (columns or {}).items()}
        for word, column in (*fixed.items(), *free.items()):
            if len(column) != count:
                raise WorkloadError(f"{name}: expecting {count} values of {word}, got {len(column)}")
        order = np.argsort(arrive, kind="stable")
        kinds = {"nodes": np.int32, "user": np.int32}
        in_order: dict[str, Any] = {
            word: column[order].astype(kinds.get(word, np.int64)) for word, column in fixed.items()
        }
        in_order["columns"] = {word: column[order] for word, column in free.items()}
        return cls(name, submit=arrive[order], header=header, reading=reading or LeftOut(), **in_order)

    def __len__(self) -> int:
        return len(self.submit)

    def select(self, chosen: ArrayLike | slice, name: str = "") -> Workload:
        """Return the jobs that an array of positions, a mask or a slice selects; their arrival times stay.

        :param chosen: positions in this workload in the order of the new one, or the mask or slice.
        :param name: name of the new workload; if it is "", that of this one.
        """
        at = np.arange(len(self))[chosen if isinstance(chosen, slice) else np.asarray(chosen)]
        fixed = {one: getattr(self, one)[at] for one in FIXED}
        free = {one: column[at] for one, column in self.columns.items()}
        return replace(self, name=name or self.name, columns=free, **fixed)

    def __getitem__(self, name: str) -> Column:
        """Return the column of this name, one of the fixed columns or of ``columns``.

        :raises WorkloadError: if the workload has no column of this name.
        """
        if name not in FIXED and name not in self.columns:
            raise WorkloadError(
                f"{self.name}: expecting a column of {', '.join((*FIXED, *self.columns))}, got {name!r}"
            )
        column: Column = getattr(self, name) if name in FIXED else self.columns[name]
        return column

    def with_columns(self, **columns: ArrayLike) -> Workload:
        """Return the same jobs with the given further columns, which replace further columns of the same names.

        :raises WorkloadError: if a column has another length, a wrong type, or the name of a fixed column.
        """
        made = {word: _free_column(self.name, word, values) for word, values in columns.items()}
        for word, column in made.items():
            if len(column) != len(self):
                raise WorkloadError(f"{self.name}: expecting {len(self)} values of {word}, got {len(column)}")
        return replace(self, columns={**self.columns, **made})

    @property
    def slots(self) -> Integers:
        """Number of slots that each job asks for, 0 for whole nodes."""
        return self.columns.get("slots", np.zeros(len(self), dtype=np.int64))

    @property
    def shared(self) -> NDArray[np.bool_]:
        """Whether each job's nodes may be shared with other jobs that allow it."""
        return self.columns.get("shared", np.zeros(len(self), dtype=bool))

    @cached_property
    def machine_nodes(self) -> int | None:
        """Number of nodes of the log's machine, from the header's ``MaxNodes``; None if it is missing."""
        return header_number(self.header, "MaxNodes")

    @cached_property
    def machine_cores(self) -> int:
        """Number of processors of each node of the log's machine, ``MaxProcs`` / ``MaxNodes`` of the header, else 1."""
        return header_cores(self.header)

    @cached_property
    def estimate(self) -> Integers:
        """Run time in seconds on which a scheduler relies: what the user requested if known, else the true run time."""
        return np.where(self.request > 0, self.request, self.run)

    @cached_property
    def duration(self) -> Integers:
        """Seconds that each job runs; a job that reaches its requested time is ended then."""
        return np.minimum(self.run, self.estimate)


def header_number(header: Iterable[str], name: str) -> int | None:
    """Return the number in the header's first line of a name, such as ``; MaxNodes: 8 (of 9)``; None if there is none.

    :param header: lines of the header.
    :param name: the name.
    """
    for line in header:
        if match := re.fullmatch(rf";\s*{name}:\s*([0-9]{{1,9}})\b.*", line):
            return int(match[1]) or None
    return None


def header_cores(header: Sequence[str]) -> int:
    """Return the number of processors per node, ``MaxProcs`` / ``MaxNodes``; 1 if it is unknown or no whole number."""
    nodes = header_number(header, "MaxNodes") or 0
    cores, rest = divmod(header_number(header, "MaxProcs") or 0, nodes or 1)
    return cores if nodes and cores and not rest else 1


def _free_column(name: str, word: str, values: ArrayLike) -> Column:
    if word in FIXED:
        raise WorkloadError(f"{name}: expecting a further column, got {word}, which every workload has")
    if word == "slots":
        return _column(name, word, values, 0, 2**31)
    column = np.asarray(values)
    if column.dtype.kind == "U":
        column = column.astype(object)  # because in numpy's texts of equal width, each takes the memory of the longest
    kinds, wanted = ("b", "truth values") if word == "shared" else ("biufO", "numbers, truth values or texts")
    texts = column.dtype.kind != "O" or all(type(one) is str for one in column.flat)
    if column.ndim != 1 or (column.size and column.dtype.kind not in kinds) or not texts:
        raise WorkloadError(f"{name}: expecting {wanted} of {word} in one row, got {column.dtype} {column.shape}")
    return column.astype({"i": np.int64, "u": np.int64, "b": bool}.get(column.dtype.kind, column.dtype))


def _column(name: str, word: str, values: ArrayLike, least: int, below: int = LATEST) -> Integers:
    column = np.asarray(values)
    if column.ndim != 1 or (column.dtype.kind not in "iu" and column.size):
        raise WorkloadError(f"{name}: expecting whole numbers of {word} in one row, got {column.dtype} {column.shape}")
    wrong = np.flatnonzero((column < least) | (column >= below))
    if len(wrong):
        at = int(wrong[0])
        raise WorkloadError(f"{name}: job {at + 1}: expecting {word} in {least}..{below - 1}, got {column[at]}")
    return column.astype(np.int64)


def larger(workload: Workload, factor: int) -> Workload:
    """Multiply the nodes and slots of every job by a factor, not its times (Pollard et al., SC18, 2x and 3x logs)."""
    if factor < 1:
        raise WorkloadError(f"larger: expecting a factor of 1 or more, got {factor}")
    made = replace(workload, name=f"{workload.name} {factor}x", nodes=workload.nodes * np.int32(factor))
    return made.with_columns(slots=workload.slots * factor) if "slots" in workload.columns else made


def segments(workload: Workload, count: int) -> list[Workload]:
    """Divide a log into ``count`` parts of equal numbers of jobs, so that each can be simulated on its own."""
    if not 1 <= count <= max(1, len(workload)):
        raise WorkloadError(f"segments: expecting 1 to {max(1, len(workload))}, got {count}")
    parts = np.array_split(np.arange(len(workload)), count)
    return [workload.select(part, f"{workload.name} part {at}") for at, part in enumerate(parts, 1)]
