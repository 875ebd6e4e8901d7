"""A run of a benchmark, from its options to its exit code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import topompi
from topompi.cli.terminal import overwrite
from topompi.errors import BenchmarkError
from topompi.inputs.writing import check_output, write_text
from topompi.mpi.execution.specs import CALLS

from .benchmarks import Benchmark, benchmark_of
from .communicators import on_root, open_sides
from .emulate.monitor import idle_ticks
from .facts import gather_facts
from .operations import Operation, TimedCalls
from .options import Options, message_sizes
from .record import Circumstances, Record, SizeResult
from .report import RunReport
from .statistics import compare
from .timing import Times, idle, summarise

__all__ = ["run"]


def run(options: Options) -> int:
    """Run a benchmark, print its table on rank 0 and write its record. Collective over COMM_WORLD.

    :returns: 0, or 1 if the validation failed.
    :raises TopompiError: on all ranks, if the options cannot be satisfied.
    """
    world = MPI.COMM_WORLD
    options, kind = benchmark_of(options, world)
    if kind.paired and world.size < 2:
        raise BenchmarkError(f"{options.benchmark}: expecting at least 2 ranks, got {world.size}")
    if kind.pairs and world.size % 2:
        raise BenchmarkError(f"{options.benchmark}: expecting an even number of ranks, got {world.size}")
    roots = options.roots(kind.rooted, world.size)
    sizes, notes = _sizes(options, kind, world.size)
    path = None if options.json is None else Path(options.json)
    if path is not None:
        on_root(world, lambda: _check_writable(path))
    with open_sides(options) as (native, sides), kind.seated(sides) as (seats, said):
        ours = sides.get("topompi")
        facts = gather_facts(native, topompi.interface(ours) if isinstance(ours, topompi.Intracomm) else None)
        report = None if facts is None else RunReport(options, kind, facts)
        before = idle_ticks() if facts is not None and facts.arena == "emulate" else None
        bench = _Bench(
            options, kind, native, seats, roots, report, ours if isinstance(ours, topompi.Intracomm) else None
        )
        results = bench.run(sizes, [*said, *notes, *_all_native(bench.ours)])
        facts = _with_idle(facts, before)
    if path is not None:
        on_root(world, lambda: write_text(path, Record(options, facts, tuple(results)).to_json()) if facts else None)
    return int(any(result.valid is False for result in results))


def _with_idle(facts: Circumstances | None, before: tuple[int, int] | None) -> Circumstances | None:
    """Add the processors' idle share during the run to its facts, if it was on emulated hosts, which share them."""
    if facts is None or before is None:
        return facts
    idle, ticks = (now - then for now, then in zip(idle_ticks(), before, strict=True))
    return replace(facts, about={**facts.about, "idle": round(idle / max(ticks, 1), 3)})


def _sizes(options: Options, kind: Benchmark, ranks: int) -> tuple[tuple[int, ...], list[str]]:
    """Return the message sizes whose buffers fit into memory, and a note if others are left out."""
    if not kind.sized:
        if options.sizes is not None:
            raise BenchmarkError(f"-m: expecting a benchmark with message sizes, got {options.benchmark}")
        return (0,), []
    sizes = message_sizes(options.sizes or kind.sizes, kind.item())
    fitting = tuple(size for size in sizes if kind.footprint(ranks, size) <= options.memory)
    if not fitting:
        need = kind.footprint(ranks, sizes[0])
        raise BenchmarkError(f"--mem-limit: expecting at least {need} bytes a rank, got {options.memory}")
    note = f"Left out: sizes above {fitting[-1]}, which need more than {options.memory} bytes a rank (-M)"
    return fitting, [note] * (len(fitting) < len(sizes))


def _check_writable(path: Path) -> None:
    """Check, before a long run, that a record could be written to a path."""
    if not check_output(path):
        raise BenchmarkError(f"--json: expecting a file that can be written, got {str(path)!r}")


