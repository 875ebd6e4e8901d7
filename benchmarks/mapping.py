"""The mappers' results beside their goals, as one table: ``python -m benchmarks.mapping [--json FILE]``.

Recorded graphs are read from ``$TOPOMPI_SHARED_DATA``, by default ``../shared/data`` beside the repository; rows whose
file is missing are left out, with a note. Peers are measured if their packages are installed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from topompi.mapping.evaluate import doubled_hop_bytes, evaluate
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.machine import Machine
from topompi.mapping.mappers.cartesian import cartesian
from topompi.mapping.mappers.multilevel import scheme1
from topompi.mapping.mappers.plain import identity
from topompi.mapping.mappers.portfolio import best
from topompi.mapping.mapping import Mapping
from topompi.mapping.partition import available, partitioner
from topompi.mapping.readers import read_graph

from .multigrid import multigrid
from .paths import SHARED_DATA
from .patterns import made, refined_mesh
from .sharedmap import sharedmap

SHARED = SHARED_DATA / "commgraphs"
DISTANCE = "1:10:100"
RECORDED = (
    ("LULESH 1,000", "lulesh-1000", "20:10:5"),
    ("miniAMR 1,000", "miniamr-1000", "20:10:5"),
    ("CloverLeaf 1,152", "cloverleaf-1152", "16:9:8"),
    ("miniFE 1,024", "minife-1024", "16:8:8"),
    ("BT 1,024", "npb-bt-1024", "16:8:8"),
)
# Hop-bytes of the best known mappings, each undirected pair counted once.
KNOWN = {"2D 64 x 32": 26752, "3D 16 x 16 x 8": 70144, "3D shuffled": 70144, "3D 12 x 14 x 12": 66093}

Mapper = Callable[[CommunicationGraph, Machine, int], Mapping]
Case = tuple[str, CommunicationGraph, Machine]


@dataclass
class Row:
    """The results of one mapper on one case.

    :param case: name of the case.
    :param mapper: name of the mapper.
    :param hop_bytes: exact hop-bytes for each seed, as text.
    :param seconds: processor seconds for each seed.
    :param ratio: median of ``costs`` over the smallest cost known or measured.
    :param costs: hop-bytes for each seed.
    """

    case: str
    mapper: str
    hop_bytes: list[str]
    seconds: list[float]
    ratio: float = math.nan
    costs: list[float] = field(default_factory=list, repr=False)


def grids() -> Iterator[Case]:
    """Yield cases of stencils, of about 2,000 ranks each."""
    flat, cube = CommunicationGraph.cartesian((64, 32)), CommunicationGraph.cartesian((16, 16, 8))
    yield "2D 64 x 32", flat, Machine.hierarchy("16:16:8", DISTANCE)
    yield "3D 16 x 16 x 8", cube, Machine.hierarchy("16:16:8", DISTANCE)
    order = np.random.default_rng(1).permutation(cube.size)
    mixed = CommunicationGraph.from_arrays(cube.size, order[cube.sources], order[cube.targets], cube.volume)
    yield "3D shuffled", mixed, Machine.hierarchy("16:16:8", DISTANCE)
    yield "3D 12 x 14 x 12", CommunicationGraph.cartesian((12, 14, 12)), Machine.hierarchy("21:12:8", DISTANCE)


def structured() -> Iterator[Case]:
    """Yield grids and tori of ranks that the graph does not declare, among light edges, on a tree and on tori.

    NPB's LU exchanges halos on a grid of ranks and adds small sums over all ranks, here by recursive doubling.
    """
    tree, ranks = Machine.hierarchy("16:8:8", DISTANCE), np.arange(1024)
    bits = np.repeat(1 << np.arange(10), 1024)
    for name, wraps in (("32 x 32, LU", False), ("32 x 32, LU, periodic", True)):
        grid = CommunicationGraph.cartesian((32, 32), [wraps] * 2, 4096)
        source, target = np.r_[grid.sources, np.tile(ranks, 10)], np.r_[grid.targets, np.tile(ranks, 10) ^ bits]
        graph = CommunicationGraph.from_arrays(1024, source, target, np.r_[grid.volume, np.full(10240, 8)])
        yield name, graph, tree
        for dims in ((16, 64), (8, 8, 16)):
            yield f"{name}, {' x '.join(map(str, dims))} torus", graph, Machine.torus(dims)


def recorded() -> Iterator[Case]:
    """Yield cases of recorded communication of real applications."""
    for name, file, levels in RECORDED:
        path = SHARED / f"{file}.graphStats.txt.xz"
        if path.exists():
            yield name, read_graph(path), Machine.hierarchy(levels, DISTANCE)
        else:
            print(f"# {name} is left out: no file {path.name}")


def large() -> Iterator[Case]:
    """Yield cases of 8,192 and 65,536 ranks."""
    for dims, levels in (((16, 16, 32), "16:16:32"), ((64, 32, 32), "32:32:64")):
        graph = CommunicationGraph.cartesian(dims)
        yield f"{graph.size:,} ranks, grid", graph, Machine.hierarchy(levels, DISTANCE)
        rng = np.random.default_rng(1)
        order, kept = rng.permutation(graph.size), rng.random(graph.num_edges) < 0.98
        source, target = order[graph.sources[kept]], order[graph.targets[kept]]
        torn = CommunicationGraph.from_arrays(graph.size, source, target, graph.volume[kept])
        yield f"{graph.size:,} ranks, torn and shuffled", torn, Machine.hierarchy(levels, DISTANCE)


def torus() -> Iterator[Case]:
    """Yield the case of miniAMR on a Blue Gene/Q (T. Fujiwara et al.)."""
    path = SHARED / "miniamr-bgq-1024.hopbyte.txt.xz"
    if not path.exists():
        print(f"# miniAMR on the torus is left out: no file {path.name}")
        return
    with lzma.open(path, "rt") as lines:
        rows = [line.split() for line in lines]
    source, target, volume = zip(*((int(u), int(v), round(float(b))) for u, v, b, _ in rows), strict=True)
    graph = CommunicationGraph.from_arrays(1024, source, target, volume)
    yield "miniAMR, 4 x 2 x 4 x 4 x 2 torus", graph, Machine.torus((4, 2, 4, 4, 2), 4)


def dense() -> Iterator[Case]:
    """Yield cases of multigrid hierarchies, with 10^5 to 10^6 directed pairs on 1,000 ranks."""
    for pairings, smoothings in ((2, 1), (2, 2), (1, 1)):
        graph = multigrid(20, 10, pairings=pairings, smoothings=smoothings)
        yield f"multigrid, {graph.num_edges:,} pairs", graph, Machine.hierarchy("20:10:5", DISTANCE)


def tori() -> Iterator[Case]:
    """Yield cases of refined meshes on tori with one rank per host, and of shuffled tori, where one hop is best."""
    mesh = refined_mesh(512)
    rng = np.random.default_rng(1)
    for dims in ((8, 8, 8), (4, 4, 4, 4, 2)):
        machine, name = Machine.torus(dims), " x ".join(map(str, dims))
        yield f"refined mesh, {name} torus", mesh, machine
        grid, order = CommunicationGraph.cartesian(dims, [True] * len(dims)), rng.permutation(512)
        shuffled = CommunicationGraph.from_arrays(512, order[grid.sources], order[grid.targets], grid.volume)
        yield f"{name} torus on itself", shuffled, machine


def scattered() -> Iterator[Case]:
    """Yield the case of the refined mesh on 64 hosts of 8 slots, drawn at random from a tree of 1,024 hosts."""
    hosts = np.sort(np.random.default_rng(5).choice(1024, 64, replace=False))
    machine = Machine.tree(None, np.full(64, 8), [hosts // 128, hosts // 16], [5, 3, 1, 0])
    yield "refined mesh, scattered hosts", refined_mesh(512), machine


def peers() -> dict[str, Mapper]:
    """Return the installed peers: top-down mappings by other partitioners, one cut per cluster, and SharedMap."""
    found: dict[str, Mapper] = {}
    for name in available():
        if name != "metis":
            found[f"{name}, top down"] = partial(_once, name)
    return {**found, "SharedMap-strong": sharedmap} if find_spec("chszlablib") else found


def _once(name: str, graph: CommunicationGraph, machine: Machine, seed: int) -> Mapping:
    return scheme1(graph, machine, seed, partitioner=partitioner(name), tries=1)


def measured(case: str, graph: CommunicationGraph, machine: Machine, name: str, mapper: Mapper, seeds: int) -> Row:
    """Run a mapper with several seeds: hop-bytes, and processor seconds of all threads.

    :param case: name of the case.
    :param graph: communication graph.
    :param machine: machine to map to.
    :param name: name of the mapper.
    :param mapper: mapper to run.
    :param seeds: number of seeds.
    """
    row = Row(case, name, [], [])
    for seed in range(seeds):
        start = time.process_time()
        found = mapper(graph, machine, seed)
        row.seconds.append(time.process_time() - start)
        doubled = doubled_hop_bytes(found, graph, machine)
        row.costs.append(doubled / 2)
        row.hop_bytes.append(str(doubled // 2 if doubled % 2 == 0 else f"{doubled}/2"))
    return row


def table(cases: Iterator[Case], mappers: dict[str, Mapper], seeds: int) -> list[Row]:
    """Run all mappers on all cases, and print each row as soon as it is complete.

    :param cases: name, graph and machine of each case.
    :param mappers: mappers by name.
    :param seeds: number of seeds for each mapper.
    """
    rows = []
    print(f"{'case':32} {'mapper':20} {'ratio to best':>22} {'seconds of processor':>24}")
    for case, graph, machine in cases:
        mine = [measured(case, graph, machine, name, mapper, seeds) for name, mapper in mappers.items()]
        least = min([KNOWN.get(case, math.inf), *(cost for row in mine for cost in row.costs)])
        for row in mine:
            ratios = [cost / least for cost in row.costs]
            row.ratio = statistics.median(ratios)
            spread = f"{row.ratio:6.4f} ({min(ratios):.4f} .. {max(ratios):.4f})"
            times = f"{statistics.median(row.seconds):7.3f} ({min(row.seconds):.3f} .. {max(row.seconds):.3f})"
            print(f"{case:32} {row.mapper:20} {spread:>22} {times:>24}", flush=True)
        rows += mine
    return rows


def geometric_means(rows: list[Row]) -> Iterator[str]:
    """Yield the geometric mean over the cases of each mapper's ratios."""
    for name in dict.fromkeys(row.mapper for row in rows):
        ratios = [row.ratio for row in rows if row.mapper == name]
        yield f"{'geometric mean':32} {name:20} {statistics.geometric_mean(ratios):6.4f}"


