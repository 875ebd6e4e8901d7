"""The gain of a C program by `topompi export ompi-rules`, beside that of the best of Open MPI's own algorithms.

    python -m benchmarks.choices_in_c --json choices.json
    python -m benchmarks.choices_in_c --again choices.json

Needs root and a C compiler. On an emulated network, one job measures for each call and size Open MPI's own choice, the
rules file that the cost model writes for this network and placement, and every algorithm of coll/tuned, in turn.
`--again` reads measurements, and also scores the choices that the model makes now, by the times of the algorithms that
they name.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from osu_like_bench.emulate import Emulated, LaunchOptions, Rates
from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.emulate.network import burst_of
from osu_like_bench.emulate.spec import emulated_routes
from topompi.errors import TopompiError
from topompi.prediction.libraries.openmpi import OpenMPI
from topompi.prediction.librarychoices import OVER_HOSTS, SIZES, LibraryChoice, choices, left_to_han
from topompi.prediction.predictor import Predictor
from topompi.schedules import lower_bound
from topompi.schedules.analysis.model import Model
from topompi.topology import TopologyInterface
from topompi.tuning.ompi_rules import of_choices, write_classic

from .choices_in_c_score import METHODS, OWN, Cell, rechosen, tables
from .jobs import compiled, one_line_errors, progress

# Bytes of the segments with which algorithms are forced too, if two of them fit into a call.
SEGMENTS = (8 << 10, 32 << 10, 128 << 10)
SEGMENTED: Mapping[str, Mapping[int, tuple[int, ...]]] = {
    "Bcast": {3: SEGMENTS, **dict.fromkeys((2, 4, 5, 6), SEGMENTS[:1])},
    "Reduce": {3: SEGMENTS, **dict.fromkeys((2, 4, 5, 6), SEGMENTS[:1])},
    "Allreduce": {5: SEGMENTS[1:2]},
}
MEASURED = tuple(1 << power for power in range(10, 21, 2))
NETWORKS = "4x4:1,2x4:2"
UPLINKS = "100M,200M"
ORDERS = "block,random:1"
ROOTED = ("Bcast", "Reduce", "Gather", "Scatter")
PARTS = ("networks", "uplinks", "orders")  # options with lists; a job is measured for each combination


class Arena:
    """A job on a network, without measurements.

    :param network: specification of the network.
    :param uplinks: rate of its uplinks; hosts have links of 100 Mbit/s.
    :param order: order of the ranks over the hosts.
    :param ppn: ranks of each host.
    :param told: whether the cost model is told how many bytes an idle emulated link passes at once.
    """

    def __init__(self, network: str, uplinks: str, order: str, ppn: int, told: bool = True) -> None:
        self.network, self.uplinks, self.order, self.ppn = network, uplinks, order, ppn
        routes = emulated_routes(network, Rates.parse("100M", uplinks))
        hosts = rank_hosts(routes.fabric, ppn=ppn, order=order)
        rate = 100e6 / 8
        model = replace(Model.of_rate(rate), burst=burst_of(rate)) if told else None
        interface = TopologyInterface.place(list(hosts), routes)
        self.predictor = Predictor(interface, OpenMPI((5, 0), "5.0"), model=model)

    @property
    def name(self) -> str:
        """The arena in words."""
        return f"{self.network}, uplinks {self.uplinks}, {self.order}, {self.ppn} a host"

    @cached_property
    def chosen(self) -> list[LibraryChoice]:
        """The choices of all methods, as the command makes them."""
        return [one for method in METHODS for one in choices(self.predictor, method, SIZES)]

    @cached_property
    def left(self) -> list[str]:
        """The methods that coll/han runs in spite of the file."""
        return left_to_han(self.predictor, self.chosen)

    def rules(self) -> str:
        """The rules file, as the command writes it."""
        chosen = [one for one in self.chosen if one.method not in self.left]
        return write_classic(of_choices(chosen, self.predictor.interface.num_ranks), [])

    def plan(self, seconds: float, limit: float, forced: bool = True) -> str:
        """The plan of the C program.

        :param seconds: time for each size of a collective.
        :param limit: most seconds of a call's least time; sizes with a longer one are left out.
        :param forced: whether to measure every algorithm, too.
        """
        moved = () if self.ppn == 1 else (method for method in OVER_HOSTS if method not in self.left)
        lines = [f"moved {method.lower()}" for method in moved]
        for method, words in METHODS.items():
            sides = [(number, 0) for number in words]
            sides += [(number, one) for number, some in SEGMENTED.get(method, {}).items() for one in some]
            lines += [f"method {method}", "side -1 0", "side 0 0"]
            lines += [f"side {number} {segment}" for number, segment in sides if forced]
            sizes = [nbytes for nbytes in MEASURED if self._bound(method, nbytes) <= limit]
            lines += [f"size {nbytes} {1000 * seconds:.0f}" for nbytes in sizes]
        return "\n".join([*lines, ""])

    def _bound(self, method: str, nbytes: int) -> float:
        collective = method.lower().removesuffix("_block")
        network = self.predictor.network
        block = nbytes // self.predictor.interface.num_ranks if collective == "reduce_scatter" else nbytes
        root = 0 if method in ROOTED else None
        return block * lower_bound(network, collective, root=root).seconds


def measured(arena: Arena, program: Path, directory: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Run an arena's job, and return what the program prints for each size.

    :param arena: the job and its network.
    :param program: the compiled program.
    :param directory: folder for the plan and the rules.
    :param arguments: arguments of the command line.
    """
    plan, rules = directory / "plan", directory / "rules.conf"
    plan.write_text(arena.plan(arguments.seconds, arguments.limit, not arguments.file_only))
    rules.write_text(arena.rules())
    variables = {"use_dynamic_rules": "1", "dynamic_rules_filename": str(rules)}
    environment = {f"OMPI_MCA_coll_tuned_{name}": value for name, value in variables.items()}
    options = LaunchOptions(ppn=arena.ppn, order=arena.order, environment=environment, timeout=arguments.timeout)
    with Emulated(arena.network, Rates.parse("100M", arena.uplinks)) as network:
        done = network.run([str(program), str(plan), str(arguments.most)], options)
    if done.returncode:
        raise TopompiError(f"{arena.name}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def arenas(arguments: argparse.Namespace) -> Iterator[Arena]:
    """The arenas that the command line names."""
    for network, uplinks, order in product(*(getattr(arguments, name).split(",") for name in PARTS)):
        shape, _, ppn = network.partition(":")
        yield Arena(shape, uplinks, order, int(ppn or 1))


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=NETWORKS, help=f"SHAPE:RANKS of each host (default {NETWORKS})")
    parser.add_argument("--uplinks", default=UPLINKS, help=f"rates of uplinks (default {UPLINKS})")
    parser.add_argument("--orders", default=ORDERS, help=f"orders of ranks (default {ORDERS})")
    parser.add_argument("--seconds", type=float, default=0.6, help="for each size of a collective (default 0.6)")
    parser.add_argument("--limit", type=float, default=0.2, help="longest least time of a call, in seconds")
    parser.add_argument("--most", type=float, default=1e9, help="seconds of a job after which no long calls are timed")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that one job may take")
    parser.add_argument("--quick", action="store_true", help="one small network, a tenth of the time, short calls")
    parser.add_argument("--file-only", action="store_true", help="measure the file, and no forced algorithm")
    parser.add_argument("--again", nargs="+", type=Path, default=[], help="read measurements instead of making them")
    parser.add_argument("--json", type=Path, help="write all samples here")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.networks, arguments.uplinks, arguments.orders = "2x2:2", "100M", "random:1"
        arguments.seconds, arguments.limit = 0.1, 0.02
    return arguments


