"""Idle time of the processors and bytes on links during a job, which show which of the two is the bottleneck."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

from topompi.errors import BenchmarkError
from topompi.inputs import parse_json
from topompi.inputs.kernel import kernel_text
from topompi.inputs.programs import run_program
from topompi.topology import Fabric

from .network import ports
from .records import NetworkRecord

__all__ = ["ENOUGH", "Monitor", "Usage", "idle_ticks"]

PERIOD = 0.5  # seconds between samples, so that samples, of some milliseconds each, do not disturb the job
ENOUGH = 0.10  # least idle share of the processors with which they are not the bottleneck
QUIET = 1e-3  # share of the fastest link's rate; a period in which no link carries more is ignored, as no data flowed


@dataclass(frozen=True)
class Usage:
    """The load of processors and links during a job.

    :param idle: mean idle share of the processors, 0 to 1, over the periods between two samples, weighted by the bytes
        that the links carried in each; None if no data flowed.
    :param busiest: greatest share of its rate that a link carried in a period between two samples.
    :param nbytes: bytes that all links carried together.
    """

    idle: float | None
    busiest: float
    nbytes: int

    def __str__(self) -> str:
        if self.idle is None:
            return "CPU idle share unknown: no data flowed over the links"
        verdict = "is" if self.idle >= ENOUGH else "may not be"
        share = f"CPU idle {self.idle:.0%} while data flowed, busiest link used {self.busiest:.0%}"
        return f"{share}: the network {verdict} the bottleneck"


def idle_ticks() -> tuple[int, int]:
    """Return idle clock ticks of all processors, and all ticks, since boot.

    Idle ticks are ticks without work, ticks that wait for disks, and ticks of processes with positive niceness, which
    yield to ranks.
    """
    first = kernel_text("/proc/stat").partition("\n")[0]
    ticks = [int(word) for word in first.split()[1:9]]  # guests are already counted as users
    return ticks[1] + ticks[3] + ticks[4], sum(ticks)


class Monitor:
    """A context that samples processors and links until it ends; ``usage`` then summarises the samples."""

    def __init__(self, fabric: Fabric, state: NetworkRecord) -> None:
        self._rates = {(port, way): rate for port, way, rate in ports(fabric)}
        self._namespace = state.switches
        self._looks: list[tuple[float, tuple[int, int], dict[tuple[str, str], int]]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Monitor:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._stop.wait(PERIOD):
            self._look()

    def _look(self) -> None:
        command = ["ip", "-n", self._namespace, "-s", "-j", "link"]
        try:
            said = run_program(command, "counters of links", 30, BenchmarkError, check=False).stdout
            links = parse_json(said or b"[]", "ip", BenchmarkError)
        except BenchmarkError:
            return  # the network is being taken down
        found = {link["ifname"]: link["stats64"] for link in links}
        carried = {(port, way): found[port][way]["bytes"] for port, way in self._rates if port in found}
        self._looks.append((time.monotonic(), idle_ticks(), carried))

    @property
    def usage(self) -> Usage:
        """Return the summary of all periods so far in which data flowed."""
        idle, total, busiest = 0.0, 0, 0.0
        for (start, before, old), (end, after, new) in pairwise(self._looks):
            moved = {link: new.get(link, 0) - old.get(link, 0) for link in self._rates}
            used = max(moved[link] / (rate * max(end - start, 1e-3)) for link, rate in self._rates.items())
            ticks = after[1] - before[1]
            if used < QUIET or not ticks:
                continue
            nbytes = sum(moved.values())
            idle += nbytes * (after[0] - before[0]) / ticks
            total += nbytes
            if end - start > PERIOD / 2:  # in a shorter period, a token bucket's content may exceed the link's rate
                busiest = max(busiest, used)
        return Usage(idle / total if total else None, busiest, total)
