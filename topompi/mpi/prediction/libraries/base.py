"""The interface of models of MPI libraries: a collective call (question), and the algorithm that runs it (decision)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ....schedules.network import Network
from ....schedules.registry import make
from ....schedules.schedule import Schedule

__all__ = ["CallShape", "Library", "LibraryAlgorithm"]


@dataclass(frozen=True, eq=False)
class CallShape:
    """A collective call, reduced to the facts on which a library's decision depends.

    :param method: mpi4py's name of the call, for example ``Allreduce``.
    :param nbytes: size of the call in bytes: of the message of a broadcast, of the whole vector of a reduction, else of
        one block (as ``Selector.choose`` counts it).
    :param rank_host: host of each rank, shape (p,).
    :param commutative: True if a reduction's operation commutes.
    :param item: bytes of one item of the datatype; messages are cut between items.
    """

    method: str
    nbytes: int
    rank_host: NDArray[np.int64]
    commutative: bool = True
    item: int = 1

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.rank_host)


@dataclass(frozen=True)
class LibraryAlgorithm:
    """The algorithm that a library runs for a call, as a schedule of topompi.

    :param collective: the collective of the schedule.
    :param algorithm: name of the schedule's algorithm, for ``schedules.find_algorithm``.
    :param says: description of the algorithm in the library's words, for example ``tuned: pipeline, segments of 128
        KiB``.
    :param blocks: number of blocks into which a message is divided; None for the algorithm's default number.
    :param parameters: further arguments of the generator, by name.
    """

    collective: str
    algorithm: str
    says: str
    blocks: int | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)

    def schedule(self, network: Network, root: int = 0) -> Schedule:
        """The schedule with the library's messages.

        :param network: the job's network as the library sees it, with hosts but without the switches between them.
        :param root: the root of a rooted collective.
        """
        return make(self.collective, self.algorithm, network, root, self.blocks, **self.parameters)


class Library(Protocol):
    """A model of an MPI library: its documented choices of algorithms."""

    @property
    def name(self) -> str:
        """Name of the library, and the version whose choices are modelled."""

    def decide(self, question: CallShape) -> LibraryAlgorithm | None:
        """The algorithm that the library runs for a call; None if the model does not know it."""
