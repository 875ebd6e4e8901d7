"""A job's ranks, hosts and MPI library, and fingerprints by which stored rules and measurements identify them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..topology import TopologyInterface

if TYPE_CHECKING:
    from .siblings import Siblings

__all__ = ["JobShape"]


@dataclass(frozen=True, eq=False)
class JobShape:
    """The properties of a job by which stored rules and measurements identify it.

    :param interface: the places of its ranks in the topology.
    :param library: MPI vendor and version.
    :param machine: processor name of rank 0.
    :param siblings: the communicators made by the same ``Split`` as the job's communicator; None if there are none.
    """

    interface: TopologyInterface
    library: str
    machine: str = ""
    siblings: Siblings | None = None

    @cached_property
    def ranks_per_host(self) -> tuple[int, int]:
        """Smallest and largest number of ranks on a host."""
        counts = np.bincount(self.interface.rank_host)
        return int(counts.min()), int(counts.max())

    @cached_property
    def topology(self) -> str:
        """Fingerprint of the network between the job's hosts, 16 hexadecimal digits.

        It covers the routes, rates and latencies, with hosts in the order of their first ranks. Digits in host names
        are ignored, so that an equal placement on other hosts of the same cluster has the same fingerprint.
        """
        routes = self.interface.routes
        arrays: list[NDArray[np.generic]] = [self.interface.hop_matrix]
        if routes is not None:
            arrays += [self.interface.get_network_path_matrix(), routes.fabric.link_rate, routes.fabric.link_latency]
        return _digest(sorted(set(map(_without_digits, self.interface.hosts))), arrays)

    @cached_property
    def key(self) -> str:
        """Fingerprint of everything that a measurement depends on: network, placement, machine, MPI library.

        Digits in the machine's name are ignored, because machines of a cluster differ in them; except in a virtual
        placement, because there the messages really cross the network of the named machine.
        """
        virtual = self.interface.virtual
        words = [self.topology, self.library, self.machine if virtual else _without_digits(self.machine), virtual]
        arrays: list[NDArray[np.generic]] = [
            self.interface.rank_host,
            *(domain for _, domain in self.interface.domains),
        ]
        if self.siblings is not None:
            arrays += [self.siblings.network.rank_host, *self.siblings.groups]
        return _digest(words, arrays)


def _without_digits(name: str) -> str:
    return re.sub("[0-9]+", "#", name)


def _digest(words: object, arrays: Iterable[NDArray[np.generic]]) -> str:
    digest = hashlib.sha256(json.dumps(words).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
