"""The bandwidth that a second job on the same links leaves to the first."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError
from topompi.schedules import Network

from ..options import parse_bytes

__all__ = ["Background"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Background:
    """A second job that repeats an alltoall forever, one rank on each host.

    It is modelled as a fluid: it takes from each link the mean rate that it would have alone, but at most half of the
    link's rate, which is its fair share beside one message of another job. It does not react to the first job.

    :param nbytes: bytes that each rank sends to each other rank in one alltoall.
    """

    nbytes: int

    @classmethod
    def parse(cls, text: str) -> Background:
        """Parse ``alltoall:SIZE``; raise BenchmarkError for any other text."""
        collective, colon, size = text.partition(":")
        if collective != "alltoall" or not colon:
            raise BenchmarkError(f"--background: expecting alltoall:SIZE, got {text!r}")
        return cls(parse_bytes(size, "--background"))

    def loads(self, network: Network) -> Floats:
        """Return the bytes/s on each link, shape (links,), if this job is alone on the network.

        On n hosts, a rank sends its n - 1 messages one after the other; each takes the route's latency, plus its bytes
        over the rate of the route's slowest link. An alltoall takes as long as the slowest rank, or as the busiest link
        needs for all bytes that cross it, if that is longer.

        :param network: network whose links all have a rate and a latency.
        """
        used = network.links >= 0
        slowest = np.where(used, 1 / network.capacity[network.links], 0.0).max(axis=2, initial=0.0)
        latency = np.where(used, network.latency[network.links], 0.0).sum(axis=2)
        crossing = self.nbytes * network.loads(np.asarray(used.any(axis=2), dtype=np.int64))
        alone = (latency + self.nbytes * slowest).sum(axis=1).max(initial=0.0)
        seconds = max(alone, (crossing / network.capacity).max(initial=0.0))
        return crossing / seconds if seconds else crossing

    def left_over(self, network: Network) -> Network:
        """Return the network with its rates reduced to what this job leaves to another job on the same hosts."""
        left = np.maximum(network.capacity - self.loads(network), network.capacity / 2)
        return replace(network, capacity=left)
