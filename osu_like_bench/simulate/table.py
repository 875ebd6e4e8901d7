"""The results of simulations: as a table for people, and as a record for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from topompi import __version__
from topompi.topology import TopologyInterface

from ..options import Options
from ..record import Circumstances, Record, SizeResult
from .ground import Failure, Starts

__all__ = ["BOUND", "Findings", "facts_of", "lines", "record"]

BOUND = "bound"
Timing = float | Failure


@dataclass(frozen=True)
class Findings:
    """Simulated times by side (an algorithm of topompi or another library) and message size.

    :param sizes: bytes of one message, ascending.
    :param algorithms: names of topompi's algorithms.
    :param peers: names of other libraries.
    :param outcomes: seconds, or a failure, by (side, size).
    :param bounds: lower bounds of any schedule's seconds, by size; 0 if unknown.
    """

    sizes: tuple[int, ...]
    algorithms: tuple[str, ...]
    peers: tuple[str, ...]
    outcomes: dict[tuple[str, int], Timing]
    bounds: dict[int, float]

    def best(self, sides: Sequence[str], size: int) -> tuple[str, float] | None:
        """Return the name and seconds of the fastest of some sides at a size, the first among equals.

        The result is None if all have failed.
        """
        timed = [(side, self.outcomes[side, size]) for side in sides]
        found = [(side, seconds) for side, seconds in timed if not isinstance(seconds, Failure)]
        return min(found, key=lambda pair: pair[1]) if found else None

    @property
    def timed(self) -> bool:
        """Whether any simulation has a time."""
        return any(not isinstance(one, Failure) for one in self.outcomes.values())

    @property
    def failures(self) -> dict[tuple[str, int], str]:
        """Reasons for missing times, by (side, size)."""
        return {place: one.reason for place, one in self.outcomes.items() if isinstance(one, Failure)}


def facts_of(interface: TopologyInterface, about: dict[str, object]) -> Circumstances:
    """Return the circumstances of a simulation, which are the same on every machine and at any time.

    :param interface: topology of the job.
    :param about: facts about the simulation; ``simulator`` names the simulator.
    """
    hosts = tuple(interface.hosts[host] for host in interface.rank_host)
    return Circumstances(
        mpi=str(about["simulator"]),
        versions={"topompi": __version__, "numpy": np.__version__, "python": sys.version.split()[0]},
        ranks=interface.num_ranks,
        nodes=hosts,
        hosts=hosts,
        virtual=interface.virtual,
        topology=interface.source,
        description=interface.describe(),
        affinity=(),
        cpu="",
        cpus=0,
        load=(),
        oversubscribed=False,
        date="",
        arena="simulate",
        about=about,
    )


def record(options: Options, facts: Circumstances, found: Findings) -> Record:
    """Return the record of a simulation.

    A result has the seconds of each run of a side at a size (several runs if ranks start at random times). The lower
    bounds are recorded as a further side, and failures as facts.

    :param options: options of the run.
    :param facts: circumstances of the run.
    :param found: the times.
    """
    timed = [(size, side, found.outcomes[side, size]) for size in found.sizes for side in options.sides]
    timed += [(size, BOUND, seconds) for size, seconds in found.bounds.items() if seconds]
    results = [_result(size, side, seconds) for size, side, seconds in timed if not isinstance(seconds, Failure)]
    failures = {f"{side} {size}": reason for (side, size), reason in found.failures.items()}
    bracket = {f"{side} {size}": times for (side, size), times in _brackets(found)}
    about = facts.about | ({"failures": failures} if failures else {}) | ({"bracket": bracket} if bracket else {})
    return Record(options, Circumstances(**{**vars(facts), "about": about}), tuple(results))


def _result(size: int, side: str, seconds: float) -> SizeResult:
    samples = _samples(seconds)
    return SizeResult(size, side, float(np.mean(samples)), min(samples), max(samples), None, samples)


def _samples(seconds: float) -> tuple[float, ...]:
    return seconds.samples if isinstance(seconds, Starts) else (seconds,)


def lines(options: Options, facts: Circumstances, found: Findings) -> Iterator[str]:
    """Yield the lines of the output: first the sizes at which another library wins, then the table.

    :param options: options of the run.
    :param facts: circumstances of the run.
    :param found: the times.
    """
    yield f"# OSU-like simulation of {options.benchmark}, times in us"
    yield f"# {facts.description}; {facts.mpi}"
    yield f"# {facts.about['network']}; background: {facts.about['background']}"
    if "kernel" in facts.about:
        shares = ", ".join(f"{order} {share:.1%}" for order, share in facts.about["inside hosts"].items())
        yield f"# {facts.about['kernel']}; bytes inside hosts: {shares}"
    yield from (f"# {line}" for line in _short(found))
    rows = [_head(found), *(_row(found, size) for size in found.sizes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells])
    for (side, size), reason in found.failures.items():
        yield f"# {side} at {size} bytes: {reason}"
    yield from _intervals(found)
    for (side, size), times in _brackets(found):
        others = ", ".join(f"{seconds * 1e6:.2f} with {name}" for name, seconds in times.items())
        yield f"# {side} at {size} bytes: {others}"


def _brackets(found: Findings) -> Iterator[tuple[tuple[str, int], dict[str, float]]]:
    """Yield (side, size) and the simulated times with other switches, by description, if there are any."""
    for place, seconds in found.outcomes.items():
        if isinstance(seconds, Starts) and seconds.bracket:
            yield place, seconds.bracket


def _intervals(found: Findings) -> Iterator[str]:
    """Yield lines with the shortest and the longest time of the runs of which a time is the median."""
    for (side, size), seconds in found.outcomes.items():
        if isinstance(seconds, Starts) and len(seconds.samples) > 1:
            least, most = (end(seconds.samples) * 1e6 for end in (min, max))
            yield f"# {side} at {size} bytes: {least:.2f} to {most:.2f} over {len(seconds.samples)} starts"


def _short(found: Findings) -> Iterator[str]:
    """Yield lines with the sizes at which topompi's best algorithm is slower than a peer, and sides without a time."""
    slower = []
    for size in found.sizes:
        ours, peer = found.best(found.algorithms, size), found.best(found.peers, size)
        if ours is not None and peer is not None and ours[1] > peer[1]:
            slower.append(f"{size} ({peer[0]}, {ours[1] / peer[1]:.2f}x)")
    if slower:
        yield f"Slower than the best peer at {', '.join(slower)} bytes"
    failed = sorted({side for side, _ in found.failures})
    if failed:
        yield f"Without a time at some size, see below: {', '.join(failed)}"


