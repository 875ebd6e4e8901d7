"""Predictions of ``topompi profile advise`` for a better order, beside the gain of that order on an emulated network.

    python -m benchmarks.advice --graphs ../shared/data/commgraphs

Needs root. A recorded graph of a thousand ranks is folded onto the hosts, one block of successive ranks per rank, and
scaled so that an exchange in the given order keeps the busiest link busy for ``--seconds``. The examples run unchanged:
one run is recorded, then runs with and without their own ``--reorder`` take turns. The links are slow, so that they and
not the processors of the one machine are the bottleneck of 16 ranks. The start-up times of messages are measured first.
The error of a prediction is the ratio of predicted and measured gain, or its inverse, whichever is at least 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osu_like_bench.emulate import Emulated, LaunchOptions, Rates
from osu_like_bench.emulate.launch import rank_hosts
from topompi.errors import TopompiError
from topompi.mapping import CommunicationGraph, read_graph
from topompi.prediction.libraries import model_of
from topompi.profile import Profile, read_profile
from topompi.profile.advice import seconds_by_order
from topompi.profile.analysis import link_loads
from topompi.profile.seconds import message_seconds
from topompi.schedules import Model
from topompi.topology import TopologyInterface, compute_routes
from topompi.views.reordering import FIGURES, Aim, search

from .jobs import progress
from .paths import ROOT

EXAMPLES = {
    "stencil3d": "--grid 192x192x96 --steps 20",
    "stencil3d periodic": "--grid 192x192x96 --steps 20 --periodic",
    "cg": "--grid 192x192x96 --tolerance 3e-2",
}
WITHIN = 1.3  # goal for the error of a prediction
VERSION = "Open MPI v5.0"  # library whose model predicts the collective calls

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A communication graph on the hosts of a job, in the given order of the ranks.

    :param name: name of the graph, and the order.
    :param graph: graph with as many ranks as there are hosts.
    :param interface: positions of the ranks in the given order.
    :param costs: measured costs of messages.
    :param profile: profile of the recorded run; None for a graph whose messages are all sent at once.
    """

    name: str
    graph: CommunicationGraph
    interface: TopologyInterface
    costs: Model
    profile: Profile | None = None

    def advised(self) -> NDArray[np.int64]:
        """Return the host of each rank in the order that ``advise`` finds, shape (p,)."""
        return search(self.graph, self.interface, Aim(work=FIGURES)).best.host_of_rank

    def predicted(self, rank_host: NDArray[np.int64]) -> float:
        """Return the seconds of all messages and calls, by the models of ``advise``."""
        if self.profile is None:
            found = message_seconds(self.graph, self.interface, rank_host, self.costs)
        else:
            (both,) = seconds_by_order(self.profile, self.interface, [rank_host], model_of(VERSION, {}), self.costs)
            found = both and sum(both)
        assert found is not None  # an emulated fabric has rates
        return found


def folded(graph: CommunicationGraph, ranks: int) -> CommunicationGraph:
    """Return the graph between blocks of successive ranks."""
    block = np.arange(graph.size) * ranks // graph.size
    return CommunicationGraph.from_arrays(ranks, block[graph.sources], block[graph.targets], graph.volume)


def scaled(graph: CommunicationGraph, factor: float) -> CommunicationGraph:
    """Return the graph with volumes multiplied by a factor, in whole bytes."""
    volume = np.ceil(graph.volume * factor).astype(np.int64)
    return CommunicationGraph.from_arrays(graph.size, graph.sources, graph.targets, volume)


