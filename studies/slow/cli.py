"""Allreduces with slow hosts: ``python -m studies slow [--quick] [-o docs/lab]``.

A slow host has a part of the rate of the others, out and in. Flows are those of ``studies optimum``. Packets have the
hosts and switches of the preset ``fdr``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from topompi.inputs.figures import size_name
from topompi.netsim import Tables
from topompi.schedules import Network, optimum
from topompi.schedules.registry import ALGORITHMS
from topompi.schedules.segments import make_cut, variants
from topompi.views.program import program_of, wiring_of

from ..families.fabrics import simulated
from ..optimum.cli import best
from ..optimum.fabrics import FABRICS, job, network, slowed
from ..tables import Table, show_many

__all__ = ["ALL", "aside", "fastest", "main"]

TREE = "XGFT(2; 16,4; 1,16)"
SLOW = 5  # the slow host
HALF = {SLOW: 0.5}
SIZES = (1 << 20, 16 << 20, 64 << 20)
ALL = ("ring", "halving", "grouped", "swing")  # in which all hosts take part
AS_PACKETS = ("aside", "aside/1024K")  # each takes some seconds
WITHOUT = ("Janus, nue, 256 hosts", "one host at half rate")
HOSTS: Mapping[str, Mapping[int, float]] = {
    "1 at 3/4": {5: 0.75},
    "1 at 1/2": HALF,
    "1 at 1/4": {5: 0.25},
    "2 at 1/2": dict.fromkeys((5, 40), 0.5),
    "4 at 1/2": dict.fromkeys((5, 22, 40, 61), 0.5),
    "8 at 1/2": dict.fromkeys(range(5, 64, 8), 0.5),
    "1 at 1/4, 3 at 1/2": {5: 0.25, 22: 0.5, 40: 0.5, 61: 0.5},
    "32 at 1/2": dict.fromkeys(range(0, 64, 2), 0.5),
}


def aside(nbytes: int, ranks: int) -> list[str]:
    """The algorithms in which slow hosts stand aside, also with messages in parts."""
    known = ALGORITHMS["allreduce"]
    names = [name for name, one in known.items() if one.needs == "slow hosts" and not one.alone]
    return [*names, *variants("allreduce", names, nbytes, ranks)]


def fastest(place: Network, nbytes: int, names: Sequence[str]) -> tuple[float, str]:
    """The least simulated seconds of an allreduce by one of some algorithms, and the algorithm.

    :param place: the job's network.
    :param nbytes: bytes of the vector.
    :param names: names of the algorithms.
    """
    return best(place, place, "allreduce", nbytes, names)


def _cells(whole: Network, slow: Network, nbytes: int) -> list[str]:
    """The time without a slow host, and as multiples of it: the least time, all hosts, and slow ones aside."""
    free, _ = fastest(whole, nbytes, ALL)
    least = optimum("allreduce", slow).given.seconds * nbytes
    every, kept = fastest(slow, nbytes, ALL)
    beside, name = fastest(slow, nbytes, aside(nbytes, whole.num_ranks))
    ratios = (f"{least / free:.2f}", f"{every / free:.2f} {kept}", f"{beside / free:.2f} {name}")
    return [f"{1e3 * free:.3f} ms; {'; '.join(ratios)}"]


@cache
def _tree(hosts: int) -> Network:
    found = network(partial(job, TREE, hosts=hosts))
    assert found is not None  # no data are needed
    return found


def _by_ranks(quick: bool) -> Iterator[list[str]]:
    for hosts in (8,) if quick else (8, 16, 32, 64):
        whole = _tree(hosts)
        slow = slowed(whole, HALF)
        yield [str(hosts), *(cell for size in SIZES[: 1 if quick else 3] for cell in _cells(whole, slow, size))]


def _by_fabric(quick: bool) -> Iterator[list[str]]:
    for name, make in FABRICS.items():
        whole = None if name in WITHOUT or (quick and name != "torus 8x8") else network(make)
        if whole is not None:
            slow = slowed(whole, HALF)
            yield [name, *(cell for size in SIZES[1 : 2 if quick else 3] for cell in _cells(whole, slow, size))]


def _by_hosts(quick: bool) -> Iterator[list[str]]:
    whole = _tree(64)
    for name, rates in list(HOSTS.items())[: 2 if quick else None]:
        yield [name, *_cells(whole, slowed(whole, rates), 16 << 20)]


def _by_packets(quick: bool) -> Iterator[list[str]]:
    for name, whole in (
        (f"{TREE}, 16 hosts", _tree(16)),
        *(() if quick else ((f"{TREE}, 64 hosts", _tree(64)), ("torus 4x4x4", network(FABRICS["torus 4x4x4"])))),
    ):
        assert whole is not None
        slow, nbytes = slowed(whole, HALF), (1 << 20) if quick else (16 << 20)
        cells = []
        for place, names in ((whole, ALL), (slow, ALL)):
            _, chosen = fastest(place, nbytes, names)
            cells.append(_both(place, chosen, nbytes))
        cells.append(min(_both(slow, one, nbytes) for one in AS_PACKETS))
        yield [name, *(f"{packets:.2f}; {flows:.2f} {algorithm}" for packets, flows, algorithm in cells)]


def _both(place: Network, algorithm: str, nbytes: int) -> tuple[float, float, str]:
    """The simulated milliseconds of an allreduce by packets and by flows, and the algorithm.

    :param place: the job's network.
    :param algorithm: name of the algorithm.
    :param nbytes: bytes of the vector.
    """
    made = make_cut("allreduce", algorithm, place, 0, nbytes)
    program, wiring = program_of(made.schedule, place, made.block_bytes), wiring_of(place)
    if not isinstance(wiring, Tables):
        raise TypeError(f"expecting tables of next-hop links, got {type(wiring).__name__}")
    packets, flows = (1e3 * simulated(program, wiring, model) for model in ("packets", "flows"))
    return packets, flows, algorithm


def _tables(quick: bool) -> Iterator[Table]:
    sizes = [size_name(size) for size in SIZES]
    yield "slow ranks", ("hosts", *sizes[: 1 if quick else 3]), _by_ranks(quick)
    yield "slow fabrics", ("fabric", *sizes[1 : 2 if quick else 3]), _by_fabric(quick)
    yield "slow hosts", ("slow hosts", sizes[1]), _by_hosts(quick)
    yield "slow packets", ("fabric", "no slow host", "all hosts", "slow host aside"), _by_packets(quick)


def main(arguments: Sequence[str]) -> int:
    """Print the tables.

    :param arguments: arguments after the source's name: ``-o DIR`` and ``--quick``.
    """
    print("model: flows, 150 ns a link, 1 us of a processor for each message sent or received; packets as fdr")
    return show_many("slow", "slow.md", _tables, arguments)
