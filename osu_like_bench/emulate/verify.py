"""Checks of the links' rates by TCP streams across one link of each level and rate, in both directions at once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topompi.errors import BenchmarkError
from topompi.topology import Fabric

from .agent import enter
from .network import DATA, address
from .records import NetworkRecord

__all__ = ["LinkRate", "measure_rates", "measure_round_trip"]

STREAM = str(Path(__file__).with_name("stream.py"))
PORT = 20_000
SECONDS, WARM_UP = 1.0, 0.3


@dataclass(frozen=True)
class LinkRate:
    """The rates measured on one cable.

    :param link: names of its two ends.
    :param nominal: bits/s that should pass, including packet headers: the cable's rate, or the rate that its hosts can
        send if that is less.
    :param up: measured bits/s of payload from the lower end to the upper end.
    :param down: measured bits/s of payload from the upper end to the lower end.
    """

    link: tuple[str, str]
    nominal: float
    up: float
    down: float

    @property
    def shares(self) -> tuple[float, float]:
        """Ratios of the measured to the nominal rate, up and down."""
        return self.up / self.nominal, self.down / self.nominal


def measure_rates(fabric: Fabric, state: NetworkRecord, seconds: float = SECONDS) -> Iterator[LinkRate]:
    """Measure one cable of each level and rate, and yield each result at once.

    :param fabric: the emulated fabric.
    :param state: record of the network, which is up.
    :param seconds: seconds per cable.
    :raises BenchmarkError: if a connection fails, or if switches are in a loop, so that no cable has two sides.
    """
    if fabric.num_links != 2 * (fabric.num_adapters + fabric.num_switches - 1):
        raise BenchmarkError(f"emulate check: expecting a tree of switches, got loops in {fabric.name}")
    seen: set[tuple[int, float, float]] = set()
    tree = _Tree(fabric)
    for lower in np.argsort(tree.level, kind="stable").tolist():
        upper = tree.parent[lower]
        inside = tree.below[lower]
        outside = sorted(set(tree.below[upper]) - set(inside)) if upper >= 0 else []
        kind = (int(tree.level[lower]), *tree.rates[lower])
        if kind in seen or not outside:
            continue
        seen.add(kind)
        pairs, able = tree.pairs(lower, inside, outside)
        up, down = _measure(state, pairs, seconds)
        yield LinkRate((_name(fabric, lower), _name(fabric, upper)), 8 * able, up, down)


def measure_round_trip(fabric: Fabric, state: NetworkRecord, seconds: float = 0.5) -> float:
    """Return the median seconds of a byte's round trip between the first and the last host.

    :param fabric: the emulated fabric.
    :param state: record of the network, which is up.
    :param seconds: duration of the measurement in seconds.
    """
    last = fabric.num_hosts - 1
    ends = [_start(state, last, "echo", last, PORT), _start(state, 0, "ping", last, PORT)]
    return _outcomes(ends, seconds)[1]


class _Tree:
    """The fabric as a tree: parent (-1 at the top), level, rates up and down, and hosts below, of each vertex."""

    def __init__(self, fabric: Fabric) -> None:
        self.level = np.r_[np.full(fabric.num_adapters, -1), fabric.switch_level]
        vertices = len(self.level)
        self.parent = [-1] * vertices
        self.below: list[list[int]] = [[host] if host < fabric.num_adapters else [] for host in range(vertices)]
        up, down = [0.0] * vertices, [0.0] * vertices
        ends = (fabric.link_source.tolist(), fabric.link_target.tolist(), fabric.link_rate.tolist())
        for source, target, rate in zip(*ends, strict=True):
            if self.level[source] < self.level[target]:
                self.parent[source], up[source] = target, rate
            else:
                down[target] = rate
        self.rates = list(zip(up, down, strict=True))
        for host in range(fabric.num_adapters):
            above = self.parent[host]
            while above >= 0:
                self.below[above].append(host)
                above = self.parent[above]

    def pairs(self, lower: int, inside: list[int], outside: list[int]) -> tuple[list[tuple[int, int]], float]:
        """Return pairs of hosts whose traffic fills the cable above a vertex, and the bytes/s that it should carry.

        :param lower: the vertex.
        :param inside: hosts below the vertex.
        :param outside: all other hosts.
        """
        cable = min(self.rates[lower])
        chosen: list[tuple[int, int]] = []
        able = 0.0
        for pair in zip(self._spread(inside), self._spread(outside), strict=False):
            chosen.append(pair)
            able = min(self._capacity(side, self.parent[lower]) for side in zip(*chosen, strict=True))
            if able >= 1.5 * cable:
                break
        return chosen, min(cable, able)

    def _spread(self, hosts: list[int]) -> list[int]:
        """Reorder the hosts so that successive hosts are under different switches."""
        turn: dict[int, int] = {}
        order = []
        for host in hosts:
            above = self.parent[host]
            turn[above] = turn.get(above, -1) + 1
            order.append((turn[above], host))
        return [host for _, host in sorted(order)]

    def _capacity(self, hosts: Sequence[int], top: int) -> float:
        """Return the bytes/s that hosts can send, or receive, through a switch above them, all at once."""
        carried = {host: min(self.rates[host]) for host in hosts}
        while set(carried) - {top}:
            vertex = min(carried.keys() - {top}, key=lambda one: self.level[one])
            rate, above = carried.pop(vertex), self.parent[vertex]
            limit = min(self.rates[above]) if above != top else np.inf
            carried[above] = min(carried.get(above, 0.0) + rate, limit)
        return float(carried[top])


def _measure(state: NetworkRecord, pairs: Sequence[tuple[int, int]], seconds: float) -> tuple[float, float]:
    """Return the total bits/s from the first to the second hosts of all pairs, and back, measured at once."""
    started = []
    for number, (first, second) in enumerate(pairs):
        for source, target in ((first, second), (second, first)):
            started.append(_start(state, target, "receive", target, PORT + number))
            started.append(_start(state, source, "send", target, PORT + number))
    outcomes = _outcomes(started, seconds)
    return sum(outcomes[0::4]), sum(outcomes[2::4])


def _start(state: NetworkRecord, host: int, what: str, at: int, port: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-S", "-E", STREAM, what, address(at, DATA), str(port)]
    command, pipe = enter(state, state.hosts[host], words), subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _outcomes(started: Sequence[subprocess.Popen[str]], seconds: float) -> list[float]:
    """Return the number that each process prints, 0 for none; all processes begin once all are connected."""
    try:
        for process in started:
            assert process.stdout is not None  # for the type checker: it is a pipe
            process.stdout.readline()  # ready, or nothing if it has failed, which shows below
        begin = time.monotonic() + WARM_UP
        for process in started:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(f"{begin} {begin + seconds}\n")
                process.stdin.flush()
        return [_outcome(process) for process in started]
    except subprocess.TimeoutExpired:
        raise BenchmarkError("emulate check: expecting the streams to end within 60 s, got no end") from None
    finally:
        for process in started:
            process.kill()
            process.wait()


def _outcome(process: subprocess.Popen[str]) -> float:
    out, err = process.communicate(timeout=60)
    if process.returncode:
        said = (err.strip().splitlines() or ["nothing"])[-1]
        raise BenchmarkError(f"emulate check: expecting a connection between hosts, got {said} from one end")
    return float(out or 0)


def _name(fabric: Fabric, vertex: int) -> str:
    first = fabric.num_adapters
    return fabric.hosts[fabric.adapter_host[vertex]] if vertex < first else fabric.switch_names[vertex - first]