def main() -> None:
    """Measure or read measurements, and print the tables."""
    arguments = parse()
    with one_line_errors("choices_in_c"), tempfile.TemporaryDirectory() as scratch:
        kept = [one for path in arguments.again for one in json.loads(path.read_text())]
        if not arguments.again:
            program = compiled("choice_loops", Path(scratch))
            for arena in arenas(arguments):
                found = measured(arena, program, Path(scratch), arguments)
                named = {name: getattr(arena, name) for name in ("network", "uplinks", "order", "ppn")}
                kept += [{**named, **cell} for cell in found]
                progress(arena.name)
                if arguments.json:
                    arguments.json.write_text(json.dumps(kept) + "\n")
        cells = [Cell.of(one) for one in kept]
        print("\n".join(tables(cells)))
        for told in (True, False) if arguments.again else ():
            print(f"\nThe choices that the model makes now, {'told' if told else 'not told'} of bursts:\n")
            print("\n".join(tables(rechosen_by_model(cells, told))))


def rechosen_by_model(cells: Sequence[Cell], told: bool) -> list[Cell]:
    """The cells with the times of the algorithms that the model chooses now, if they were measured.

    :param cells: the measured cells.
    :param told: whether the cost model is told how many bytes an idle emulated link passes at once.
    """
    made = {arena: Arena(*arena, told=told) for arena in {one.arena for one in cells}}
    found = []
    for cell in cells:
        arena = made[cell.arena]
        choice = next(one for one in arena.chosen if (one.method, one.nbytes) == (cell.method, cell.nbytes))
        other = rechosen(cell, choice.number, choice.segment, arena.predictor.interface.num_ranks)
        found.append(replace(cell, ours=OWN) if cell.method in arena.left else other)
    return [one for one in found if one is not None]


if __name__ == "__main__":
    main()
