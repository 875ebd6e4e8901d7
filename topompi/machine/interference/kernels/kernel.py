"""The messages of one iteration of a communication kernel, as phases in arrays, for real runs and simulations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ....errors import BenchmarkError
from ....mapping import CommunicationGraph

__all__ = ["Alltoalls", "Burst", "Kernel", "Phase", "Sums", "pairs_within"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Burst:
    """Messages that are all sent at the same time, as columns of shape (messages,).

    :param source: sending ranks.
    :param target: receiving ranks.
    :param nbytes: bytes of each message.
    :param tag: tag of each message, which distinguishes the messages of one rank.
    """

    source: Integers
    target: Integers
    nbytes: Integers
    tag: Integers

    def footprint(self) -> int:
        """Return the bytes of the send and receive buffers together, on the rank on which they are largest."""
        ends = np.concatenate((self.source, self.target))
        return int(np.bincount(ends, np.tile(self.nbytes, 2)).max(initial=0))


@dataclass(frozen=True, eq=False)
class Alltoalls:
    """An alltoall within each of several disjoint groups of ranks, all at once.

    :param name: ``rows`` or ``columns`` of the process grid, or ``all``.
    :param groups: ranks of each group in their order, shape (groups, ranks of a group).
    :param nbytes: bytes that one rank sends to each other rank of its group.
    """

    name: str
    groups: Integers
    nbytes: int

    def footprint(self) -> int:
        """Return the bytes of a rank's send and receive buffers together."""
        return 2 * int(self.groups.shape[1]) * self.nbytes


@dataclass(frozen=True)
class Sums:
    """An allreduce over all ranks.

    :param nbytes: bytes of the vector of doubles.
    """

    nbytes: int

    def footprint(self) -> int:
        """Return the bytes of a rank's send and receive buffers together."""
        return 2 * self.nbytes


Phase = Burst | Alltoalls | Sums


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel on a grid of processes, whose ranks are in row-major order.

    :param grid: extents of the process grid.
    :param periodic: True if the grid wraps around.
    :param faces: size of the messages in each dimension, as a multiple of the message size; empty if all are 1.
    :raises BenchmarkError: if the grid has a wrong number of dimensions or an extent below 1, or an option is given
        that the kernel does not have.
    """

    grid: tuple[int, ...]
    periodic: bool = False
    faces: tuple[int, ...] = ()

    name: ClassVar[str]
    title: ClassVar[str]
    message: ClassVar[str]  # meaning of the message size
    dimensions: ClassVar[tuple[int, ...]]  # numbers of dimensions that the grid may have, the usual number first
    measured: ClassVar[bool] = True  # True if osu_like_bench runs it
    stencil: ClassVar[bool] = True  # True if it exchanges halos, so that borders, faces and rank orders matter
    sizes: ClassVar[str | None] = None  # default message sizes, MIN:MAX; None if they are OSU's

    def __post_init__(self) -> None:
        if len(self.grid) not in self.dimensions or min(self.grid) < 1:
            count = " or ".join(map(str, self.dimensions))
            raise BenchmarkError(f"--grid: expecting {count} extents of at least 1 for {self.name}, got {self.shape}")
        fixed = self.usual_grid(self.ranks)
        if fixed is not None and fixed != self.grid:
            wanted = "x".join(map(str, fixed))
            raise BenchmarkError(f"--grid: expecting {wanted} for {self.name} of {self.ranks} ranks, got {self.shape}")
        if not self.stencil and (self.periodic or self.faces):
            option = "--periodic" if self.periodic else "--faces"
            raise BenchmarkError(f"{option}: expecting a kernel with a halo, such as stencil3d, got {self.name}")
        if self.faces and (len(self.faces) != len(self.grid) or min(self.faces) < 1):
            faces = ",".join(map(str, self.faces))
            raise BenchmarkError(f"--faces: expecting {len(self.grid)} numbers of at least 1, got {faces}")

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return prod(self.grid)

    @property
    def shape(self) -> str:
        """The grid as text: ``8x8x8``."""
        return "x".join(map(str, self.grid))

    def describe(self) -> str:
        """Describe the grid and the meaning of the message size in a line."""
        border = (", periodic" if self.periodic else ", open") if self.stencil else ""
        faces = f", faces {','.join(map(str, self.faces))}" if self.faces else ""
        return f"grid {self.shape}{border}{faces}; size: {self.message}"

    @staticmethod
    def usual_grid(ranks: int) -> tuple[int, ...] | None:
        """The only grid that a number of ranks can have; None if any will do."""
        return None

    @property
    def usual_size(self) -> int:
        """The message size in bytes of a simulated job if the user gives none."""
        return 65536

    @property
    def usual_burst(self) -> float:
        """Seconds of computation of each rank in an iteration of a simulated job if the user gives none."""
        return 0.0

    @abstractmethod
    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return the phases of one iteration in order; a phase that occurs twice is the same object."""

    @cached_property
    def graph(self) -> CommunicationGraph:
        """The communication of an iteration as a graph of its point-to-point messages and alltoalls.

        The message size of the graph is the kernel's usual one, or the number of ranks if it has none of its own.
        """
        size = self.ranks if self.measured else self.usual_size
        columns = [_pairs(phase) for phase in self.phases(size) if not isinstance(phase, Sums)]
        return CommunicationGraph.from_arrays(self.ranks, *np.concatenate(columns, axis=1))

    def footprint(self, nbytes: int) -> int:
        """Return the bytes of the buffers of all phases together, on the rank on which they are largest."""
        return sum(phase.footprint() for phase in self.phases(nbytes))


def _pairs(phase: Burst | Alltoalls) -> Integers:
    """Return source, target and bytes of each message of a phase, shape (3, messages)."""
    if isinstance(phase, Burst):
        return np.stack((phase.source, phase.target, phase.nbytes))
    source, target = pairs_within(phase.groups)
    return np.stack((source, target, np.full(len(source), phase.nbytes)))


def pairs_within(groups: Integers) -> tuple[Integers, Integers]:
    """Return sources and targets of all ordered pairs of different ranks within each group.

    :param groups: ranks of the members of each group, shape (groups, members).
    """
    size = groups.shape[1]
    here, there = np.nonzero(~np.eye(size, dtype=bool))
    return groups[:, here].ravel(), groups[:, there].ravel()