def _head(found: Findings) -> list[str]:
    tail = ["Bound", "Best", "Best/bound", "Best peer", "Best/peer", "Verdict"]
    return ["# Size", *found.algorithms, *found.peers, *(tail if found.peers else tail[:3])]


def _row(found: Findings, size: int) -> list[str]:
    cells = [str(size), *(_cell(found.outcomes[side, size]) for side in (*found.algorithms, *found.peers))]
    ours, peer, bound = found.best(found.algorithms, size), found.best(found.peers, size), found.bounds[size]
    cells += [_cell(bound) if bound else "-", ours[0] if ours else "-"]
    cells.append(f"{ours[1] / bound:.3f}" if ours and bound else "-")
    if found.peers:
        cells.append(peer[0] if peer else "-")
        cells += _against(ours[1], peer[1]) if ours and peer else ["-", "-"]
    return cells


def _against(ours: float, peer: float) -> list[str]:
    ratio = ours / peer
    times = max(ratio, 1 / ratio)
    return [f"{ratio:.3f}", f"{times:.2f}x {'slower' if ratio > 1 else 'faster'}" if times >= 1.005 else "alike"]


def _cell(outcome: Timing) -> str:
    """Format microseconds, or a failure as one word."""
    if isinstance(outcome, Failure):
        return outcome.reason.partition(":")[0].partition(" of ")[0]
    return f"{outcome * 1e6:.2f}"