def costs_of(network: Emulated, arguments: argparse.Namespace) -> Model:
    """Measure start-ups by ping-pongs over one and three switches, and by many short messages of all ranks at once."""
    options = LaunchOptions(python=arguments.python, timeout=arguments.timeout)
    done = network.run(["-m", "benchmarks.advice_ranks", str(network.fabric.num_hosts // 4)], options)
    if done.returncode:
        raise TopompiError(f"costs of messages: exit code {done.returncode}: {done.stderr[-2000:]}")
    near, far, further, rate = json.loads(done.stdout.splitlines()[-1])
    nominal = float(network.fabric.link_rate.max())
    progress(f"start-up {1e6 * near:.0f} and {1e6 * far:.0f} us, each further message {1e6 * further:.0f} us;")
    progress(f"a stream has {rate / nominal:.2f} of a link's rate")
    known = Model.of_rate(nominal)
    return replace(known, hops=(0, 1, 3), t_s=(known.t_s[0], near, far), t_w=known.t_w[:3], t_o=further)


def graph_cases(network: Emulated, costs: Model, arguments: argparse.Namespace) -> Iterator[tuple[Case, list[str]]]:
    """Yield recorded graphs in random orders, with the hosts of their ranks."""
    routes = compute_routes(network.fabric)
    for number, path in enumerate(sorted(Path(arguments.graphs).glob("*.graphStats.txt.xz")), 1):
        hosts = rank_hosts(network.fabric, order=f"random:{number}")
        interface = TopologyInterface.place(hosts, routes)
        graph = folded(read_graph(path), len(hosts))
        assert interface.routes is not None  # because ``place`` was given routes
        seconds = (link_loads(graph, interface) / interface.routes.fabric.link_rate).max()
        graph = scaled(graph, arguments.seconds / seconds)
        yield Case(f"{path.name.partition('.')[0]}, random:{number}", graph, interface, costs), hosts


def exchanged(network: Emulated, case: Case, hosts: list[str], arguments: argparse.Namespace) -> Row:
    """Exchange everything in both orders in turn in one job; return the predicted and the measured gain."""
    given = case.interface.rank_host.astype(np.int64)
    advised = case.advised()
    process_on = np.argsort(given)  # one rank per host
    columns = [each.tolist() for each in (case.graph.sources, case.graph.targets, case.graph.volume)]
    plan = {"graph": columns, "seats": [process_on[order].tolist() for order in (given, advised)]}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.json"
        file.write_text(json.dumps(plan | {"rounds": arguments.rounds}))
        options = LaunchOptions(hosts=hosts, python=arguments.python, timeout=arguments.timeout)
        done = network.run(["-m", "benchmarks.advice_ranks", str(file)], options)
    if done.returncode:
        raise TopompiError(f"{case.name}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return gains(case, advised, json.loads(done.stdout.splitlines()[-1]), [done.usage.idle or 0.0])


def gains(case: Case, advised: NDArray[np.int64], times: Sequence[Sequence[float]], idle: list[float]) -> Row:
    """Return the predicted and the measured gain of an order.

    :param case: the graph, with the given order.
    :param advised: host of each rank in the advised order, shape (p,).
    :param times: seconds of the exchanges in the given and in the advised order, taken in turn.
    :param idle: idle share of the processors in each job.
    """
    orders = case.interface.rank_host.astype(np.int64), advised
    foreseen, ratios = [case.predicted(order) for order in orders], np.divide(times[0], times[1])
    return {
        "case": case.name,
        "predicted": foreseen[0] / foreseen[1],
        "measured": float(np.median(ratios)),
        "rounds": len(ratios),
        "low": float(np.percentile(ratios, 25)),
        "high": float(np.percentile(ratios, 75)),
        "foreseen": foreseen,
        "seconds": [float(np.median(one)) for one in times],
        "idle": min(idle),
    }


def example(network: Emulated, name: str, number: int, costs: Model, arguments: argparse.Namespace) -> Row:
    """Record an example on the network, then run it in turn with and without its own re-ordering."""
    program = ROOT / "examples" / name.split()[0] / f"{name.split()[0]}.py"
    hosts = rank_hosts(network.fabric, order=f"random:{number}")
    interface, idle = TopologyInterface.place(hosts, compute_routes(network.fabric)), []

    def ran(*words: str, **options: Any) -> float:
        job = LaunchOptions(hosts=hosts, python=arguments.python, timeout=arguments.timeout, **options)
        done = network.run([*words, "--json"], job)
        if done.returncode:
            raise TopompiError(f"{name}: exit code {done.returncode}: {done.stderr[-2000:]}")
        idle.append(done.usage.idle or 0.0)
        return float(json.loads(done.stdout.splitlines()[-1])["communication"])

    command = [str(program), *EXAMPLES[name].split(), "--reorder"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.topoprof"
        # Without a topology nothing is re-ordered, so that the launcher only records.
        ran("-m", "topompi", *command, "none", topology=False, environment={"TOPOMPI_PROFILE": str(file)})
        profile = read_profile(file)
    case = Case(f"{name}, random:{number}", profile.graph(), interface, costs, profile)
    times = [[ran(*command, order) for order in ("none", "topompi")] for _ in range(arguments.runs)]
    return gains(case, case.advised(), list(zip(*times, strict=True)), idle)


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the rows as Markdown, and the number of rows within the goal."""
    yield "| case | seconds predicted | measured | predicted gain | measured gain, quartiles | rounds | idle | error |"
    yield "|---|---|---|---|---|---|---|---|"
    errors = [max(row["predicted"] / row["measured"], row["measured"] / row["predicted"]) for row in rows]
    for row, error in zip(rows, errors, strict=True):
        seconds = [" to ".join(f"{one:.2f}" for one in row[key]) for key in ("foreseen", "seconds")]
        measured = f"{row['measured']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        cells = [row["case"], *seconds, f"{row['predicted']:.2f}", measured, row["rounds"], f"{row['idle']:.0%}"]
        yield f"| {' | '.join(map(str, cells))} | {error:.2f} |"
    yield f"\n{sum(error <= WITHIN for error in errors)} of {len(errors)} within a factor {WITHIN}."


def main() -> int:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="4x4", help="what to emulate (default 4x4)")
    parser.add_argument("--host-rate", default="25M", help="of host links, bits/s (default 25M)")
    parser.add_argument("--uplink-rate", default="25M", help="of uplinks (default 25M: 4:1)")
    parser.add_argument("--graphs", help="folder of recorded graphs (*.graphStats.txt.xz)")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="of the busiest link in the given order (default 0.5)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="exchanges in each order (default 9)")
    parser.add_argument("--runs", type=int, default=2, help="runs of an example on each side (default 2)")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds that one job may take (default 180)")
    parser.add_argument("--python", default=sys.executable, help="interpreter whose MPI runs the programs")
    parser.add_argument("--examples", nargs="*", choices=EXAMPLES, default=list(EXAMPLES), help="which (default all)")
    parser.add_argument("--json", metavar="FILE", help="write the rows here")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with Emulated(arguments.network, Rates.parse(arguments.host_rate, arguments.uplink_rate)) as network:
        costs = costs_of(network, arguments)
        for case, hosts in graph_cases(network, costs, arguments) if arguments.graphs else ():
            rows.append(exchanged(network, case, hosts, arguments))
            progress(str(rows[-1]))
        for number, name in enumerate(EXAMPLES, 1):
            if name in arguments.examples:
                rows.append(example(network, name, number, costs, arguments))
                progress(str(rows[-1]))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
