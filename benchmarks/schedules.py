"""Results of the generators of schedules beside their goals, as one table: ``python -m benchmarks.schedules``.

Real fabrics and allocations are read from ``$TOPOMPI_SHARED_DATA``, by default ``../shared/data`` beside the
repository; rows whose file is missing are marked.
"""

from __future__ import annotations

import argparse
import os
import pickle
import platform
import statistics
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.schedules import ALGORITHMS, Model, Network, Schedule, cost, make, rows_of
from topompi.schedules.alltoall.colouring import colouring, fewest_steps
from topompi.schedules.alltoall.fft import grid_groups
from topompi.schedules.alltoall.joint import joint_steps
from topompi.schedules.alltoall.tacs import tacs1
from topompi.topology import Routes, TopologyInterface, load_routes
from topompi.topology.hostnames import find_hosts
from topompi.views.network import network_of

from .paths import SHARED_DATA

SHARED = SHARED_DATA / "fabrics"
RANKS = 16

# Seconds to generate a schedule by the number of hosts with 16 processes each: Subramoni 2013, chapter 6.
REFERENCE = {8: 0.0020, 16: 0.0023, 32: 0.0058, 64: 0.113, 128: 0.396, 256: 11.67}
AT_MOST = {256: 0.5, 1024: 10.0}

FABRICS = (
    ("XGFT(2) 5:4, all", "XGFT(2; 20,16; 1,16)", 320),
    ("XGFT(2) 5:4, 75 %", "XGFT(2; 20,16; 1,16)", 240),
    ("XGFT(2) 2:1, all", "XGFT(2; 16,16; 1,8)", 256),
    ("XGFT(2) 2:1, 75 %", "XGFT(2; 16,16; 1,8)", 192),
    ("XGFT(3) 5:4, all", "XGFT(3; 10,4,8; 1,8,4)", 320),
    ("XGFT(3) 5:4, 75 %", "XGFT(3; 10,4,8; 1,8,4)", 240),
    ("XGFT(3) 2:1, all", "XGFT(3; 8,4,8; 1,4,4)", 256),
    ("XGFT(3) 2:1, 75 %", "XGFT(3; 8,4,8; 1,4,4)", 192),
    ("XGFT(2) 1:1, 75 %", "XGFT(2; 16,16; 1,16)", 192),
)


def facts() -> str:
    """Describe the machine in one line, and the versions in another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    average = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, {platform.system()} {platform.release()}"
    return f"{cpu}, {os.cpu_count()} cores, load {average}\n{versions}"


def timed(call: Callable[[], object], repeats: int) -> list[float]:
    """Return the seconds of each of ``repeats`` calls."""
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return samples


def spread(samples: list[float]) -> str:
    """Format median, least and most."""
    return f"{statistics.median(samples):9.4f} ({min(samples):.4f} .. {max(samples):.4f})"


def placed(routes: Routes, hosts: NDArray[np.int64], ranks: int = 1) -> Network:
    """Return the network of a job that fills hosts one after the other.

    :param routes: routes of the fabric.
    :param hosts: numbers of the hosts.
    :param ranks: ranks per host.
    """
    names = routes.fabric.hosts
    return network_of(TopologyInterface.place([names[host] for host in hosts for _ in range(ranks)], routes))


def three_quarters(routes: Routes, count: int, rng: np.random.Generator, width: int = 20) -> NDArray[np.int64]:
    """Draw random hosts, ascending: three quarters of the hosts of each of some random leaves.

    :param routes: routes of a fabric whose leaves have equally many hosts, in order.
    :param count: number of hosts to draw; the last leaf may give fewer than three quarters.
    :param rng: random generator.
    :param width: number of hosts on a leaf.
    """
    per_leaf = width * 3 // 4
    leaves = rng.choice(routes.fabric.num_hosts // width, -(-count // per_leaf), replace=False)
    hosts = np.concatenate([leaf * width + rng.choice(width, per_leaf, replace=False) for leaf in leaves])
    return np.sort(hosts[:count])


def host_bound(network: Network) -> int:
    """Return a lower bound on the steps of an alltoall between hosts."""
    hosts = np.arange(network.num_hosts)
    return fewest_steps(network, *np.nonzero(hosts[:, None] != hosts))


def tacs_table(repeats: int) -> Iterator[str]:
    """Yield times of TACS1 by number of hosts, with the reference's."""
    yield f"TACS1 on the Stampede-like fabric, random 75 % allocation, {RANKS} ranks a host; seconds from the network's"
    yield "arrays to the compact schedule, one core: median (least .. most) over 3 allocations and repeats; the median"
    yield "is held against the reference; steps and bound are those of the hosts, of the last allocation"
    yield f"{'hosts':>5} {'ranks':>6} {'seconds':>28} {'reference':>9} {'at most':>8} {'':>6} {'steps':>6} {'bound':>6}"
    routes, rng = load_routes("stampede"), np.random.default_rng(1)
    tacs1(placed(routes, three_quarters(routes, 8, rng)))  # imports at the first use do not count
    for count in (*REFERENCE, 1024):
        networks = [placed(routes, three_quarters(routes, count, rng), RANKS) for _ in range(3)]
        each = repeats if count < 1000 else 1
        samples = [one for network in networks for one in timed(partial(tacs1, network), each)]
        limit = AT_MOST.get(count, REFERENCE.get(count, 0.0))
        reached = "ok" if statistics.median(samples) < limit else "ABOVE"
        reference = f"{REFERENCE[count]:9.4f}" if count in REFERENCE else " " * 9
        steps, least = tacs1(networks[-1]).num_host_steps - 1, host_bound(networks[-1])
        times = f"{spread(samples):>28} {reference} {limit:8.4f} {reached:>6}"
        yield f"{count:5} {count * RANKS:6} {times} {steps:6} {least:6}"


