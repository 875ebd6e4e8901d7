"""The table of measured algorithms and of the schedules that describe them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

from topompi.schedules import Network, Schedule, make

from .bine import bine
from .data import Row

__all__ = ["BINE", "LIBRARY", "Described", "described"]


@dataclass(frozen=True)
class Described:
    """A measured algorithm as a schedule, and what its implementation adds.

    :param collective: the collective.
    :param algorithm: name of the schedule's algorithm, or ``bine``.
    :param parameters: arguments of the generator, sorted by name.
    :param slices: number of parts of each message.
    :param copies: vectors that a rank copies from place to place before or after its messages.
    :param starts: messages that a rank starts beyond those of the schedule.
    :param waits: further segments, each of which starts when the one before has arrived.
    :param overlaps: number of segments of which one is combined while the next one travels; 1 for none.
    """

    collective: str
    algorithm: str
    parameters: tuple[tuple[str, Any], ...] = ()
    slices: int = 1
    copies: float = 0.0
    starts: float = 0.0
    waits: float = 0.0
    overlaps: int = 1

    @property
    def structure(self) -> tuple[Any, ...]:
        """The key of the schedule."""
        return self.collective, self.algorithm, self.parameters

    def schedule(self, network: Network, grid: tuple[int, ...]) -> Schedule:
        """Make the schedule.

        :param network: the job's network.
        :param grid: lengths of the job's torus; empty if it has none.
        """
        named = dict(self.parameters)
        if self.algorithm == "bine":
            ranks = np.arange(network.num_ranks)
            return bine(self.collective, ranks.reshape(grid) if grid else ranks, **named)
        if named.pop("ordered", False):
            named["order"] = range(network.num_ranks)
        return make(self.collective, self.algorithm, network, 0, None, **named)


def _tree(shape: str) -> tuple[str, dict[str, Any]]:
    return "shaped_tree", {"shape": shape}


_ORDERED: dict[str, Any] = {"ordered": True}
_NEAR_FIRST = {"ordered": True, "near_last": False}

# Schedules by the source's common names, for all libraries. Open MPI's forms stand where libraries differ. Left out are
# algorithms that call the library's own choice for another collective (allgather by gather and broadcast, allreduce by
# reduction and broadcast, reduce-scatter by reduction and scatter), and Fujitsu's linear broadcast, whose times are
# those of the default, and its chain, of which the number of children is unknown.
LIBRARY: Mapping[str, Mapping[str, tuple[str, dict[str, Any]]]] = {
    "bcast": {
        "pipeline": _tree("chain"),
        "binary": _tree("binary"),
        "binomial": _tree("doubling"),
        "knomial": _tree("quaternomial"),
        "split_binary": ("split_binary", {}),
        "scatter_allgather": ("scatter_doubling", {}),
        "scatter_ring_allgather": ("scatter_ring", {}),
    },
    "reduce": {
        "linear": _tree("linear"),
        "chain": _tree("chain"),
        "pipeline": _tree("chain"),
        "binary": _tree("binary"),
        "binomial": _tree("binomial"),
        "in_order_binary": _tree("in_order"),
        "reduce_scatter_gather": ("halves", {}),
    },
    "gather": {"linear": ("at_once", {}), "linear_sync": ("at_once", {}), "binomial": ("binomial", {})},
    "scatter": {"linear": ("at_once", {}), "linear_nonblocking": ("at_once", {}), "binomial": ("binomial", {})},
    "allgather": {
        "bruck": ("bruck", {}),
        "recursive_doubling": ("doubling", _NEAR_FIRST),
        "ring": ("ring", _ORDERED),
        "neighbor_exchange": ("neighbours", {}),
    },
    "alltoall": {
        "linear": ("at_once", {}),
        "linear_sync": ("at_once", {}),
        "pairwise": ("shift", {}),
        "bruck": ("bruck", {}),
    },
    "allreduce": {
        "linear": ("through_one", {"up": "linear", "down": "linear"}),
        "recursive_doubling": ("doubling_even", {}),
        "ring": ("ring", _ORDERED),
        "ring_segmented": ("ring", _ORDERED),
        "rabenseifner": ("halves", {}),
    },
    "reduce_scatter": {
        "recursive_doubling": ("outside", {}),
        "recursive_halving": ("far_halving", {}),
        "recursive_halving_distance_doubling": ("far_halving", {}),
        "ring": ("ring", _ORDERED),
        "pairwise": ("pairwise", {}),
    },
}

# The forms of the Bine family, the vectors that they copy to keep blocks side by side, and, as a function of the number
# of ranks, the messages that they start beyond one per step.
BINE: Mapping[str, tuple[str, float, Callable[[int], float]]] = {
    "bine_tree": ("whole", 0, lambda ranks: 0),
    "bine_recursive_doubling": ("whole", 0, lambda ranks: 0),
    "bine_rabenseifner": ("parts", 0, lambda ranks: 0),
    "bine_rabenseifner_segmented": ("parts", 0, lambda ranks: 0),
    "bine_rabenseifner_block_by_block": ("parts", 0, lambda ranks: 2 * (ranks - 1 - log2(ranks))),
    "bine_scatter_allgather": ("parts", 0, lambda ranks: 0),
    "bine_reduce_scatter_gather": ("parts", 0, lambda ranks: 0),
    "bine_permute": ("parts", 1, lambda ranks: 0),
    "bine_send": ("parts", 0, lambda ranks: 1),
    "bine_two_blocks": ("parts", 0, lambda ranks: log2(ranks)),
    "bine_block_by_block": ("parts", 0, lambda ranks: ranks - 1 - log2(ranks)),
    "bine_log": ("parts", 2, lambda ranks: 0),
}
# Libraries' names that the common name does not tell: all ranks gather all vectors and combine them.
_OTHERS = ("allgather_reduce_ompi",)
_MOST_SLICES = 16


def described(row: Row) -> Described | None:
    """The schedule that describes a measured algorithm; None if there is none.

    :param row: the measured row.
    """
    known = LIBRARY.get(row.collective, {})
    if row.algorithm in _OTHERS:
        return None
    if row.norm in known:
        algorithm, parameters = known[row.norm]
        if (row.collective, row.norm) == ("allgather", "recursive_doubling") and row.ranks.bit_count() > 1:
            algorithm, parameters = "bruck", {}
        if row.norm == "neighbor_exchange" and row.ranks % 2:
            algorithm, parameters = "ring", _ORDERED
        return Described(row.collective, algorithm, tuple(sorted(parameters.items())))
    return None if row.norm not in BINE else _of_bine(row)


def _of_bine(row: Row) -> Described:
    """The description of an algorithm of the Bine family."""
    form, copies, starts = BINE[row.norm]
    if row.collective in ("gather", "scatter"):
        form, copies = "parts", 0.5 if "PERMUTE" in row.algorithm else 0.0
    if row.norm == "bine_recursive_doubling" and row.ranks.bit_count() > 1:
        return Described(row.collective, "doubling_even")
    named: dict[str, Any] = {"form": form} | ({"ports": row.ports} if row.ports > 1 else {})
    parameters = tuple(sorted(named.items()))
    segments = -(-row.nbytes // row.segment) if row.segment else 1
    if row.norm == "bine_rabenseifner_segmented" and not row.segment:  # one segment a block
        segments = row.ranks
    if form == "whole":
        slices = min(segments, _MOST_SLICES)
        return Described(row.collective, "bine", parameters, slices, waits=segments - slices)
    reducing = row.collective in ("allreduce", "reduce", "reduce_scatter")
    overlaps = max(segments // 2, 1) if reducing else 1
    return Described(
        row.collective, "bine", parameters, 1, copies, starts(row.ranks), waits=segments - 1, overlaps=overlaps
    )
