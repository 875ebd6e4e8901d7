"""What the cost model's predictions are worth: all algorithms measured on emulated networks, against what it says.

    python -m benchmarks.predictions --measure 4x4 --uplink-rates 100M --orders random:1 --sizes 64K -o more.json
    python -m benchmarks.predictions tests/records/emulated.json

The first measures (``topompi tune`` on each network; needs root) and writes medians; the second compares and prints.
A test goes by the record in ``tests/records``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from osu_like_bench.emulate import Emulated, JobOptions, Rates
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.emulate.spec import emulated_fabric
from topompi.errors import TopompiError
from topompi.selection.classes import LEVELS, NATIVE
from topompi.selection.libraries import model_of
from topompi.selection.model import Predictor
from topompi.selection.untuned import choose
from topompi.topology import TopologyInterface
from topompi.topology.routing import compute_routes
from topompi.tuning.record import TuneRecord

from .jobs import progress

__all__ = ["Cell", "Scores", "read"]

HOST_RATE = "100M"
METHODS = ("bcast", "gather", "scatter", "allgather", "reduce", "allreduce", "reduce_scatter", "alltoall")
# Subramoni 2013: leaders (3), broadcasts along re-ordered trees by hops and by rate (4, 5), alltoalls (6).
PROPOSALS = {
    "Bcast": ("leaders", "reordered", "dft", "bft", "dft_rate", "bft_rate"),
    "Gather": ("leaders",),
    "Scatter": ("leaders",),
    "Allgather": ("leaders",),
    "Reduce": ("leaders",),
    "Allreduce": ("leaders",),
    "Alltoall": ("tacs1", "tacs2"),
}
VERSIONS = {"Open MPI": "Open MPI v{}", "MPICH": "MPICH Version: {}"}  # as the libraries name themselves


@dataclass(frozen=True)
class Cell:
    """One call of one size in one job, by every algorithm.

    :param network: what was emulated; ``uplinks``, the rate of its uplinks; ``order`` of the ranks; ``ppn`` on a host.
    :param library: vendor and version.
    :param method: mpi4py's name of the call; ``nbytes`` as ``Selector.choose`` counts them.
    :param seconds: by algorithm, medians of the slowest rank's times.
    """

    network: str
    uplinks: str
    order: str
    ppn: int
    library: str
    method: str
    nbytes: int
    seconds: dict[str, float]

    @property
    def job(self) -> tuple[object, ...]:
        """What cells of one job share."""
        return self.network, self.uplinks, self.order, self.ppn, self.library

    def interface(self) -> TopologyInterface:
        """Where the ranks sat."""
        fabric = emulated_fabric(self.network, Rates.parse(HOST_RATE, self.uplinks))
        return TopologyInterface.place(rank_hosts(fabric, None, self.ppn, self.order), compute_routes(fabric))

    def predictor(self) -> Predictor:
        """The cost model of the job."""
        vendor, _, version = self.library.rpartition(" ")
        return Predictor(self.interface(), model_of(VERSIONS.get(vendor, "{}").format(version), {}))


@dataclass(frozen=True)
class Scores:
    """Predictions beside measurements of one cell.

    :param cell: the measurements.
    :param predicted: seconds by algorithm, native's too.
    :param chosen: what runs without measurements.
    :param native: the library's algorithm as its model has it.
    """

    cell: Cell
    predicted: dict[str, float]
    chosen: str
    native: str

    @classmethod
    def of(cls, cell: Cell, predictor: Predictor) -> Scores:
        """Predict what was measured."""
        native = predictor.native(cell.method, cell.nbytes, 0)
        ours = [name for name in cell.seconds if name not in (NATIVE, LEVELS)]
        predicted = {name: predictor.seconds(cell.method, name, cell.nbytes, 0) for name in ours}
        choice = choose(predictor, cell.method, cell.nbytes, 0, lambda name: name in cell.seconds)
        return cls(cell, {NATIVE: native.seconds, **predicted}, choice.algorithm, native.says)

    @cached_property
    def correlation(self) -> float:
        """Spearman's rank correlation over the algorithms, native among them; 1 where all take equally long."""
        names = list(self.predicted)
        found = spearmanr([self.predicted[name] for name in names], [self.cell.seconds[name] for name in names])
        return float(np.nan_to_num(found.statistic, nan=1.0))

    @property
    def regret(self) -> float:
        """What the chosen algorithm took over what the fastest one took."""
        return self.cell.seconds[self.chosen] / min(self.cell.seconds.values())

    @property
    def gain(self) -> float:
        """How many times as fast as native the chosen algorithm was."""
        return self.cell.seconds[NATIVE] / self.cell.seconds[self.chosen]

    @property
    def native_ratio(self) -> float:
        """Native's predicted time over its measured one."""
        return self.predicted[NATIVE] / self.cell.seconds[NATIVE]