def bound_table() -> Iterator[str]:
    """Yield the steps of ``colouring`` over the lower bound."""
    yield "Steps of hosts over the lower bound (at most 1.05); hosts - 1 is what the hosts' own links need"
    sizes = f"{'hosts':>5} {'leaves':>6} {'n - 1':>5} {'bound':>6} {'steps':>6}"
    yield f"{'fabric':26} {sizes} {'ratio':>7} {'':>6} {'seconds':>8} {'TACS1':>6}"
    for name, network in _bound_networks():
        if isinstance(network, str):
            yield f"{name:26} {network}"
            continue
        least, start = host_bound(network), time.perf_counter()
        steps = colouring(network).num_host_steps - 1
        seconds = time.perf_counter() - start
        leaves, ratio = len(np.unique(network.leaf)), steps / least
        reached = "ok" if ratio <= 1.05 else "ABOVE"
        yield (
            f"{name:26} {network.num_hosts:5} {leaves:6} {network.num_hosts - 1:5} {least:6} {steps:6} {ratio:7.4f} "
            f"{reached:>6} {seconds:8.2f} {tacs1(network).num_host_steps - 1:6}"
        )


def _bound_networks() -> Iterator[tuple[str, Network | str]]:
    rng = np.random.default_rng(2)
    for name, spec, count in FABRICS:
        routes = load_routes(spec)
        yield name, placed(routes, np.sort(rng.choice(routes.fabric.num_hosts, count, replace=False)))
    routes = load_routes("stampede")
    sizes = rng.integers(3, 21, 20)
    uneven = [
        leaf * 20 + rng.choice(20, many, replace=False) for leaf, many in zip(range(0, 100, 5), sizes, strict=True)
    ]
    yield "Stampede, uneven leaves", placed(routes, np.concatenate(uneven))
    for engine in ("minhop", "nue", "dfsssp"):
        fabric = SHARED / "janus-2014.ibnetdiscover.xz"
        tables = SHARED / "derived-ibsim-opensm" / f"janus.{engine}.opensm-lfts.dump.xz"
        if not (fabric.exists() and tables.exists()):
            yield f"Janus, {engine}", "not measured: no shared data"
            continue
        routes = load_routes(fabric, lfts=tables)
        yield f"Janus, {engine}", placed(routes, np.sort(rng.choice(routes.fabric.num_hosts, 256, replace=False)))


def fft_table() -> Iterator[str]:
    """Yield row and column alltoalls of a pencil FFT that run at once."""
    yield "Pencil FFT, 64 hosts x 16 ranks of the Stampede-like fabric, all rows (columns) of the process grid at once:"
    yield "steps, and the sum over steps of each one's busiest link, over the bound; beside it the plain shift's"
    yield f"{'grid':>9} {'steps':>12} {'over':>12} {'plain':>12} {'over':>12} {'seconds':>8}"
    routes = load_routes("stampede")
    network = placed(routes, three_quarters(routes, 64, np.random.default_rng(3)), RANKS)
    for rows in (16, 32, 64):
        columns = network.num_ranks // rows
        start = time.perf_counter()
        made = [joint_steps(network, groups) for groups in grid_groups(rows, columns)]
        seconds = time.perf_counter() - start
        shifts = [(np.arange(size)[None, :] - np.arange(size)[:, None]) % size for size in (columns, rows)]
        cells = []
        for steps in (made, [[shift] * many for shift, many in zip(shifts, (rows, columns), strict=True)]):
            found = [_over(network, *some) for some in zip(grid_groups(rows, columns), steps, strict=True)]
            cells += [f"{found[0][at]} ({found[1][at]})" for at in (0, 1)]
        yield f"{rows:4}x{columns:<4} {cells[0]:>12} {cells[1]:>12} {cells[2]:>12} {cells[3]:>12} {seconds:8.2f}"


