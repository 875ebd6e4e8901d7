"""A simulated network to probe: round trips by hops, with noise that only lengthens them; fair streams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topompi.mpi.probe.levels import FloatArray
from topompi.mpi.probe.tournament import Round
from topompi.netsim.interpreter import max_min
from topompi.topology import Fabric, TopologyInterface, compute_routes

SOFTWARE, SWITCH = 40e-6, 10e-6  # seconds of a round trip: without a switch, and for each switch crossed
MEETING = 300e-6  # seconds until all hosts begin a round together
DISTURBANCE = 2.0  # factor on all round trips of a pair in a disturbed round


class ModelNetwork:
    """An instrument that measures a fabric in a model, with a clock of its own.

    :param fabric: fabric whose hosts are probed.
    :param noise: mean of the exponential lengthening of a round trip, as a share of it.
    :param disturbed: share of the pairs that are disturbed in a round.
    :param processors: number of pairs that can be measured at once; with more, all round trips of a round take longer.
    :param seconds: time limit in seconds.
    :param seed: seed of the noise.
    :param naps: mean seconds that sleeping ranks add to each round trip; they vary by a tenth.
    """

    def __init__(
        self,
        fabric: Fabric,
        noise: float = 0.2,
        disturbed: float = 0.1,
        processors: float = np.inf,
        seconds: float = 60.0,
        seed: int = 0,
        naps: float = 0.0,
    ) -> None:
        routes = TopologyInterface.place(list(fabric.hosts), compute_routes(fabric)).host_routes
        assert routes is not None  # always given
        self._hops, self._paths, self._capacity = routes.hops, routes.paths(), fabric.link_rate
        self._noise, self._disturbed, self._processors, self._seconds = noise, disturbed, processors, seconds
        self._naps = naps
        self._generator = np.random.default_rng(seed)
        self.elapsed = 0.0

    def left(self) -> float:
        """Return the remaining seconds."""
        return self._seconds - self.elapsed

    def round_trips(self, rounds: Sequence[Round], trips: int) -> FloatArray:
        """Return the seconds of each pair's shortest round trip, round by round; inf if no time was left."""
        found: list[float] = []
        for pairs in rounds:
            if self.left() <= 0:
                found += [np.inf] * len(pairs)
                continue
            times = np.array([self._trips(first, second, trips) for first, second in pairs])
            times *= max(1.0, len(pairs) / self._processors)
            found += times.min(axis=1).tolist()
            self.elapsed += MEETING + float(times.sum(axis=1).max())
        return np.array(found)

    def streams(self, pairs: Round, seconds: float) -> FloatArray:
        """Return the bytes/s of each pair in its slower direction; 0 if no time was left."""
        if self.left() <= seconds:
            return np.zeros(len(pairs))
        self.elapsed += seconds
        first, second = np.array(pairs).T
        paths = np.concatenate((self._paths[first, second], self._paths[second, first]))
        both: NDArray[np.float64] = max_min(paths, self._capacity).reshape(2, -1)
        slower: FloatArray = both.min(axis=0)
        return slower

    def _trips(self, first: int, second: int, trips: int) -> FloatArray:
        slow = DISTURBANCE if self._generator.random() < self._disturbed else 1.0
        true = slow * (SOFTWARE + SWITCH * float(self._hops[first, second]))
        times: FloatArray = true * (1 + self._generator.exponential(self._noise, trips))
        return times + self._naps * self._generator.uniform(0.9, 1.1, trips) if self._naps else times
