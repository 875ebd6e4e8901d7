"""Packets with the preset ``emulated`` against what was measured on emulated networks.

    python -m benchmarks.packets_emulated tests/records/emulated.json

Alltoalls, allgathers and broadcasts of 16 KiB and more with one rank a host; broadcasts that are cut have 8 blocks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from topompi.execution.specs import LEVELS, NATIVE
from topompi.netsim.packets import PRESETS, run
from topompi.schedules import make
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

from .predictions import Cell

COLLECTIVES = {"Alltoall": "alltoall", "Allgather": "allgather", "Bcast": "bcast"}
CUT = ("chain", "circulant", "scatter_allgather")
LEAST = 16384
EMULATED = PRESETS["emulated"]


def predicted(cell: Cell) -> dict[str, float]:
    """Seconds of each algorithm of a cell that is made for this number of ranks."""
    interface = cell.interface()
    if interface.routes is None:
        raise RuntimeError(f"{cell.network}: expecting routes, got none")
    network, tables = network_of(interface), tables_of(interface.routes, latency=EMULATED.latency)
    found = {}
    for name in cell.seconds:
        if name in (NATIVE, LEVELS) or "/" in name:
            continue
        options = {"root": 0} if cell.method == "Bcast" else {}
        schedule = make(COLLECTIVES[cell.method], name, network, **options, **({"blocks": 8} if name in CUT else {}))
        one = program_of(schedule, network, cell.nbytes / schedule.blocks)
        found[name] = float(run(tables, [one], hosts=EMULATED.hosts, settings=EMULATED.settings).job_seconds[0])
    return found


def report(cells: list[Cell]) -> Iterator[str]:
    """A line for each cell, and one for all."""
    ratios, correlations = [], []
    for cell in cells:
        ours = predicted(cell)
        theirs = [cell.seconds[name] for name in ours]
        ratio = np.array(list(ours.values())) / theirs
        correlation = float(spearmanr(list(ours.values()), theirs).statistic)
        ratios.append(ratio)
        correlations.append(correlation)
        about = f"{cell.network} {cell.uplinks} {cell.order} {cell.library} {cell.method} {cell.nbytes >> 10}K"
        worst = f"{ratio.min():.2f} to {ratio.max():.2f}"
        yield f"{about}: median {np.median(ratio):.2f} of the measured time ({worst}), correlation {correlation:.2f}"
    every = np.concatenate(ratios)
    within = np.mean((every >= 1 / 1.25) & (every <= 1.25))
    yield (
        f"{len(cells)} cells, {len(every)} times: {within:.0%} within 1.25, median {np.median(every):.2f}, "
        f"median correlation {np.median(correlations):.2f}"
    )


def main() -> None:
    """Print the report on a record."""
    cells = [Cell(**one) for one in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]
    some = [cell for cell in cells if cell.method in COLLECTIVES and cell.nbytes >= LEAST and cell.ppn == 1]
    for line in report(some):
        print(line, flush=True)


if __name__ == "__main__":
    main()