def _over(network: Network, groups: Sequence[NDArray[np.int64]], steps: Sequence[NDArray[np.int64]]) -> tuple[int, str]:
    """Return the number of steps, and the sum of the steps' busiest loads over the busiest link's total load."""
    source, destination, step = (
        np.concatenate([part.ravel() for part in parts])
        for parts in (
            [np.repeat(network.rank_host[ranks], len(ranks)) for ranks in groups],
            [np.tile(network.rank_host[ranks], len(ranks)) for ranks in groups],
            steps,
        )
    )
    sent = source != destination
    links, step = network.links[source[sent], destination[sent]], step[sent]
    number = int(step.max(initial=0)) + 1
    loads = np.zeros((number, len(network.capacity)), dtype=np.int64)
    np.add.at(loads, (np.broadcast_to(step[:, None], links.shape)[links >= 0], links[links >= 0]), 1)
    busiest = loads.sum(axis=0).max(initial=0)
    return number, f"{loads.max(axis=1).sum() / busiest:.2f}" if busiest else "-"


def leonardo_jobs(least: int) -> tuple[Routes, list[list[str]]]:
    """Return routes, and the node lists of real jobs of at least ``least`` nodes.

    Jobs on nodes that are not in the node map (for example, visualisation nodes) are left out.

    :raises FileNotFoundError: if there are no shared data.
    """
    nodes, jobs = SHARED / "leonardo-nodemap.txt.xz", SHARED / "leonardo-job-nodelists.tar.gz"
    if not (nodes.exists() and jobs.exists()):
        raise FileNotFoundError("not measured: no shared data")
    with tarfile.open(jobs) as archive:
        texts = [archive.extractfile(one) for one in archive.getmembers() if one.isfile()]
        lists = [text.read().decode().split() for text in texts if text is not None]
    routes = load_routes(nodes)
    lists = [hosts for hosts in lists if len(hosts) >= least]
    return routes, [hosts for hosts in lists if (find_hosts(routes.fabric, hosts) >= 0).all()]


def knomial_table() -> Iterator[str]:
    """Yield the critical path of re-ordered k-nomial trees over the plain trees'."""
    from topompi.schedules.rooted.embedding import best_of, critical_path, host_trees

    yield "Re-ordered 4-nomial broadcast on 200 random allocations of real Leonardo jobs of 3 nodes or more, one rank a"
    yield "node: delay of the critical path (hops) over the plain tree's; `best` is what `reordered` takes"
    routes, jobs = leonardo_jobs(3)
    ratios: dict[str, list[float]] = {}
    for job in np.random.default_rng(4).choice(len(jobs), 200, replace=False):
        network = network_of(TopologyInterface.place(jobs[job], routes))
        delay = network.hops.astype(np.float64)
        trees = host_trees(delay, radix=4)
        lengths = {name: critical_path(tree, delay) for name, tree in trees.items()}
        for name, length in {**lengths, "best": lengths[best_of(trees, delay)]}.items():
            ratios.setdefault(name, []).append(length / lengths["plain"])
    yield f"{'walk':8} {'mean':>7} {'worst':>7} {'least':>7} {'longer than plain':>18}"
    for name, of in ratios.items():
        longer = sum(one > 1 for one in of)
        yield f"{name:8} {np.mean(of):7.4f} {max(of):7.4f} {min(of):7.4f} {longer:18}"


