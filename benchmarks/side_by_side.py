"""Two jobs at once with real MPI on an emulated network: what each loses to the other, measured and simulated.

    python -m benchmarks.side_by_side --json side_by_side.json

Needs root. Each job has half of the hosts, one rank on each. ``sharing`` gives both jobs half of the hosts of every
leaf switch, ``disjoint`` gives each its own leaf switches. In each round each job runs alone and beside the other, so
that a slow-down is a ratio within a round; the median of the rounds is compared with those of ``topompi jobs replay``,
as flows and as packets with the preset of emulated networks.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np

from osu_like_bench.emulate import Emulated, LaunchOptions, Rates
from osu_like_bench.emulate.monitor import ENOUGH
from topompi.errors import TopompiError
from topompi.interference.network import SharedNetwork
from topompi.interference.replay import replay
from topompi.netsim import RECEIVE, SEND, Program
from topompi.netsim.packets import PRESETS
from topompi.topology import Fabric, compute_routes
from topompi.views.tables import tables_of

from .jobs import network_parser, one_line_errors, progress

RANKS = "benchmarks.side_by_side_ranks"  # in the same folder as osu_like_bench, so that a job finds it
# Below Open MPI's limit for messages that are sent at once (64 KiB): the acknowledgement that a longer one waits for
# stands behind the data of the other direction.
NBYTES = 60_000
PAIRS = "alltoall+alltoall,alltoall+bcast,alltoall+stencil,bcast+stencil,stencil+stencil"
WITHIN = 1.15  # ratio of predicted and measured slow-down
ITERATIONS = 20  # that are simulated
MODELS = ("flows", "packets")
# Step, kind, peer, bytes, and the step that has to be complete before, or -1. MPI completes the send of a small message
# at once, so that no operation waits for a send: a rank runs ahead of its messages.
Operations = list[tuple[int, int, int, int, int]]


def tree(rank: int, size: int) -> tuple[int | None, list[int]]:
    """Return the parent of a rank in a binomial tree from rank 0, and its children, those of large subtrees first."""
    low = rank & -rank if rank else 1 << (size - 1).bit_length()
    children = [rank + (1 << bit) for bit in reversed(range(low.bit_length() - 1)) if rank + (1 << bit) < size]
    return (rank - low if rank else None), children


def neighbours(rank: int, size: int) -> list[int]:
    """Return the four neighbours of a rank in a periodic grid, numbered by rows, that is as square as possible."""
    rows = max(one for one in range(1, size + 1) if one * one <= size and size % one == 0)
    columns = size // rows
    row, column = divmod(rank, columns)
    places = ((row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column))
    return [other % rows * columns + at % columns for other, at in places]


def alltoall(rank: int, size: int) -> Operations:
    """Return a rank's operations in an exchange of all ranks, one after the other."""
    found = []
    for turn in range(1, size):
        found.append((2 * turn, SEND, (rank + turn) % size, NBYTES, 2 * turn - 1 if turn > 1 else -1))
        found.append((2 * turn + 1, RECEIVE, (rank - turn) % size, NBYTES, -1))
    return found


def bcast(rank: int, size: int) -> Operations:
    """Return a rank's operations in a broadcast along a binomial tree, with the answers that go back to the root."""
    parent, children = tree(rank, size)
    came, answered = (0 if parent is not None else -1), 2
    found = [(came, RECEIVE, parent, NBYTES, -1)] if parent is not None else []
    found += [(1, SEND, child, NBYTES, came) for child in children]
    found += [(answered, RECEIVE, child, 1, -1) for child in children]
    return found + ([(3, SEND, parent, 1, answered if children else came)] if parent is not None else [])


def stencil(rank: int, size: int) -> Operations:
    """Return a rank's operations in an exchange with its four neighbours at once."""
    around = neighbours(rank, size)
    return [(0, RECEIVE, peer, NBYTES, -1) for peer in around] + [(1, SEND, peer, NBYTES, -1) for peer in around]


KINDS = {"alltoall": alltoall, "bcast": bcast, "stencil": stencil}


@dataclass(frozen=True)
class Row:
    """The slow-down of a job beside another one.

    :param placement: ``sharing`` or ``disjoint``.
    :param job: kind of the job.
    :param beside: kind of the other job.
    :param alone: measured seconds of an iteration alone, median of the rounds.
    :param measured: slow-down of each round.
    :param flows: slow-down simulated as flows.
    :param packets: slow-down simulated as packets.
    """

    placement: str
    job: str
    beside: str
    alone: float
    measured: list[float]
    flows: float
    packets: float

    @property
    def median(self) -> float:
        """The median of the measured slow-downs."""
        return float(np.median(self.measured))

    def near(self, predicted: float) -> bool:
        """Whether a predicted slow-down is within ``WITHIN`` of the measured one."""
        return 1 / WITHIN <= predicted / self.median <= WITHIN


def hosts_of(fabric: Fabric, placement: str) -> list[list[int]]:
    """Return the hosts of the two jobs, in the order of their ranks."""
    leaf = np.array([int(fabric.adapter_leaf[fabric.host_adapters[host][0]]) for host in range(fabric.num_hosts)])
    order = np.argsort(leaf, kind="stable")
    if placement == "disjoint":
        return [part.tolist() for part in np.split(order, 2)]
    within = np.array([int((leaf[order[:at]] == leaf[host]).sum()) for at, host in enumerate(order)])
    half = np.array([int((leaf == leaf[host]).sum()) for host in order]) // 2
    return [order[within < half].tolist(), order[within >= half].tolist()]


