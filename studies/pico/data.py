"""The measured times of collectives, and the rows that no comparison may use."""

from __future__ import annotations

import csv
import io
import lzma
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from topompi.errors import BenchmarkError

__all__ = ["DROPPED", "Cell", "Row", "cells_of", "kept", "read_rows", "read_table"]

# Flags of rows that compare nothing: the setting had no effect, a private library ran, the result was not checked or
# belongs to another collective, nothing moved, or the library's default was not the one that users get.
DROPPED = (
    "selection_ineffective",
    "custom_library",
    "result_not_validated",
    "wrong_collective_in_name",
    "zero_block",
    "default_opt_off",
)
MOVING = ("allgather", "alltoall", "bcast", "gather", "scatter")  # collectives that only move data
LONG = 8 << 20  # bytes from which on a moving collective is long
DEFAULT = "library_default"


@dataclass(frozen=True)
class Row:
    """The median time of one algorithm for one size, in one run.

    :param system: the machine.
    :param run: time at which the job started.
    :param ranks: number of ranks.
    :param buffers: ``host``, or the version of CUDA if the buffers are in the memory of GPUs.
    :param collective: the collective.
    :param algorithm: name of the algorithm in the source.
    :param norm: common name of the algorithm; empty if the source does not say what it is.
    :param implementation: the library that ran it.
    :param segment: bytes of a segment; 0 for none.
    :param ports: number of network ports that the algorithm uses at a time.
    :param nbytes: bytes of the total vector.
    :param block: bytes of one rank's block, or of the vector if the collective has no blocks.
    :param seconds: median time in seconds.
    :param flags: warnings of the source.
    """

    system: str
    run: str
    ranks: int
    buffers: str
    collective: str
    algorithm: str
    norm: str
    implementation: str
    segment: int
    ports: int
    nbytes: int
    block: int
    seconds: float
    flags: tuple[str, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether the library chose the algorithm."""
        return self.norm == DEFAULT

    @property
    def kind(self) -> str:
        """The kind of call: a reduction, or a long or short move of data."""
        if self.collective not in MOVING:
            return "reductions"
        return "long moves" if self.nbytes >= LONG else "short moves"


@dataclass(frozen=True)
class Cell:
    """The rows that may be compared: one call of one run, by one implementation."""

    rows: tuple[Row, ...]

    @property
    def first(self) -> Row:
        """The first row; all agree in machine, run, collective, number of ranks, size and implementation."""
        return self.rows[0]

    @property
    def best(self) -> float:
        """The least time of all rows, in seconds."""
        return min(row.seconds for row in self.rows)

    @property
    def default(self) -> float | None:
        """The time of the library's own choice in seconds; None if it was not measured."""
        return next((row.seconds for row in self.rows if row.is_default), None)


def read_table(path: str | Path) -> list[dict[str, str]]:
    """The rows of a CSV file, packed with xz or not, by column.

    :raises BenchmarkError: if the file cannot be read.
    """
    try:
        packed = Path(path).read_bytes()
        text = (lzma.decompress(packed) if Path(path).suffix == ".xz" else packed).decode()
    except (OSError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path}: expecting a CSV file, got {type(error).__name__}: {error}") from error
    return list(csv.DictReader(io.StringIO(text)))


def read_rows(path: str | Path) -> list[Row]:
    """The measured rows of a file, those with every flag included.

    :raises BenchmarkError: if a column is missing or a number is wrong; the message names the line.
    """
    found = []
    for line, row in enumerate(read_table(path), 2):
        try:
            found.append(_row(row))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BenchmarkError(f"{path}: line {line}: expecting a measured cell, got {error!r}") from error
    return found


def _row(row: dict[str, str]) -> Row:
    return Row(
        system=row["system"],
        run=row["run_id"],
        ranks=int(row["ranks"]),
        buffers=row["buffers"],
        collective=row["collective"],
        algorithm=row["algorithm"],
        norm=row["algorithm_norm"],
        implementation=row["implementation"],
        segment=int(float(row["segment_bytes"] or 0)),
        ports=int(float(row["ports"] or 1)),
        nbytes=int(row["message_bytes"]),
        block=int(row["block_bytes"]),
        seconds=float(row["median_s"]),
        flags=tuple(row["flags"].split()),
    )


def kept(rows: Sequence[Row]) -> tuple[list[Row], Counter[str]]:
    """The rows that may be compared, and the number of others by reason; a row counts for its first reason.

    :param rows: measured rows.
    """
    reasons: Counter[str] = Counter()
    found = []
    for row in rows:
        reason = next((flag for flag in DROPPED if flag in row.flags), "")
        reason = reason or ("buffers in the memory of GPUs" if row.buffers != "host" else "")
        if reason:
            reasons[reason] += 1
        else:
            found.append(row)
    return found, reasons


def cells_of(rows: Sequence[Row]) -> list[Cell]:
    """The rows by call and implementation, each a cell with one row or more."""

    def key(row: Row) -> tuple[str, str, str, int, int, str]:
        return row.system, row.run, row.collective, row.ranks, row.nbytes, row.implementation

    return [Cell(tuple(some)) for _, some in groupby(sorted(rows, key=key), key)]