def cells_table() -> Iterator[str]:
    """Yield the messages between cells of a broadcast, over the jobs on several cells."""
    from topompi.schedules import trees

    yield "Broadcast across cells (hops > 3), all real Leonardo jobs on several cells, one rank a node: messages"
    yield "between cells, and the saving against the halving binomial tree over the order listed"
    routes, jobs = leonardo_jobs(2)
    saved: dict[str, list[float]] = {}
    fewest: dict[str, list[bool]] = {}
    for job in jobs:
        network = network_of(TopologyInterface.place(job, routes))
        cell = (network.hops <= 3).argmax(axis=1)
        cells = len(np.unique(cell))
        if cells < 2:
            continue
        clusters, size = trees.rank_clusters(network), network.num_ranks
        order = trees.depth_first(clusters, size)
        made = {
            "binomial": trees.knomial(size, 2),
            "leaders": trees.leaders(clusters, size),
            "chain": trees.chain(size).placed(order),
        }
        crossing = {
            name: int((cell[tree.others] != cell[tree.parent[tree.others]]).sum()) for name, tree in made.items()
        }
        for name, messages in crossing.items():
            saved.setdefault(name, []).append(1 - messages / crossing["binomial"])
            fewest.setdefault(name, []).append(messages == cells - 1)
    yield f"{'tree':9} {'jobs':>5} {'mean saving':>12} {'most':>7} {'cells - 1 messages in':>22}"
    for name, of in saved.items():
        yield f"{name:9} {len(of):5} {np.mean(of):12.1%} {max(of):7.1%} {sum(fewest[name]):15} jobs"


OF_ONE_RANK = (
    ("alltoall", "shift"),
    ("alltoall", "even"),
    ("alltoall", "node_aware"),
    ("allgather", "ring"),
    ("bcast", "reordered"),
    ("allreduce", "ring"),
    ("allreduce", "halving"),
    ("allreduce", "doubling"),
)


def rank_table(ranks: int) -> Iterator[str]:
    """Yield the cost of one rank's rows, and of the costs of the algorithms of each collective."""
    most = (0.2, 50) if ranks <= 4096 else (2.0, 500)
    hosts = min(256, ranks) if ranks <= 4096 else 1024
    spec = "XGFT(2; 20,16; 1,16)" if hosts <= 256 else "XGFT(2; 32,32; 1,16)"
    yield f"One rank's rows at {ranks} ranks on {hosts} hosts of {spec}: wall and processor seconds from the network's"
    yield f"arrays, and the most memory of a second run; at most {most[0]} s and {most[1]} MiB; costly ones made before"
    network = placed(load_routes(spec), np.arange(hosts), ranks // hosts)
    yield f"{'collective':10} {'algorithm':12} {'rows':>7} {'wall':>8} {'cpu':>8} {'MiB':>7}"
    for collective, algorithm in OF_ONE_RANK:
        made = make(collective, algorithm, network) if ALGORITHMS[collective][algorithm].costly else None
        call = partial(_rows_of, network, collective, algorithm, made)
        start, cpu = time.perf_counter(), time.process_time()
        rows = call()
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        tracemalloc.start()
        call()
        memory = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        reached = "ok" if cpu <= most[0] and memory <= most[1] else "ABOVE"
        yield f"{collective:10} {algorithm:12} {len(rows):7} {wall:8.3f} {cpu:8.3f} {memory:7.1f} {reached}"
    yield "Costs of all algorithms of a collective that are not costly to generate, from the network's arrays"
    for collective, names in ALGORITHMS.items():
        cheap = [name for name, one in names.items() if not one.costly]
        start, cpu = time.perf_counter(), time.process_time()
        for name in cheap:
            cost(make(collective, name, network), network, Model.preset("stampede"), 1024)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        yield f"{collective:15} {len(cheap):2} algorithms: {wall:8.3f} s, {cpu:8.3f} s of the processor"
    if ranks <= 4096:
        for name in ("tacs1", "even", "colouring"):
            start, cpu = time.perf_counter(), time.process_time()
            sent = pickle.dumps(make("alltoall", name, network))
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            yield f"{name:6} generated and pickled: {wall:6.3f} s, {cpu:6.3f} s of CPU, {len(sent) / 2**20:.2f} MiB"


def _rows_of(network: Network, collective: str, algorithm: str, made: Schedule | None) -> np.ndarray:
    return made.rows_of(7) if made is not None else rows_of(collective, algorithm, network, 7).rows


def main() -> None:
    """Print all tables of results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="times that each TACS1 schedule is made (default 5)")
    parser.add_argument("--ranks", type=int, help="only the rows of one rank, and costs, at so many ranks: 4096, 65536")
    given = parser.parse_args()
    repeats = given.repeats
    print(facts())
    if given.ranks is not None:
        for line in rank_table(given.ranks):
            print(line, flush=True)
        return
    for table in (tacs_table(repeats), bound_table(), fft_table(), knomial_table(), cells_table()):
        print()
        try:
            for line in table:
                print(line, flush=True)
        except FileNotFoundError as missing:
            print(missing)


if __name__ == "__main__":
    main()
