"""What an MPI library is asked about a collective call, and what it answers: the words that its models share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...schedules.network import Network
from ...schedules.registry import make
from ...schedules.schedule import Schedule

__all__ = ["Decision", "Library", "Question"]


@dataclass(frozen=True, eq=False)
class Question:
    """A collective call, as far as a library's decision depends on it.

    :param method: mpi4py's name of the call, such as ``Allreduce``.
    :param nbytes: its size, as ``Selector.choose`` counts it: the message of a broadcast, the whole vector of a
        reduction, else one block.
    :param rank_host: host of each rank, shape (p,).
    :param commutative: whether a reduction's operation commutes.
    :param item: bytes of one item of the datatype: messages are cut between items.
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
class Decision:
    """What a library runs for a call, as a schedule of ours.

    :param collective: whose schedule it is.
    :param algorithm: its name, for ``schedules.find_algorithm``.
    :param says: the library's own words, such as ``tuned: pipeline, segments of 128 KiB``.
    :param blocks: into how many blocks one message is divided; None for what the algorithm does by itself.
    :param parameters: the generator's own, by name.
    """

    collective: str
    algorithm: str
    says: str
    blocks: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def schedule(self, network: Network, root: int = 0) -> Schedule:
        """The schedule that has the library's messages.

        :param network: of the job; give the one that the library sees: libraries know hosts, and no switch.
        :param root: of a rooted collective.
        """
        return make(self.collective, self.algorithm, network, root, self.blocks, **self.parameters)


class Library(Protocol):
    """A model of an MPI library: its documented decisions."""

    @property
    def name(self) -> str:
        """The library and the version whose decisions these are."""

    def decide(self, question: Question) -> Decision | None:
        """What the library runs for a call; None where the model does not know."""
