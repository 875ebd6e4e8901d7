"""A job's traffic in words: a kernel with its number of ranks, or a file of a communication graph or a profile."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..mapping.graph import CommunicationGraph
from ..mapping.readers import read_graph
from .crossbar import bound
from .errors import InterferenceError
from .nas import COMPUTE, KERNELS

__all__ = ["Traffic", "read_traffic"]

_KERNEL = re.compile(r"(ft|cg|bt|mg|alltoall|stencil):([0-9x]{1,60})(?::([0-9]{1,15})([KMG]?))?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_OPTIONS = ("base", "compute")


@dataclass(frozen=True, eq=False)
class Traffic:
    """The bytes that a job's ranks send to each other, and the time in which they do so.

    :param name: name of the job.
    :param graph: bytes between ranks.
    :param compute: seconds of computation beside the communication.
    :param base: T_base in seconds, if it was measured or simulated; None to compute it.
    """

    name: str
    graph: CommunicationGraph
    compute: float = 0.0
    base: float | None = None

    def seconds(self, rate: float, hosts: NDArray[np.integer] | None = None) -> float:
        """T_base, the job's time on a crossbar: the given one, else computation and the busiest host's bytes.

        :param rate: bandwidth of each host's link in bytes/s.
        :param hosts: host of each rank, shape (p,); by default each rank has its own.
        """
        return self.compute + bound(self.graph, rate, hosts) if self.base is None else self.base

    @property
    def origin(self) -> str:
        """The origin of T_base, in words."""
        if self.base is not None:
            return "given"
        return f"{self.compute:.4g} s of computation, then all bytes" if self.compute else "all bytes, no computation"


def read_traffic(text: str) -> Traffic:
    """Read a job's traffic from its words.

    Options follow an ``@``, separated by commas: ``base`` (T_base in seconds) and ``compute`` (seconds of computation
    beside the communication). A kernel of NAS computes for the seconds that 256 ranks took in the source, divided by
    the ranks; others do not compute.

    :param text: a kernel such as ``cg:256``, ``alltoall:RANKS:BYTES`` or ``stencil:GRID:BYTES``, or the path of a file.
    :raises InterferenceError: if the words are malformed.
    :raises GraphFileError: if a file is malformed.
    """
    words, _, options = text.partition("@")
    given = _options(text, options)
    match = _KERNEL.fullmatch(words.strip())
    if match is None:
        return Traffic(text, read_graph(words), given.get("compute", 0.0), given.get("base"))
    graph, compute = _kernel(text, match)
    return Traffic(text, graph, given.get("compute", compute), given.get("base"))


def _kernel(text: str, match: re.Match[str]) -> tuple[CommunicationGraph, float]:
    kind, extents = match[1].lower(), match[2].lower()
    if not all(part.isdigit() and 0 < int(part) < 1 << 20 for part in extents.split("x")):
        raise InterferenceError(f"{text}: expecting a number of ranks or a grid such as 8x8x4, got {extents!r}")
    grid = [int(part) for part in extents.split("x")]
    if (kind != "stencil" and len(grid) > 1) or (kind in KERNELS) != (match[3] is None):
        raise InterferenceError(f"{text}: expecting KERNEL:RANKS, alltoall:RANKS:BYTES or stencil:GRID:BYTES")
    if kind in KERNELS:
        return KERNELS[kind](grid[0]), COMPUTE[kind] * 256 / grid[0]
    nbytes = int(match[3]) * _UNITS[(match[4] or "").upper()]
    make: Callable[[], CommunicationGraph] = {
        "alltoall": lambda: CommunicationGraph.from_matrix(nbytes * (1 - np.eye(grid[0], dtype=np.int64))),
        "stencil": lambda: CommunicationGraph.cartesian(grid, weights=nbytes),
    }[kind]
    return make(), 0.0


def _options(text: str, options: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in filter(None, options.split(",")):
        name, _, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if name not in _OPTIONS or name in found or not 0 <= number < float("inf") or (name == "base" and not number):
            raise InterferenceError(f"{text}: expecting options of {', '.join(_OPTIONS)} in seconds, got {part!r}")
        found[name] = number
    return found
