"""Packets with the presets of emulated networks, against measurements on these networks.

        python -m benchmarks.packets_emulated tests/records/emulated.json         # a table; takes several records, too
        python -m benchmarks.packets_emulated tests/records/emulated.json --each  # and every time
        python -m benchmarks.packets_emulated tests/records/emulated.json --fit   # the search for the fitted numbers

The cells are alltoalls, allgathers and broadcasts of 64 KiB and more with one rank per host, by every recorded
algorithm. The cells of a record count from 0: the presets are fitted to the even ones, and the odd ones are for
reporting. If cells were measured in two jobs, these are compared with each other, too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from topompi.mpi.execution.specs import NATIVE
from topompi.netsim import Program, Tables
from topompi.netsim.packets import PRESETS, Preset, run
from topompi.schedules import ALGORITHMS, make
from topompi.schedules.segments import cut, pieces_of
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

from .predictions import Cell

COLLECTIVES = {"Alltoall": "alltoall", "Allgather": "allgather", "Bcast": "bcast"}
LEAST = 65536
NEAR = 1.25
RATES = {"4:1": "100M", "2:1": "200M", "1:1": "400M"}  # rates of the uplinks of four hosts with 100 Mbit/s each
GRID = {"overhead": (1e-5, 2e-5, 3e-5, 4e-5), "poll": (0.0, 5e-6, 1e-5, 2e-5, 4e-5)}  # seconds


def preset_of(cell: Cell) -> Preset:
    """Return the preset of the cell's library."""
    return PRESETS["emulated-mpich" if cell.library.startswith("MPICH") else "emulated"]


@dataclass(frozen=True)
class Case:
    """A cell's network, and its algorithms as programs.

    :param cell: the cell, with its measurements.
    :param tables: tables of the network.
    :param names: names of the algorithms.
    :param programs: messages of each algorithm.
    :param seconds: measured seconds of each algorithm.
    """

    cell: Cell
    tables: Tables
    names: tuple[str, ...]
    programs: tuple[Program, ...]
    seconds: NDArray[np.float64]

    @classmethod
    def of(cls, cell: Cell) -> Case:
        """Make the case of a cell, with all algorithms whose messages are known."""
        interface = cell.interface()
        if interface.routes is None:
            raise RuntimeError(f"{cell.network}: expecting routes, got none")
        found = {name: program for name in cell.seconds if (program := program_in(cell, name)) is not None}
        tables = tables_of(interface.routes, latency=preset_of(cell).latency)
        return cls(cell, tables, tuple(found), tuple(found.values()), np.array([cell.seconds[name] for name in found]))

    def predicted(self, preset: Preset) -> NDArray[np.float64]:
        """Return the predicted seconds of each algorithm."""
        runs = (run(self.tables, [one], hosts=preset.hosts, settings=preset.settings) for one in self.programs)
        return np.array([float(found.job_seconds[0]) for found in runs])


def program_in(cell: Cell, name: str) -> Program | None:
    """Return the messages of an algorithm in a cell; None if no schedule defines them."""
    network, collective = network_of(cell.interface()), COLLECTIVES[cell.method]
    if name == NATIVE or cut(name)[0] not in ALGORITHMS[collective]:  # the library's, or of an earlier version
        return None
    pieces = pieces_of(collective, name, cell.nbytes)
    schedule = make(collective, pieces.name, network, 0, pieces.blocks)
    return program_of(schedule, network, cell.nbytes / schedule.blocks).cut(pieces.slices)


@dataclass(frozen=True)
class Score:
    """The agreement of predictions with measurements.

    :param ratios: predicted over measured time, for all algorithms of all cells.
    :param correlations: Spearman's correlation of each cell.
    """

    ratios: NDArray[np.float64]
    correlations: NDArray[np.float64]

    @classmethod
    def of(cls, pairs: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Score:
        """Make the score of predicted and measured seconds, one pair of arrays per cell."""
        known = list(pairs)
        correlations = [float(spearmanr(ours, theirs).statistic) for ours, theirs in known]
        return cls(np.concatenate([ours / theirs for ours, theirs in known]), np.array(correlations))

    @property
    def near(self) -> float:
        """Share of the times that are predicted within the factor ``NEAR``."""
        return float(np.mean((self.ratios >= 1 / NEAR) & (self.ratios <= NEAR)))

    def row(self, about: str) -> str:
        """Format a row of the table."""
        ratios = f"{np.median(self.ratios):.2f} ({self.ratios.min():.2f} to {self.ratios.max():.2f})"
        correlations = ", ".join(f"{one:.2f}" for one in self.correlations)
        return f"| {about} | {len(self.ratios)} | {self.near:.0%} | {ratios} | {correlations} |"

    def words(self, about: str) -> str:
        """Format a line for many cells."""
        return (
            f"{about}: {len(self.correlations)} cells, {len(self.ratios)} times, {self.near:.0%} within {NEAR}, median "
            f"{np.median(self.ratios):.2f}; correlation: median {np.median(self.correlations):.2f}, mean "
            f"{np.mean(self.correlations):.2f}"
        )


@dataclass(frozen=True)
class Twice:
    """A cell that was measured in two jobs, with its prediction.

    :param correlation: Spearman's correlation of the two jobs.
    :param decided: share of the pairs of algorithms that both jobs put in the same order; the others count as ties.
    :param predicted: share of the decided pairs that are predicted in that order. Pairs with equal predictions are left
        out.
    """

    correlation: float
    decided: float
    predicted: float

    @classmethod
    def of(cls, ours: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]) -> Twice:
        """Compute the correlation and the shares from predicted seconds and those of the two jobs, by algorithm."""
        pairs = np.triu_indices(len(ours), 1)
        signs = np.array([np.sign(np.subtract.outer(some, some)[pairs]) for some in (ours, first, second)])
        signs = signs[:, signs[0] != 0]
        alike = signs[1] == signs[2]
        right = (signs[0] == signs[1])[alike]
        return cls(float(spearmanr(first, second).statistic), float(np.mean(alike)), float(np.mean(right)))


