"""Algorithms that MPI libraries run and topompi does not. They can be named, but are never chosen for a call.

Their schedules contain the messages that a library sends, so that these can be costed, drawn and compared. Library
algorithms that topompi runs, too, are in `table.ALGORITHMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .algorithm import Algorithm
from .alltoall import direct
from .hosts import bcast_hosts, reduce_hosts, scan_hosts
from .network import Network
from .rooted import rankorder, reduction, scattered
from .schedule import Schedule
from .symmetric import bruck, folding, neighbours, pairwise, scanexchange, throughone

__all__ = ["LIBRARY_ALGORITHMS"]

_NOTHING: Mapping[str, object] = {}


def _size(network: Network, root: int) -> tuple[tuple[int], dict[str, object]]:
    return (network.num_ranks,), {}


def _hosts(network: Network, root: int) -> tuple[tuple[object], dict[str, object]]:
    return (network.rank_host,), {}


def _over_hosts(generator: Callable[..., Schedule], keeps_order: bool = False) -> Algorithm:
    return Algorithm(generator, _hosts, "as a library runs it over hosts", trial=False, keeps_order=keeps_order)


def _plain(
    generator: Callable[..., Schedule], when: str, keeps_order: bool = False, fixed: Mapping[str, object] = _NOTHING
) -> Algorithm:
    return Algorithm(generator, _size, when, fixed, trial=False, keeps_order=keeps_order)


_SAME = "as a library runs it, whatever the network"

LIBRARY_ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "bcast": {
        "shaped_tree": _plain(rankorder.bcast_shaped, _SAME),
        "split_binary": _plain(rankorder.bcast_split_binary, _SAME),
        "hosts": _over_hosts(bcast_hosts),
        "scatter_doubling": _plain(scattered.scatter_doubling, _SAME),
        "scatter_ring": _plain(scattered.scatter_ring, _SAME),
        "scatter_doubling_handing": _plain(rankorder.bcast_scatter_doubling, _SAME),
    },
    "reduce": {
        "hosts": _over_hosts(reduce_hosts),
        "through_zero": _plain(reduction.reduce_through_zero, _SAME, keeps_order=True),
        "shaped_tree": _plain(rankorder.reduce_shaped, _SAME),
        "halves": _plain(folding.reduce_halves, _SAME),
    },
    "allgather": {
        "bruck": _plain(bruck.allgather_bruck, _SAME),
        "neighbours": _plain(neighbours.allgather_neighbours, "an even number of ranks only"),
        "through_one": _plain(throughone.allgather_through_one, _SAME),
    },
    "allreduce": {
        "doubling_even": _plain(folding.allreduce_doubling_even, _SAME, keeps_order=True),
        "halves": _plain(folding.allreduce_halves, _SAME),
        "through_one": _plain(throughone.allreduce_through_one, _SAME),
    },
    "alltoall": {
        "at_once": _plain(direct.alltoall_at_once, _SAME),
    },
    "reduce_scatter": {
        "pairwise": _plain(pairwise.reduce_scatter_pairwise, _SAME),
        "far_halving": _plain(folding.reduce_scatter_far, _SAME),
        "butterfly": _plain(folding.reduce_scatter_butterfly, _SAME, keeps_order=True),
        "outside": _plain(folding.reduce_scatter_outside, _SAME, keeps_order=True),
        "through_one": _plain(throughone.reduce_scatter_through_one, _SAME),
    },
    "scan": {
        "exchange": _plain(scanexchange.scan_exchange, _SAME, fixed={"inclusive": True}, keeps_order=True),
        "hosts": _over_hosts(scan_hosts, keeps_order=True),
    },
    "exscan": {
        "exchange": _plain(scanexchange.scan_exchange, _SAME, fixed={"inclusive": False}, keeps_order=True),
    },
}
