"""Measurements of all algorithms on emulated networks, and the cost model's predictions of them.

    python -m benchmarks.predictions --measure 4x4 --uplink-rates 100M --orders random:1 --sizes 64K -o more.json

It runs ``topompi tune`` on each network, which needs root, and writes medians. ``python -m studies records`` compares
the records in ``tests/records`` with the model; tests use them, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from osu_like_bench.emulate import Emulated, LaunchOptions, LinkRates
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.emulate.network import burst_of
from osu_like_bench.emulate.spec import emulated_routes
from topompi.errors import TopompiError
from topompi.mpi.execution.specs import CALLS, NATIVE
from topompi.mpi.prediction.libraries import model_of
from topompi.mpi.prediction.predictor import Predictor
from topompi.mpi.prediction.untuned import predict
from topompi.mpi.tuning.record import TuneRecord
from topompi.schedules import ALGORITHMS
from topompi.schedules.analysis.model import Model
from topompi.schedules.librarylike import LIBRARY_ALGORITHMS
from topompi.topology import TopologyInterface

from .jobs import one_line_errors, progress

__all__ = ["Cell", "Scores", "cells_in", "emulated_model", "read"]

HOST_RATE = "100M"
METHODS = ("bcast", "gather", "scatter", "allgather", "reduce", "allreduce", "reduce_scatter", "alltoall")
VERSIONS = {"Open MPI": "Open MPI v{}", "MPICH": "MPICH Version: {}"}  # the libraries' own names


@dataclass(frozen=True)
class Cell:
    """One call of one size in one job, by every algorithm.

    :param network: specification of the emulated network.
    :param uplinks: rate of its uplinks.
    :param order: order of the ranks.
    :param ppn: ranks per host.
    :param library: vendor and version of the MPI library.
    :param method: mpi4py's name of the call.
    :param nbytes: message size in bytes, as ``Selector.choose`` counts it.
    :param seconds: median of the slowest rank's times, by algorithm.
    :param host_rates: rates of some hosts' links, as ``LinkRates.parse`` takes them; "" if all are equal.
    """

    network: str
    uplinks: str
    order: str
    ppn: int
    library: str
    method: str
    nbytes: int
    seconds: dict[str, float]
    host_rates: str = ""

    @property
    def job(self) -> tuple[object, ...]:
        """Fields that the cells of one job have in common."""
        return self.network, self.uplinks, self.order, self.ppn, self.library, *filter(None, [self.host_rates])

    def interface(self) -> TopologyInterface:
        """Return the topology of the job."""
        routes = emulated_routes(self.network, rates_of(self.uplinks, self.host_rates))
        return TopologyInterface.place(rank_hosts(routes.fabric, None, self.ppn, self.order), routes)

    def predictor(self, model: Model | None = None) -> Predictor:
        """Return the cost model of the job, with given start-ups and rates or its own."""
        vendor, _, version = self.library.rpartition(" ")
        library = model_of(VERSIONS.get(vendor, "{}").format(version), {})
        return Predictor(self.interface(), library, model=model)


@dataclass(frozen=True)
class Scores:
    """Predictions and measurements of one cell.

    :param cell: the measurements.
    :param predicted: predicted seconds by algorithm, native's included.
    :param chosen: algorithm that runs without measurements.
    :param native: the library's algorithm according to its model.
    :param allowed: native and the default set, from which one is chosen.
    """

    cell: Cell
    predicted: dict[str, float]
    chosen: str
    native: str
    allowed: tuple[str, ...]

    @classmethod
    def of(cls, cell: Cell, predictor: Predictor) -> Scores:
        """Predict the times of a measured cell."""
        found = predict(predictor, cell.method, cell.nbytes, 0, cell.seconds.__contains__, always_native=True)
        assert found.native is not None  # the model applies to these cells
        collective = CALLS[cell.method].collective
        known = {*ALGORITHMS[collective], *LIBRARY_ALGORITHMS.get(collective, {})}  # without those of earlier versions
        ours = [name for name in cell.seconds if name.partition("/")[0] in known]
        predicted = {name: predictor.seconds(cell.method, name, cell.nbytes, 0) for name in ours}
        allowed = (NATIVE, *(name for name, _ in found.ours))
        times = {NATIVE: found.native.seconds, **predicted}
        return cls(cell, times, found.algorithm, found.native.says, allowed)

    @cached_property
    def correlation(self) -> float:
        """Spearman's rank correlation over the algorithms, native among them; 1 if all take equally long."""
        names = list(self.predicted)
        found = spearmanr([self.predicted[name] for name in names], [self.cell.seconds[name] for name in names])
        return float(np.nan_to_num(found.statistic, nan=1.0))

    @property
    def regret(self) -> float:
        """Time of the chosen algorithm over that of the fastest one."""
        return self.cell.seconds[self.chosen] / self.cell.seconds[self.best]

    @property
    def least_regret(self) -> float:
        """Regret that remains if the fastest of the default set is chosen."""
        return min(self.cell.seconds[name] for name in self.allowed) / self.cell.seconds[self.best]

    @property
    def best(self) -> str:
        """Name of the fastest algorithm."""
        return min(self.cell.seconds, key=self.cell.seconds.__getitem__)

    @property
    def gain(self) -> float:
        """Time of native over that of the chosen algorithm."""
        return self.cell.seconds[NATIVE] / self.cell.seconds[self.chosen]

    @property
    def native_ratio(self) -> float:
        """Predicted over measured time of native."""
        return self.predicted[NATIVE] / self.cell.seconds[NATIVE]