def read(path: Path) -> list[Scores]:
    """The cells of a record beside what the model says of them."""
    cells = [Cell(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
    predictors: dict[tuple[object, ...], Predictor] = {}
    found = []
    for cell in cells:
        if cell.job not in predictors:
            predictors[cell.job] = cell.predictor()
        found.append(Scores.of(cell, predictors[cell.job]))
    return found


def cells_of(record: TuneRecord, network: str, uplinks: str, order: str, ppn: int) -> Iterator[Cell]:
    """The cells that one run of ``topompi tune`` measured."""
    times: dict[tuple[str, int], dict[str, float]] = {}
    for one in record.results:
        seconds = float(f"{np.median(one.samples):.4g}")
        times.setdefault((one.method, one.nbytes), {})[one.algorithm] = seconds
    for (method, nbytes), seconds_of in times.items():
        yield Cell(network, uplinks, order, ppn, record.library, method, nbytes, seconds_of)


def measure(given: argparse.Namespace) -> Iterator[Cell]:
    """Measure every algorithm on every network that the command line asks for."""
    for uplinks in given.uplink_rates:
        with Emulated(given.measure, Rates.parse(HOST_RATE, uplinks)) as network:
            for order, ppn, size in product(given.orders, map(int, given.ppn), given.sizes):
                with tempfile.NamedTemporaryFile(suffix=".json") as file:
                    options = JobOptions(order=order, ppn=ppn, python=given.python, timeout=given.timeout)
                    tune = ["-m", "topompi", "tune", *METHODS, "-m", f"{size}:{size}", "-i", "6", "--record", file.name]
                    done = network.run(tune, options)
                    if done.returncode:
                        raise TopompiError(
                            f"{given.measure}, {order}: exit code {done.returncode}: {done.stderr[-500:]}"
                        )
                    progress(f"{given.measure}, {uplinks}, {order}, {ppn} a host, {size}")
                    yield from cells_of(TuneRecord.read(file.name), given.measure, uplinks, order, ppn)


def markdown(scores: Sequence[Scores]) -> Iterator[str]:
    """The report: what the choices are worth by networks, then every cell."""
    yield "| network | uplinks | order | ranks a host | cells | gain | least | regret | 90th percentile | correlation |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[object, ...], list[Scores]] = {}
    for one in scores:
        groups.setdefault(one.cell.job[:4], []).append(one)
    for job, some in [*groups.items(), (("all", "", "", ""), list(scores))]:
        regrets = [one.regret for one in some]
        gains = np.array([one.gain for one in some])
        cells = [*map(str, job), str(len(some)), f"{np.exp(np.log(gains).mean()):.2f}", f"{gains.min():.2f}"]
        cells += [f"{np.median(regrets):.3f}", f"{np.quantile(regrets, 0.9):.3f}"]
        cells += [f"{np.median([one.correlation for one in some]):.2f}"]
        yield f"| {' | '.join(cells)} |"
    times = "predicted / measured (ms)"
    yield f"\n| job | call | bytes | native is | {times} | chosen | {times} | gain | regret |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in sorted(scores, key=lambda one: one.gain):
        cell, where = one.cell, ", ".join(map(str, one.cell.job[:4]))
        native = f"{1e3 * one.predicted[NATIVE]:.1f} / {1e3 * cell.seconds[NATIVE]:.1f}"
        ours = f"{1e3 * one.predicted[one.chosen]:.1f} / {1e3 * cell.seconds[one.chosen]:.1f}"
        words = f"{cell.method} | {cell.nbytes} | {one.native} | {native} | {one.chosen} | {ours}"
        yield f"| {where} | {words} | {one.gain:.2f} | {one.regret:.2f} |"


def proposals(scores: Sequence[Scores], nbytes: int = 64 << 10) -> Iterator[str]:
    """Where the source's proposals win: against native, least and most over cells, and against the best of all."""
    rates = sorted({one.cell.uplinks for one in scores})
    heads = " | ".join(f"uplinks of {rate}bit/s" for rate in rates)
    yield f"| {nbytes:,} bytes | {heads} | share of the best, median |"
    yield f"|---|{'---|' * (len(rates) + 1)}"
    for method, names in PROPOSALS.items():
        for name in names:
            some = [one.cell for one in scores if (one.cell.method, one.cell.nbytes) == (method, nbytes)]
            some = [cell for cell in some if name in cell.seconds]
            columns = []
            for rate in rates:
                gains = [cell.seconds[NATIVE] / cell.seconds[name] for cell in some if cell.uplinks == rate]
                columns.append(f"{min(gains):.2f} to {max(gains):.2f}" if gains else "")
            best = np.median([min(cell.seconds.values()) / cell.seconds[name] for cell in some])
            yield f"| {method} by `{name}` | {' | '.join(columns)} | {best:.2f} |"


def words(text: str) -> list[str]:
    """The words between commas."""
    return text.split(",")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path, help="records to compare with the model")
    parser.add_argument("--measure", metavar="NETWORK", help="measure on this network instead, such as 4x4")
    parser.add_argument("--uplink-rates", type=words, default="100M,400M", help="bits/s (default 100M,400M)")
    parser.add_argument("--orders", type=words, default="block,random:1", help="rank orders (default block,random:1)")
    parser.add_argument("--ppn", type=words, default="1", help="ranks a host (default 1)")
    parser.add_argument("--sizes", type=words, default="64K", help="bytes (default 64K)")
    parser.add_argument("--python", help="a Python with another MPI library")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds that one job may take")
    parser.add_argument("-o", "--output", type=Path, help="add the cells to this record")
    return parser.parse_args()


def main() -> int:
    """Measure, or compare."""
    given = parse()
    try:
        if given.measure is None:
            scores = [one for path in given.records for one in read(path)]
            print("\n".join([*proposals(scores), "", *markdown(scores)]))
            return 0
        kept: list[Any] = json.loads(given.output.read_text()) if given.output and given.output.exists() else []
        for cell in measure(given):
            kept.append(asdict(cell))
            if given.output is not None:
                given.output.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n", encoding="utf-8")
    except (TopompiError, OSError) as error:
        print(f"predictions: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
