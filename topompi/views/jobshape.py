"""A job: its ranks, hosts and MPI library, and the fingerprint of its network, by which rules and memory know it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..topology import TopologyInterface

if TYPE_CHECKING:
    from .siblings import Siblings

__all__ = ["JobShape"]


@dataclass(frozen=True, eq=False)
class JobShape:
    """A job, as rules and memory know it.

    :param interface: where its ranks sit.
    :param library: MPI vendor and version.
    :param machine: processor name of rank 0.
    :param siblings: the communicators that the same ``Split`` made; None if there are none.
    """

    interface: TopologyInterface
    library: str
    machine: str = ""
    siblings: Siblings | None = None

    @cached_property
    def ranks_per_host(self) -> tuple[int, int]:
        """Fewest and most ranks on a host."""
        counts = np.bincount(self.interface.rank_host)
        return int(counts.min()), int(counts.max())

    @cached_property
    def topology(self) -> str:
        """Fingerprint of the network between the job's hosts, 16 hexadecimal digits.

        Of the routes, the links' rates and latencies, in the order of the hosts' first ranks; hosts count by name
        less its digits, so that other hosts of one cluster, placed alike, are the same network.
        """
        routes = self.interface.routes
        arrays: list[NDArray[Any]] = [self.interface.hop_matrix]
        if routes is not None:
            arrays += [self.interface.get_network_path_matrix(), routes.fabric.link_rate, routes.fabric.link_latency]
        return _digest(sorted(set(map(_without_digits, self.interface.hosts))), arrays)

    @cached_property
    def key(self) -> str:
        """Fingerprint of all that a measurement depends on: network, layout of the ranks, machine, MPI library.

        The machine counts by name less its digits, and whole where the placement is virtual: then it is the network.
        """
        virtual = self.interface.virtual
        words = [self.topology, self.library, self.machine if virtual else _without_digits(self.machine), virtual]
        arrays: list[NDArray[Any]] = [self.interface.rank_host, *(domain for _, domain in self.interface.domains)]
        if self.siblings is not None:
            arrays += [self.siblings.network.rank_host, *self.siblings.groups]
        return _digest(words, arrays)


def _without_digits(name: str) -> str:
    return re.sub("[0-9]+", "#", name)


def _digest(words: object, arrays: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(words).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