def cells_in(path: Path) -> list[Cell]:
    """Return the cells of a record."""
    return [Cell(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def read(path: Path, model: Model | None = None) -> list[Scores]:
    """Return the cells of a record with a model's predictions, by default those of the model that jobs have."""
    predictors: dict[tuple[object, ...], Predictor] = {}
    found = []
    for cell in cells_in(path):
        if cell.job not in predictors:
            predictors[cell.job] = cell.predictor(model)
        found.append(Scores.of(cell, predictors[cell.job]))
    return found


def emulated_model() -> Model:
    """Return the model of the emulated networks' host links, with the burst that their token buckets let pass."""
    rate = float(emulated_routes("1x2", LinkRates.parse(HOST_RATE)).fabric.link_rate.max())
    return replace(Model.of_rate(rate), burst=burst_of(rate))


def rates_of(uplinks: str, host_rates: str) -> LinkRates:
    """Return the rates of a network.

    :param uplinks: rate of the uplinks.
    :param host_rates: rates of some hosts' links; "" if all are equal.
    """
    return LinkRates.parse(HOST_RATE, uplinks, host_rates or None)


def cells_of(record: TuneRecord, **job: Any) -> Iterator[Cell]:
    """Yield the cells that one run of ``topompi tune`` measured.

    :param record: what was measured.
    :param job: fields of ``Cell`` that the record lacks.
    """
    times: dict[tuple[str, int], dict[str, float]] = {}
    for one in record.results:
        seconds = float(f"{np.median(one.samples):.4g}")
        times.setdefault((one.method, one.nbytes), {})[one.algorithm] = seconds
    for (method, nbytes), seconds_of in times.items():
        yield Cell(library=record.library, method=method, nbytes=nbytes, seconds=seconds_of, **job)


def measure(given: argparse.Namespace) -> Iterator[Cell]:
    """Measure every algorithm on every network that the command line selects."""
    for uplinks in given.uplink_rates:
        with Emulated(given.measure, rates_of(uplinks, given.host_rates)) as network:
            for order, ppn, size in product(given.orders, map(int, given.ppn), given.sizes):
                with tempfile.NamedTemporaryFile(suffix=".json") as file:
                    options = LaunchOptions(order=order, ppn=ppn, python=given.python, timeout=given.timeout)
                    sizes = ["-m", f"{size}:{size}", "-i", str(given.rounds), "-a", given.algorithms]
                    tune = ["-m", "topompi", "tune", *given.methods, *sizes, "--record", file.name]
                    done = network.run(tune, options)
                    if done.returncode:
                        raise TopompiError(
                            f"{given.measure}, {order}: exit code {done.returncode}: {done.stderr[-500:]}"
                        )
                    progress(f"{given.measure}, {uplinks}, {order}, {ppn} a host, {size}")
                    job = {"network": given.measure, "uplinks": uplinks, "order": order, "ppn": ppn}
                    yield from cells_of(TuneRecord.read(file.name), **job, host_rates=given.host_rates)


def words(text: str) -> list[str]:
    """Split a text at its commas."""
    return text.split(",")


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", metavar="NETWORK", required=True, help="the network, such as 4x4")
    parser.add_argument("--uplink-rates", type=words, default="100M,400M", help="bits/s (default 100M,400M)")
    parser.add_argument("--orders", type=words, default="block,random:1", help="rank orders (default block,random:1)")
    parser.add_argument("--ppn", type=words, default="1", help="ranks a host (default 1)")
    parser.add_argument("--methods", type=words, default=",".join(METHODS), help="collectives (default: all eight)")
    parser.add_argument("--sizes", type=words, default="64K", help="bytes (default 64K)")
    parser.add_argument("--host-rates", default="", help="rates of some hosts' links: h5=50M")
    parser.add_argument("--algorithms", default="all", help="as topompi tune takes them (default all)")
    parser.add_argument("--rounds", type=int, default=6, help="timed calls of each (default 6)")
    parser.add_argument("--python", default=sys.executable, help="a Python with another MPI library")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds that one job may take")
    parser.add_argument("-o", "--output", type=Path, help="add the cells to this record")
    return parser.parse_args()


def main() -> None:
    """Measure the wanted networks."""
    given = parse()
    with one_line_errors("predictions"):
        kept: list[Any] = json.loads(given.output.read_text()) if given.output and given.output.exists() else []
        for cell in measure(given):
            kept.append(asdict(cell))
            if given.output is not None:
                given.output.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
