"""examples/fft3d: where rows of the pencil grid are put."""

import numpy as np

from tests.networks import job
from topompi.schedules.alltoall.fft import pencil_grid


def test_rows_are_put_where_links_are_plenty():
    """Ranks in any order on 4 leaves of 4 hosts, 4:1: rows stay inside leaf switches; two a host, inside hosts."""
    for ranks, hosts in ((1, 4), (2, 1)):
        network = job("XGFT(2; 4,4; 1,1)", np.random.default_rng(3).permutation(16).tolist(), [ranks] * 16)
        rows, order = pencil_grid(network)
        assert sorted(order.tolist()) == list(range(16 * ranks))
        host = network.rank_host[order.reshape(rows, -1)]
        assert all(len(set(row)) <= hosts and len(set(network.leaf[row])) == 1 for row in host)
        assert pencil_grid(network, 2)[0] == 2
    assert pencil_grid(job("slurm64", [0], [7]))[0] == 1
