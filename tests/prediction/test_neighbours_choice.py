"""The choice of carriers for neighbourhood collectives, on the cells measured for docs/lab/neighbours.md."""

import numpy as np
import pytest

from osu_like_bench.emulate import Rates, emulated_routes
from topompi.mpi.prediction.neighbours import GAIN, Place, Prices, of_all
from topompi.mpi.prediction.predictor import Predictor
from topompi.schedules.neighbourhood import Neighbourhood
from topompi.schedules.sparse.schedules import exchanges
from topompi.topology import TopologyInterface


def coarse():
    """Bytes of each pair of ranks on a coarse level of multigrid, as ``benchmarks.neighbours_ranks`` has them."""
    rng = np.random.default_rng(7)
    wanted = 8 * rng.integers(1, 9, (16, 16)) * (rng.random((16, 16)) < 0.9)
    return np.where(np.eye(16, dtype=bool), 0, wanted)


def stencil(face, edge, corner):
    """Bytes of each pair of ranks in a stencil of 27 points on a periodic grid of 4 x 2 x 2 ranks."""
    dims = np.array((4, 2, 2))
    place = np.stack(np.unravel_index(np.arange(16), dims), axis=1)
    apart = np.abs(place[:, None] - place[None])
    apart = np.minimum(apart, dims - apart)
    return np.array([0, face, edge, corner])[np.where((apart <= 1).all(axis=2), (apart == 1).sum(axis=2), 0)]


@pytest.mark.parametrize("uplinks", ["100M", "50M"])
@pytest.mark.parametrize(
    ("wanted", "gains"),  # whether carriers were measured to gain in both forms of calls
    [
        (coarse(), True),
        (stencil(512, 64, 8), True),
        (stencil(4096, 256, 8), False),
        (stencil(65536, 1024, 8), False),
    ],
    ids=["coarse level", "512 B", "4 KiB", "64 KiB"],
)
def test_calls_are_carried_if_that_was_measured_to_gain(wanted, gains, uplinks):
    routes = emulated_routes("4x2", Rates.parse("100M", uplinks))
    interface = TopologyInterface.place([routes.fabric.hosts[rank // 2] for rank in range(16)], routes)
    host = interface.rank_host.astype(np.int64)
    place, prices = Place(host, host), Prices.of(Predictor(interface))
    source, destination = np.nonzero(wanted)
    graph = Neighbourhood.from_edges(16, source, destination, wanted[source, destination])
    library, carried = of_all(exchanges(graph, host, prices.terms(place)), place, prices)
    assert (library >= GAIN * carried) == gains
