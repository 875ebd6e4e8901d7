"""Algorithms that MPI libraries run and topompi does not: found by name, but not among those that it chooses from.

Their schedules say what a library sends, so that it can be costed, drawn and compared. What libraries run besides has
an entry in `registry.ALGORITHMS`.
"""

from __future__ import annotations

from typing import Any

from .algorithm import Algorithm
from .network import Network
from .rooted import rankorder
from .symmetric import folding, neighbours, throughone

__all__ = ["LIBRARY_ALGORITHMS"]


def _size(network: Network, root: int) -> tuple[tuple[int], dict[str, Any]]:
    return (network.num_ranks,), {}


def _plain(generator: Any, when: str, **traits: Any) -> Algorithm:
    return Algorithm(generator, _size, when, trial=False, **traits)


_SAME = "as a library runs it, whatever the network"

LIBRARY_ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "bcast": {
        "shaped_tree": _plain(rankorder.bcast_shaped, _SAME),
        "split_binary": _plain(rankorder.bcast_split_binary, _SAME),
        "scatter_doubling_handing": _plain(rankorder.bcast_scatter_doubling, _SAME),
    },
    "reduce": {
        "shaped_tree": _plain(rankorder.reduce_shaped, _SAME),
        "halves": _plain(folding.reduce_halves, _SAME),
    },
    "allgather": {
        "neighbours": _plain(neighbours.allgather_neighbours, "an even number of ranks only"),
        "through_one": _plain(throughone.allgather_through_one, _SAME),
    },
    "allreduce": {
        "doubling_even": _plain(folding.allreduce_doubling_even, _SAME, keeps_order=True),
        "halves": _plain(folding.allreduce_halves, _SAME),
        "through_one": _plain(throughone.allreduce_through_one, _SAME),
    },
    "reduce_scatter": {
        "far_halving": _plain(folding.reduce_scatter_far, _SAME),
        "butterfly": _plain(folding.reduce_scatter_butterfly, _SAME, keeps_order=True),
        "outside": _plain(folding.reduce_scatter_outside, _SAME, keeps_order=True),
        "through_one": _plain(throughone.reduce_scatter_through_one, _SAME),
    },
}