def program_of(kind: str, hosts: Sequence[int], name: str) -> Program:
    """Return the messages of a job; an iteration begins when the rank has received all of the one before."""
    size = len(hosts)
    columns: list[list[int]] = [[], [], [], [], [], []]  # rank, step, kind, peer, bytes, after
    for rank in range(size):
        once = KINDS[kind](rank, size)
        steps = 1 + max(step for step, *_ in once)
        last = max((step for step, what, *_ in once if what == RECEIVE), default=-1)
        for turn, (step, what, peer, nbytes, after) in product(range(ITERATIONS), once):
            before = after + turn * steps if after >= 0 else (turn - 1) * steps + last if turn else -1
            for column, value in zip(columns, (rank, step + turn * steps, what, peer, nbytes, before), strict=True):
                column.append(value)
    ranks, steps_of, kinds, peers, sizes, waits = (np.array(column) for column in columns)
    return Program(
        np.array(hosts), ranks, steps_of, kinds, peers, sizes.astype(np.float64), window=0, name=name, after=waits
    )


def slow_downs(fabric: Fabric, kinds: Sequence[str], hosts: Sequence[Sequence[int]], model: str) -> list[float]:
    """Simulate two jobs; return the slow-down of each beside the other.

    :param fabric: the emulated fabric.
    :param kinds: kind of each job.
    :param hosts: hosts of each job.
    :param model: ``flow`` or ``packet``.
    """
    preset = PRESETS["emulated"]
    tables = tables_of(compute_routes(fabric), latency=preset.latency)
    network = SharedNetwork(tables, model, preset.hosts, preset.settings)
    programs = [
        program_of(kind, some, f"{kind}-{at}") for at, (kind, some) in enumerate(zip(kinds, hosts, strict=True))
    ]
    found = replay(network, programs)
    return [float(one) for one in found.sharing / found.alone]


def rows_of(network: Emulated, placement: str, kinds: Sequence[str], arguments: argparse.Namespace) -> list[Row]:
    """Measure and simulate a pair of jobs."""
    hosts = hosts_of(network.fabric, placement)
    order = [host for some in hosts for host in some]
    ranks = [list(range(len(hosts[0]))), list(range(len(hosts[0]), len(order)))]
    jobs = [{"kind": kind, "nbytes": NBYTES, "ranks": some} for kind, some in zip(kinds, ranks, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.json"
        plan.write_text(json.dumps({"jobs": jobs, "seconds": arguments.seconds, "rounds": arguments.rounds}))
        names = [network.fabric.hosts[host] for host in order]
        done = network.run(["-m", RANKS, str(plan)], LaunchOptions(hosts=names, timeout=arguments.timeout))
    if done.returncode:
        raise TopompiError(f"{'+'.join(kinds)}, {placement}: exit code {done.returncode}: {done.stderr[-2000:]}")
    if done.usage.idle is not None and done.usage.idle < ENOUGH:
        progress(f"{'+'.join(kinds)}, {placement}: processors were idle for {done.usage.idle:.0%} only")
    measured = np.array(json.loads(done.stdout.splitlines()[-1]))  # [job, round, alone or beside]
    ratios = measured[:, :, 1] / measured[:, :, 0]
    predicted = [slow_downs(network.fabric, kinds, hosts, model) for model in ("flow", "packet")]
    progress(f"{placement}: {'+'.join(kinds)} measured")
    return [
        Row(
            placement,
            kind,
            kinds[1 - at],
            float(np.median(measured[at, :, 0])),
            ratios[at].tolist(),
            *(slow_down[at] for slow_down in predicted),
        )
        for at, kind in enumerate(kinds)
    ]


def markdown(rows: Sequence[Row], network: str, rounds: int) -> Iterator[str]:
    """Yield the lines of the report."""
    for name in MODELS:
        for placement in dict.fromkeys(row.placement for row in rows):
            some = [row for row in rows if row.placement == placement]
            near = sum(row.near(getattr(row, name)) for row in some)
            yield f"{placement}: {near} of {len(some)} slow-downs within {WITHIN} by {name}"
    machine = platform.processor() or platform.machine()
    yield f"{network}; {machine}; Open MPI; medians of {rounds} rounds, least to most"
    yield ""
    yield f"| placement | job | beside | alone | measured | {' | '.join(MODELS)} |"
    yield f"|{' --- |' * (5 + len(MODELS))}"
    for row in rows:
        spread = f"{row.median:.2f} ({min(row.measured):.2f} to {max(row.measured):.2f})"
        marks = [f"{one:.2f}{'' if row.near(one) else ' !'}" for one in (getattr(row, name) for name in MODELS)]
        cells = [row.placement, row.job, row.beside, f"{1e3 * row.alone:.1f} ms", spread, *marks]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print the table, and write all measurements."""
    parser = network_parser(__doc__)
    parser.add_argument("--uplink-rate", default="100M", help="of uplinks; 400M is 1:1 for 4 hosts of 100M, 100M 4:1")
    parser.add_argument("--pairs", default=PAIRS, help=f"pairs of jobs (default {PAIRS})")
    parser.add_argument("--placements", default="sharing,disjoint")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each job alone, and of both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one pair may take")
    parser.add_argument("--json", help="write all measurements here")
    arguments = parser.parse_args()
    with one_line_errors("side_by_side"):
        rates = Rates.parse(arguments.host_rate, arguments.uplink_rate)
        with Emulated(arguments.network, rates) as network:
            rows = [
                row
                for placement in arguments.placements.split(",")
                for pair in arguments.pairs.split(",")
                for row in rows_of(network, placement, pair.split("+"), arguments)
            ]
        print("\n".join(markdown(rows, f"{arguments.network}, uplinks {arguments.uplink_rate}", arguments.rounds)))
        if arguments.json:
            Path(arguments.json).write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