@dataclass(frozen=True)
class _Bench:
    """One run in progress; only rank 0 has a report, and prints each size as it finishes."""

    options: Options
    kind: Benchmark
    native: MPI.Intracomm
    sides: Mapping[str, Any]
    roots: tuple[int, ...]
    report: RunReport | None
    ours: topompi.Intracomm | None

    def run(self, sizes: Sequence[int], notes: Sequence[str]) -> list[SizeResult]:
        """Measure all sizes one after the other; times are valid on rank 0 only, the validation on all ranks."""
        results: list[SizeResult] = []
        self._print(self.report.header(notes) if self.report else [])
        for number, size in enumerate(sizes, 1):
            self._progress(f"{size} bytes, {number} of {len(sizes)} sizes")
            row = self._measure(size)
            self._progress("")
            if self.report:
                first, *others = (np.array(result.samples) for result in row)
                choice = None if self.ours is None else topompi.choice_of(self.ours, _method(self.options), size)
                self._print([self.report.row(row, compare(first, others[0]) if others else None, choice)])
            results += row
        self._print(self.report.footer() if self.report else [])
        return results

    def _measure(self, size: int) -> list[SizeResult]:
        operation = self.kind(self.native.rank, self.native.size, size)
        valid: list[bool | None] = [True if self.options.check else None] * len(self.sides)
        times = [Times(0.0, 0.0, 0.0, np.empty(0))] * len(self.sides)
        more: list[dict[str, float]] = [{}] * len(self.sides)
        if operation.pairs or not operation.paired or self.native.rank < 2:
            times, more = self._time(operation, size)
            if self.options.check:
                valid = [self._valid(operation, comm, size) for comm in self.sides.values()]
        idle(self.native)
        if self.options.check:
            valid = [self.native.allreduce(here, MPI.LAND) for here in valid]
        return [
            SizeResult(size, side, time.average, time.minimum, time.maximum, ok, tuple(time.samples.tolist()), told)
            for side, time, ok, told in zip(self.sides, times, valid, more, strict=True)
        ]

    def _time(self, operation: Operation, size: int) -> tuple[list[Times], list[dict[str, float]]]:
        native, roots = self.native, self.roots
        # In an operation of two ranks no barrier precedes a call, because one rank's answer is the other's start
        # signal; the clock of rank 0 alone times the exchange.
        alone = operation.paired and not operation.pairs
        ready, clocks = (_nothing, MPI.COMM_SELF) if alone else (native.Barrier, native)
        operation.prepare(native.rank if native.rank in roots else roots[0])
        sides = list(self.sides.values())
        seconds, more = operation.time(TimedCalls(clocks, sides, roots, ready, self.options.repetitions(size)))
        operation.release()
        return summarise(clocks, operation.scale * seconds), more

    def _valid(self, operation: Operation, comm: Any, size: int) -> bool:
        """Make a call with known data for every timed root; return whether this rank's data were always right."""
        used = self.roots[: self.options.repetitions(size)[0]]
        outcomes = [operation.verify(comm, self.native, root) for root in used]  # collective, so all run
        return all(outcomes)

    def _print(self, lines: Sequence[str]) -> None:
        for line in lines:
            print(line, flush=True)

    def _progress(self, text: str) -> None:
        """Show a text of progress on the terminal, over the last one; an empty text only removes the last one."""
        if self.report:
            overwrite(text)


def _all_native(ours: topompi.Intracomm | None) -> list[str]:
    """Return a note if topompi leaves all calls to the MPI library, as far as this is known before the first call."""
    if ours is None:
        return []
    only = topompi.choice_of(ours, "", 0)
    if only is not None:
        return [f"topompi leaves every call to the library: {only.reason}"]
    told = os.environ.get("TOPOMPI_RULES") or os.environ.get("TOPOMPI_TUNE") in ("measure", "again")
    if topompi.interface(ours).virtual and not told:
        return ["topompi leaves calls to the library here, unless an earlier trial says otherwise: a virtual placement"]
    return []


def _method(options: Options) -> str:
    """Return mpi4py's name of the measured call, or the benchmark's own name if it measures no single call."""
    return next((name for name in CALLS if name.lower() == options.benchmark), options.benchmark)


def _nothing() -> None:
    """Do nothing, in place of the barrier before a call that synchronises the two ranks by itself."""
