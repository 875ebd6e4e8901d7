"""Least times and schedules on many fabrics: ``python -m studies optimum [--quick] [-o docs/lab]``.

Schedules are simulated with flows: 150 ns a link, 1 us of a processor for each message sent or received, one rank a
host. Ours are those that may be chosen by default; before are those that might be chosen before schedules followed
routes and rates; others are those that libraries run, with ranks in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from topompi.netsim.flows import Hosts, run
from topompi.network import Tables
from topompi.schedules import Network, optimum
from topompi.schedules.librarylike import LIBRARY_ALGORITHMS
from topompi.schedules.network import DEPTH_FIRST
from topompi.schedules.registry import ALGORITHMS, suited
from topompi.schedules.segments import make_cut, variants
from topompi.views.program import program_of, wiring_of

from ..tables import Table, show_many
from . import packets
from .fabrics import FABRICS, QUICK, network

__all__ = ["COLLECTIVES", "SIZES", "best", "main"]

COLLECTIVES = ("bcast", "reduce", "allgather", "reduce_scatter", "allreduce")
SHARED = ("allgather", "reduce_scatter")  # a size is that of all shares together
SIZES = {"64 KiB": 64 << 10, "1 MiB": 1 << 20, "16 MiB": 16 << 20, "64 MiB": 64 << 20}
HEAD = ("fabric", "least time of 16 MiB", *(f"{one}: before; ours; other" for one in SIZES))
FORMER = {
    "bcast": ("chain", "scatter_allgather", "circulant"),
    "reduce": ("chain", "circulant", "halving"),
    "allgather": ("ring",),
    "reduce_scatter": ("ring", "halving"),
    "allreduce": ("ring", "halving"),
}
OVERHEADS = Hosts(send_overhead=1e-6, receive_overhead=1e-6, eager=8192)
MOST_MESSAGES = 150_000  # of one schedule; more take some seconds


def ours(collective: str, nbytes: int, place: Network) -> list[str]:
    """The algorithms that may be chosen without measurements on hosts of one rank, also with messages in parts.

    :param collective: name of the collective.
    :param nbytes: size of the message as `make_cut` takes it.
    :param place: the job's network.
    """
    counted = nbytes * place.num_ranks if collective == "reduce_scatter" else nbytes
    known = ALGORITHMS[collective]
    names = [one for one in suited(collective, place) if not known[one].alone and known[one].default <= counted]
    return [*names, *variants(collective, names, counted, place.num_ranks)]


def others(collective: str) -> list[str]:
    """The algorithms that libraries run without knowledge of the network."""
    stand_ins = [name for name, one in ALGORITHMS[collective].items() if one.stand_in]
    return [*stand_ins, *LIBRARY_ALGORITHMS.get(collective, {})]


def unaware(place: Network) -> Network:
    """A network of the same ranks on one switch, for which schedules take ranks in their order."""
    ranks = place.num_ranks
    paths = Tables.one_switch(ranks)
    hops = (1 - np.eye(ranks)).astype(np.int16)
    rate = np.full(2 * ranks, place.capacity.max())
    return Network(np.arange(ranks), hops, paths, rate, np.zeros((1, ranks), dtype=np.int64), paths.latency)


def best(place: Network, seen: Network, collective: str, nbytes: int, names: Iterable[str]) -> tuple[float, str]:
    """The least simulated time of some algorithms in seconds, and the algorithm; infinite if none can run.

    :param place: the job's network.
    :param seen: the network for which schedules are made.
    :param collective: name of the collective.
    :param nbytes: size of the message as `make_cut` takes it.
    :param names: names of the algorithms.
    """
    found, wiring = (float("inf"), "none"), wiring_of(place)
    for name in names:
        try:
            made = make_cut(collective, name, seen, 0, nbytes)
        except ValueError:  # for example an odd number of ranks
            continue
        if len(made.schedule.messages) > MOST_MESSAGES:
            continue
        program = program_of(made.schedule, place, made.block_bytes)
        found = min(found, (float(run(wiring, [program], hosts=OVERHEADS).job_seconds[0]), name))
    return found


def _tables(quick: bool) -> Iterator[Table]:
    for collective in COLLECTIVES:
        yield f"optimum {collective}", HEAD, _rows(collective, quick)
    yield "optimum packets", packets.HEAD, packets.rows(quick, OVERHEADS)


def _rows(collective: str, quick: bool) -> Iterator[list[str]]:
    for name, make in (QUICK if quick else FABRICS).items():
        place = network(make)
        if place is None:
            yield [name, "its data are not here", *["-"] * len(SIZES)]
            continue
        least = optimum(collective, place).given
        parts = place.num_ranks if collective in SHARED else 1
        sign = "" if least.is_reached else "at least "
        yield [
            name,
            f"{sign}{1e3 * least.seconds * (16 << 20) / parts:.4g} ms",
            *_cells(collective, place, least.seconds),
        ]


def _cells(collective: str, place: Network, least: float) -> Iterator[str]:
    parts = place.num_ranks if collective in SHARED else 1
    for size in SIZES.values():
        nbytes = size // parts
        if place.num_ranks > 64 and size not in (1 << 20, 16 << 20):
            yield "-"
            continue
        former = [*FORMER[collective], *variants(collective, FORMER[collective], size, place.num_ranks)]
        other = best(place, unaware(place), collective, nbytes, others(collective))
        before = best(place, replace(place, order=DEPTH_FIRST), collective, nbytes, former)
        aware = best(place, place, collective, nbytes, ours(collective, nbytes, place))
        now = aware if np.isfinite(aware[0]) else (other[0], "library")  # calls of this size are left to it
        yield "; ".join(f"{seconds / (least * nbytes):.2f} {name}" for seconds, name in (before, now, other))


def main(arguments: Sequence[str]) -> int:
    """Print the tables.

    :param arguments: arguments after the source's name: ``-o DIR`` and ``--quick``.
    """
    print("model: flows, 150 ns a link, 1 us of a processor for each message sent or received")
    return show_many("optimum", "optimum.md", _tables, arguments)