def measured_twice(cases: list[Case], predicted: list[NDArray[np.float64]]) -> Iterator[str]:
    """Yield a table row for each cell that a later cell repeats."""
    for number, (case, ours) in enumerate(zip(cases, predicted, strict=True)):
        cell = case.cell
        for other in cases[number + 1 :]:
            if replace(other.cell, seconds=cell.seconds) != cell:
                continue
            both = [name for name in case.names if name in other.names]
            mine, theirs = ([one.names.index(name) for name in both] for one in (case, other))
            found = Twice.of(ours[mine], case.seconds[mine], other.seconds[theirs])
            correlations = [
                spearmanr(ours[mine], some).statistic for some in (case.seconds[mine], other.seconds[theirs])
            ]
            yield (
                f"| {cell.uplinks} {cell.order} {cell.method} {cell.nbytes >> 10} KiB | {found.correlation:.2f} | "
                f"{correlations[0]:.2f}, {correlations[1]:.2f} | {found.decided:.0%} | {found.predicted:.0%} |"
            )


def table(cases: list[Case], each: bool) -> Iterator[str]:
    """Yield the rows of 4x4 by rate, collective and bytes, and the scores of the two halves."""
    pairs = [(case.predicted(preset_of(case.cell)), case.seconds) for case in cases]
    if each:
        for case, (ours, theirs) in zip(cases, pairs, strict=True):
            cell = case.cell
            yield f"{cell.network} {cell.uplinks} {cell.order} {cell.library} {cell.method} {cell.nbytes >> 10} KiB"
            for name, predicted, seconds in sorted(zip(case.names, ours, theirs, strict=True), key=lambda row: row[2]):
                yield f"    {name:22} {seconds * 1e3:8.2f} ms, predicted {predicted * 1e3:8.2f}"
    yield f"| 4x4 | times | within {NEAR} | predicted over measured | rank correlation of each cell |"
    yield "| --- | --- | --- | --- | --- |"
    sizes = sorted({case.cell.nbytes for case in cases})
    for (name, rate), method, nbytes in product(RATES.items(), COLLECTIVES, sizes):
        some = [
            pair
            for case, pair in zip(cases, pairs, strict=True)
            if (case.cell.network, case.cell.uplinks, case.cell.method, case.cell.nbytes)
            == ("4x4", rate, method, nbytes)
        ]
        if some:
            yield Score.of(some).row(f"{name}, {method.lower()}, {nbytes >> 10} KiB")
    for method in COLLECTIVES:
        some = [pair for case, pair in zip(cases, pairs, strict=True) if case.cell.method == method]
        if some:
            yield Score.of(some).words(method.lower())
    yield "| measured twice | correlation | with the prediction | pairs that both order alike | predicted so |"
    yield "| --- | --- | --- | --- | --- |"
    yield from measured_twice(cases, [ours for ours, _ in pairs])
    for name, first in (("fitted to", 0), ("held out", 1)):
        if pairs[first::2]:
            yield Score.of(pairs[first::2]).words(name)


def fit(cases: list[Case]) -> Iterator[str]:
    """Yield the scores, on the cells used for fitting, of each combination of overhead and poll time."""
    for overhead, poll in product(*GRID.values()):
        pairs = []
        for case in cases[::2]:
            preset = preset_of(case.cell)
            hosts = replace(preset.hosts, send_overhead=overhead, receive_overhead=overhead)
            changed = replace(preset, hosts=hosts, settings=replace(preset.settings, poll=poll))
            pairs.append((case.predicted(changed), case.seconds))
        found = Score.of(pairs)
        error = np.exp(np.mean(np.abs(np.log(found.ratios))))
        yield found.words(f"{overhead * 1e6:.0f} us, poll {poll * 1e6:.0f} us: off by {error:.3f}")


def main() -> None:
    """Print the selected table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true", help="print every time")
    parser.add_argument("--fit", action="store_true", help="try overheads on the cells that are fitted to")
    options = parser.parse_args()
    cells = [Cell(**one) for path in options.records for one in json.loads(path.read_text(encoding="utf-8"))]
    some = [cell for cell in cells if cell.method in COLLECTIVES and cell.nbytes >= LEAST and cell.ppn == 1]
    cases = [Case.of(cell) for cell in some]
    for line in fit(cases) if options.fit else table(cases, options.each):
        print(line, flush=True)


if __name__ == "__main__":
    main()