def against_peers(rows: list[Row]) -> Iterator[str]:
    """Yield, for each case, the cost of ``best``'s worst seed over that of the peers' best seed.

    Nothing without peers.
    """
    for case in dict.fromkeys(row.case for row in rows):
        costs = {row.mapper: row.costs for row in rows if row.case == case}
        others = [min(cost) for name, cost in costs.items() if name not in OURS]
        if others:
            yield f"{case:32} {'best, worst / peers':20} {max(costs['best']) / min(others):6.4f}"


OURS: dict[str, Mapper] = {"given order": identity, "scheme 1": scheme1, "best": best}


def reference() -> Iterator[str]:
    """Yield the results for the worked example, the cube and the timed graphs of Subramoni 2013, chapter 5."""
    graph, machine = CommunicationGraph.cartesian((2, 4, 4)), Machine.tree(None, [8] * 4, [[0, 1, 2, 0]], [3, 1, 0])
    mappers: dict[str, Mapper] = {"block order": identity, "best": best}
    for name, mapper in mappers.items():
        sent = evaluate(mapper(graph, machine, 0), graph, machine).bytes_by_distance
        by_hops = " / ".join(str(sent.get(key, 0)) for key in ("host", "1", "3"))
        yield f"2 x 4 x 4 on 4 x 8, {name}: host / 1 hop / 3 hops {by_hops}"
    cube, hosts = CommunicationGraph.cartesian((8, 8, 8)), Machine.hierarchy("8:64", "0:1")
    shares = [evaluate(mapper(cube, hosts, 0), cube, hosts).intra_share for mapper in (identity, best)]
    yield f"8 x 8 x 8 on 64 x 8: {shares[0]:.1%} -> {shares[1]:.1%} within hosts"
    for dims, levels, limit in REFERENCE_TIMES:
        graph, machine = CommunicationGraph.cartesian(dims), Machine.hierarchy(levels, DISTANCE)
        times = []
        for mapper in (cartesian, best):
            start = time.process_time()
            mapper(graph, machine, 0)
            times.append(time.process_time() - start)
        yield f"{machine.num_hosts:4} hosts x 16: blocks {times[0]:.4f} s, best {times[1]:.3f}, reference {limit:.3f} s"


