"""The choice of algorithms without tuning, on simulated networks, against the default set and the libraries' choices.

    python -m benchmarks.choices --topology stampede --hosts 64 --ppn 16 --sizes 4K,64K,1M

Ranks are placed in random order. Each cell is a call of one size. *Regret* is the simulated time of the algorithm that
the cost model chooses over that of the fastest algorithm; *gain* is the time of the faster of the algorithms that Open
MPI and MPICH choose over that of the chosen one. A choice to leave the call to the library counts as the faster of
theirs. The model includes the time that Python adds to a call, the simulation does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from osu_like_bench.options import parse_bytes
from osu_like_bench.simulate.flowarena import LIBRARIES, METHODS, FlowArena
from topompi.mpi.execution.specs import NATIVE
from topompi.mpi.prediction.predictor import Predictor
from topompi.mpi.prediction.untuned import candidates, predict
from topompi.schedules.registry import ALGORITHMS
from topompi.schedules.schedule import ROOTED
from topompi.schedules.segments import cut, make_cut, variants
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

__all__ = ["Cell", "cells"]

COLLECTIVES = ("bcast", "reduce", "allreduce", "allgather", "reduce_scatter")


@dataclass(frozen=True)
class Cell:
    """One call of one size.

    :param collective: name of the collective.
    :param nbytes: size of the call in bytes, as ``simulate`` counts it.
    :param bound: seconds that no schedule beats.
    :param library: simulated seconds of the faster library's algorithm.
    :param seconds: simulated seconds of each of our algorithms, by its name.
    :param chosen: name of the algorithm that the model chooses.
    """

    collective: str
    nbytes: int
    bound: float
    library: float
    seconds: dict[str, float]
    chosen: str

    @property
    def chosen_seconds(self) -> float:
        """Seconds of the chosen algorithm."""
        return self.library if self.chosen == NATIVE else self.seconds[self.chosen]

    @property
    def best(self) -> str:
        """Name of the fastest algorithm, with the library's included."""
        return min([*self.seconds, NATIVE], key=lambda name: self.library if name == NATIVE else self.seconds[name])

    @property
    def regret(self) -> float:
        """Seconds of the chosen algorithm over those of the fastest one."""
        return self.chosen_seconds / min(self.library, *self.seconds.values())

    @property
    def gain(self) -> float:
        """Seconds of the faster library over those of the chosen algorithm."""
        return self.library / self.chosen_seconds


def cells(arena: FlowArena, interface: TopologyInterface, collective: str, sizes: Sequence[int]) -> Iterator[Cell]:
    """Yield the cells of a collective; a cell is left out if the libraries' or the chosen algorithm has no time.

    :param arena: the simulated network.
    :param interface: topology of the job on it.
    :param collective: name of the collective.
    :param sizes: message sizes in bytes, as ``simulate`` counts them.
    """
    root = interface.num_ranks // 3 if collective in ROOTED else 0
    predictor, method = Predictor(interface), METHODS[collective]
    for nbytes in sizes:
        counted = nbytes * interface.num_ranks if collective == "reduce_scatter" else nbytes
        found = [arena.peer(library, collective, nbytes, root) for library in LIBRARIES]
        libraries = [float(one) for one in found if isinstance(one, float)]
        if not libraries:
            continue
        chosen = predict(predictor, method, counted, root, lambda name: True).algorithm
        names = _names(predictor, method, collective, counted)
        seconds = {name: _seconds(arena, collective, name, nbytes, root) for name in {*names, chosen} - {NATIVE}}
        known = {name: value for name, value in seconds.items() if value is not None}
        if chosen != NATIVE and chosen not in known:  # it has too many messages to simulate
            continue
        yield Cell(collective, nbytes, arena.bound(collective, nbytes, root), min(libraries), known, chosen)


def _names(predictor: Predictor, method: str, collective: str, nbytes: int) -> list[str]:
    """Return the default set without its least sizes: every algorithm in it, whole and cut."""
    longest = candidates(predictor, method, 1 << 40, lambda name: True)
    whole = [name for name in longest if cut(name)[1] is None and ALGORITHMS[collective][name].default]
    return [*whole, *variants(collective, whole, nbytes, predictor.interface.num_ranks)]


def _seconds(arena: FlowArena, collective: str, name: str, nbytes: int, root: int) -> float | None:
    made = make_cut(collective, name, arena.network, root, nbytes)
    found = arena.time(made.schedule, made.block_bytes, made.slices)
    return float(found) if isinstance(found, float) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, and print a line for each cell and then medians."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.choices", description="the choice on simulated networks"
    )
    parser.add_argument("--topology", default="stampede")
    parser.add_argument("--lfts", default=None)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ppn", type=int, default=16)
    parser.add_argument("--model", choices=("flow", "packet"), default="flow")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", default="4K,64K,1M")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    interface = job(given.topology, given.lfts, given.hosts, given.ppn)
    arena = FlowArena(network_of(interface), routes=interface.routes if given.model == "packet" else None)
    rows: list[Cell] = []
    for collective in given.collectives.split(","):
        for cell in cells(
            arena, interface, collective, [parse_bytes(text, "--sizes") for text in given.sizes.split(",")]
        ):
            rows.append(cell)
            print(line(cell), flush=True)
    regret, gain = np.array([one.regret for one in rows]), np.array([one.gain for one in rows])
    print(
        f"{len(rows)} cells: regret median {np.median(regret):.3f}, 90th percentile {np.quantile(regret, 0.9):.2f}; "
        f"gain {np.exp(np.log(gain).mean()):.2f} (geometric mean), least {gain.min():.2f}"
    )
    if given.output:
        given.output.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    return 0


def job(topology: str, lfts: str | None, hosts: int, ppn: int) -> TopologyInterface:
    """Place ranks in random order on the first hosts of a fabric."""
    routes = load(topology, lfts).routes
    if routes is None:
        raise SystemExit(f"--topology: expecting a fabric with routes, got {topology!r}")
    placed = np.repeat(np.arange(hosts), ppn)[np.random.default_rng(1).permutation(hosts * ppn)]
    return TopologyInterface.place([routes.fabric.hosts[host] for host in placed], routes)


def line(cell: Cell) -> str:
    """Format a cell as a line."""
    best = min(cell.library, *cell.seconds.values())
    return (
        f"{cell.collective:15s}{cell.nbytes:9,d} chosen {cell.chosen:22s} best {cell.best:22s} "
        f"regret {cell.regret:5.2f} gain {cell.gain:5.2f} best/bound {best / cell.bound:5.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