REFERENCE_TIMES = (
    ((8, 8, 4), "16:4:4", 0.180),
    ((8, 8, 8), "16:8:4", 0.228),
    ((16, 8, 8), "16:8:8", 0.635),
    ((16, 16, 8), "16:16:8", 1.474),
)


def main() -> None:
    """Print the whole table, and write its rows as JSON if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all samples")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each mapper (3)")
    parser.add_argument("--quick", action="store_true", help="grids, recorded graphs, dense graphs and tori alone")
    chosen = parser.parse_args()
    others, plain = peers(), {name: OURS[name] for name in ("given order", "best")}
    print(f"# peers: {', '.join(others) or 'none installed'}; median (least .. most) over {chosen.seeds} seeds")
    rows = table(grids(), {**OURS, **others}, chosen.seeds)
    real = table(recorded(), {**OURS, **others}, chosen.seeds)
    print(*geometric_means(real), sep="\n")
    irregular = {
        name: mapper for name, mapper in others.items() if mapper is not sharedmap
    }  # SharedMap takes regular trees only
    tree = [*table(dense(), {**OURS, **others}, chosen.seeds), *table(scattered(), {**OURS, **irregular}, chosen.seeds)]
    print(*against_peers(tree), sep="\n")
    real += tree + table(tori(), OURS, chosen.seeds) + table(structured(), plain, chosen.seeds)
    if not chosen.quick:
        real += table(made(DISTANCE), {**plain, **others}, chosen.seeds)
        print(*against_peers(rows + real), sep="\n")
        real += table(torus(), plain, chosen.seeds)
        real += table(large(), plain, 1)
        print(f"# most memory held: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    print(*reference(), sep="\n")
    if chosen.json:
        samples = [{key: value for key, value in asdict(row).items() if key != "costs"} for row in rows + real]
        chosen.json.write_text(
            json.dumps({"format": "topompi mapping benchmark", "version": 1, "rows": samples}, indent=1)
        )


if __name__ == "__main__":
    main()
