"""Every algorithm by collective and name: how to make it from a network, and when it wins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .alltoall import aggregation, bound, even, tacs
from .alltoall import direct as alltoall
from .alltoall.fft import grid_groups, pencils, squarest
from .alltoall.hostschedule import HostSchedule
from .alltoall.joint import joint, side_by_side
from .network import Network
from .rooted import broadcast, gather, reduction
from .rooted.embedding import rate_delay
from .rooted.trees import depth_first, rank_clusters
from .schedule import ROOTED, Schedule
from .symmetric import allgather, allreduce, reduce_scatter

__all__ = ["ALGORITHMS", "Algorithm", "RankSchedule", "make", "rows_of"]

View = Callable[[Network, int], tuple[tuple[Any, ...], dict[str, Any]]]


@dataclass(frozen=True)
class Algorithm:
    """A generator, what it takes of a network, and when it is worth taking.

    :param generator: the function that makes the schedule; its docstring has the paper and the cost.
    :param view: from a network and a root to the generator's arguments.
    :param when: it wins: for what, or where, in one line.
    :param fixed: keyword parameters that make it this algorithm and no other of the same generator.
    :param costly: whether to generate it takes far longer than to make one rank's rows of it, so that one rank should
        and broadcast it; it can be pickled.
    """

    generator: Callable[..., Schedule | HostSchedule]
    view: View
    when: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    costly: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the generator's keyword parameters, ``root`` and ``blocks`` left out."""
        known = inspect.signature(self.generator).parameters.values()
        return tuple(one.name for one in known if one.kind is one.KEYWORD_ONLY and one.name not in ("root", "blocks"))


@dataclass(frozen=True, eq=False)
class RankSchedule:
    """One rank's part of a schedule.

    :param rank: the rank.
    :param rows: the rows of the schedule that it takes part in, in their order, shape (rows, 9).
    :param blocks: blocks of one message, see ``Schedule``; likewise ``independent`` and ``window``.
    """

    rank: int
    rows: NDArray[np.int64]
    blocks: int
    independent: bool
    window: int


def rows_of(
    collective: str,
    algorithm: str,
    network: Network,
    rank: int,
    root: int = 0,
    blocks: int | None = None,
    **parameters: Any,
) -> RankSchedule:
    """One rank's part of what ``make`` makes, without the rows of the others.

    :param collective: as ``make``; likewise all but ``rank``.
    :param rank: whose rows.
    :raises ValueError: as ``make``, or for a rank that there is not.
    Cost: O(p) and the rank's rows, O(p log p) or O(p x blocks) where the whole has no more; where the algorithm is
    ``costly``, its generation.
    """
    schedule = make(collective, algorithm, network, root, blocks, **parameters)
    return RankSchedule(rank, schedule.rows_of(rank), schedule.blocks, schedule.independent, schedule.window)


def make(
    collective: str,
    algorithm: str,
    network: Network,
    root: int = 0,
    blocks: int | None = None,
    **parameters: Any,
) -> Schedule:
    """The schedule of an algorithm on a network; its rows are made when they are asked for.

    :param collective: a key of ``ALGORITHMS``: one of ``COLLECTIVES``, or ``fft`` for the alltoalls of a pencil FFT.
    :param algorithm: a key of ``ALGORITHMS[collective]``.
    :param root: of a rooted collective; the others ignore it.
    :param blocks: blocks of one message, see ``Schedule``; None for as many as the algorithm divides it into by itself.
    :param parameters: the generator's own, by name.
    :raises ValueError: for an unknown collective, algorithm or parameter, or what the generator refuses.
    """
    if collective not in ALGORITHMS:
        raise ValueError(f"expecting a collective of {', '.join(ALGORITHMS)}, got {collective!r}")
    if algorithm not in ALGORITHMS[collective]:
        names = ", ".join(ALGORITHMS[collective])
        raise ValueError(f"expecting an algorithm for {collective} of {names}, got {algorithm!r}")
    chosen = ALGORITHMS[collective][algorithm]
    unknown = [name for name in parameters if name not in chosen.parameters]
    if unknown:
        names = ", ".join(chosen.parameters) or "none"
        raise ValueError(f"expecting parameters of {algorithm} ({names}), got {unknown[0]!r}")
    if collective in ROOTED and not 0 <= root < network.num_ranks:
        raise ValueError(f"expecting root in range({network.num_ranks}), got {root}")
    arguments, keywords = chosen.view(network, root)
    keywords = {**keywords, **chosen.fixed, **parameters}
    if collective in ROOTED:
        keywords["root"] = root
    if blocks is not None:
        keywords["blocks"] = blocks
    schedule = chosen.generator(*arguments, **keywords)
    return schedule.expand() if isinstance(schedule, HostSchedule) else schedule


def _size(network: Network, root: int) -> tuple[tuple[int], dict[str, Any]]:
    return (network.num_ranks,), {}


def _network(network: Network, root: int) -> tuple[tuple[Network], dict[str, Any]]:
    return (network,), {}


def _rates(network: Network, root: int) -> tuple[tuple[Network], dict[str, Any]]:
    first = network.links[:, :, 0]
    rate = np.where(first >= 0, network.capacity[first], 0).max(axis=1)
    return (network,), {"delay": rate_delay(np.where(rate > 0, rate, 1.0))}


def _order(network: Network, root: int) -> tuple[tuple[int], dict[str, Any]]:
    order = depth_first(rank_clusters(network), network.num_ranks, root=root)
    return (network.num_ranks,), {"order": order}


def _clusters(network: Network, root: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (network.num_ranks, rank_clusters(network)), {}


def _hosts(network: Network, root: int) -> tuple[tuple[Any], dict[str, Any]]:
    return (network.rank_host,), {}


def _pencil_rows(
    network: Network, *, rows: int | None = None, window: int = 16, blocks: int = 1, seed: int = 1
) -> Schedule:
    """The alltoalls of all rows of a process grid at once, see `schedules.alltoall.fft.pencils`.

    :param rows: of the grid, by default what makes it most nearly square.
    """
    rows = squarest(network.num_ranks) if rows is None else rows
    columns = network.num_ranks // max(rows, 1)
    made = pencils(network, rows, columns, window=window, blocks=blocks, seed=seed)
    return side_by_side(grid_groups(rows, columns)[0], made.rows, "fft rows", blocks=blocks)


def _pencil_columns(
    network: Network, *, rows: int | None = None, window: int = 16, blocks: int = 1, seed: int = 1
) -> Schedule:
    """The alltoalls of all columns of a process grid at once; parameters as ``_pencil_rows``."""
    rows = squarest(network.num_ranks) if rows is None else rows
    columns = network.num_ranks // max(rows, 1)
    made = pencils(network, rows, columns, window=window, blocks=blocks, seed=seed)
    return side_by_side(grid_groups(rows, columns)[1], made.columns, "fft columns", blocks=blocks)


_TREE = "for small messages, on one switch or where ranks are placed along the network"
_CHEAP = "for small messages where starting one is cheap beside its latency"
_SCARCE = "for small and medium blocks where links between clusters are scarce"
_BURST = "for large blocks; the window keeps the burst off the root's links"
_FAIR = "where links share fairly among any number of messages, and starting one is cheap"
_UNLIKE = "for large messages between adapters of unlike speed"
_MANY = "for the smallest blocks with many ranks on a host"
_AT_ONCE = "for long messages where rows or columns of a process grid exchange at once"


def _embedded(view: View, walk: str, when: str) -> Algorithm:
    return Algorithm(broadcast.reordered, view, when, {"choose": walk})


ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "bcast": {
        "binomial": Algorithm(broadcast.knomial, _size, _TREE),
        "knomial": Algorithm(broadcast.knomial, _size, _CHEAP, {"radix": 4}),
        "reordered": _embedded(_network, "best", "for medium messages on scattered allocations"),
        "dft": _embedded(_network, "dft", "for medium messages, the tree walked depth first to place hosts"),
        "bft": _embedded(_network, "bft", "for medium messages, the tree walked breadth first to place hosts"),
        "dft_rate": _embedded(_rates, "dft", _UNLIKE),
        "bft_rate": _embedded(_rates, "bft", _UNLIKE),
        "wave": Algorithm(broadcast.wave, _network, "for small messages where latency is far above overhead"),
        "leaders": Algorithm(broadcast.leaders, _network, "where links between clusters are scarce or shared"),
        "chain": Algorithm(broadcast.chain, _network, "for large messages on few ranks"),
        "scatter_allgather": Algorithm(broadcast.scatter_allgather, _network, "for large messages on many ranks"),
        "circulant": Algorithm(
            broadcast.circulant, _size, "for medium and large messages, full bisection", {"blocks": 8}
        ),
    },
    "gather": {
        "linear": Algorithm(gather.gather_linear, _size, _BURST),
        "at_once": Algorithm(gather.gather_linear, _size, _FAIR, {"window": 0}),
        "binomial": Algorithm(gather.gather_knomial, _size, _TREE),
        "knomial": Algorithm(gather.gather_knomial, _size, _CHEAP, {"radix": 4}),
        "leaders": Algorithm(gather.gather_leaders, _network, _SCARCE),
    },
    "scatter": {
        "linear": Algorithm(gather.scatter_linear, _size, _BURST),
        "at_once": Algorithm(gather.scatter_linear, _size, _FAIR, {"window": 0}),
        "binomial": Algorithm(gather.scatter_knomial, _size, _TREE),
        "knomial": Algorithm(gather.scatter_knomial, _size, _CHEAP, {"radix": 4}),
        "leaders": Algorithm(gather.scatter_leaders, _network, _SCARCE),
    },
    "allgather": {
        "ring": Algorithm(allgather.allgather_ring, _order, "for long vectors: few messages over a border at once"),
        "doubling": Algorithm(allgather.allgather_doubling, _order, "for short vectors: few start-ups, near ones last"),
        "leaders": Algorithm(allgather.allgather_leaders, _clusters, "for short vectors, many ranks in a cluster"),
    },
    "reduce": {
        "binomial": Algorithm(reduction.reduce_knomial, _size, _TREE),
        "knomial": Algorithm(reduction.reduce_knomial, _size, _CHEAP, {"radix": 4}),
        "leaders": Algorithm(reduction.reduce_leaders, _clusters, _SCARCE),
        "chain": Algorithm(reduction.reduce_chain, _order, "for long vectors on few ranks", {"blocks": 8}),
        "circulant": Algorithm(
            reduction.reduce_circulant, _size, "for medium vectors, full bisection, commuting operations", {"blocks": 8}
        ),
        "halving": Algorithm(reduction.reduce_halving, _order, "for long vectors on many ranks"),
    },
    "reduce_scatter": {
        "ring": Algorithm(reduce_scatter.reduce_scatter_ring, _order, "for long vectors, commutative operations"),
        "halving": Algorithm(reduce_scatter.reduce_scatter_halving, _order, "for short and medium vectors"),
        "leaders": Algorithm(reduce_scatter.reduce_scatter_leaders, _clusters, "where few links leave a cluster"),
    },
    "allreduce": {
        "ring": Algorithm(allreduce.allreduce_ring, _order, "for long vectors, commutative operations"),
        "doubling": Algorithm(allreduce.allreduce_doubling, _order, "for short vectors: fewest start-ups"),
        "halving": Algorithm(
            allreduce.allreduce_halving, _order, "for medium vectors: few start-ups and the least bytes"
        ),
        "leaders": Algorithm(
            allreduce.allreduce_leaders, _clusters, "where many ranks share few links out of a cluster"
        ),
    },
    "alltoall": {
        "pairwise": Algorithm(alltoall.alltoall_pairwise, _size, "for long messages, full bisection, p a power of two"),
        "shift": Algorithm(alltoall.alltoall_shift, _size, "for long messages, full bisection, any p"),
        "interleaved": Algorithm(
            alltoall.alltoall_interleaved, _hosts, "for long messages; near and far mixed in each step"
        ),
        "scatter_destination": Algorithm(
            alltoall.alltoall_scatter_destination, _size, "for medium messages: start-ups hide behind one another"
        ),
        "at_once": Algorithm(
            alltoall.alltoall_at_once, _size, "for long messages where links share fairly, whatever the routes"
        ),
        "bruck": Algorithm(alltoall.alltoall_bruck, _size, "for the smallest blocks: log p messages a rank"),
        "node_aware": Algorithm(
            aggregation.alltoall_node_aware, _hosts, "for small and medium blocks, many ranks a host"
        ),
        "leaders": Algorithm(aggregation.alltoall_leaders, _hosts, _MANY),
        "tacs1": Algorithm(
            tacs.tacs1, _network, "for long messages where hosts share links: no conflicts", costly=True
        ),
        "tacs2": Algorithm(
            tacs.tacs2, _network, "where the network is loaded little: tacs1 without its extra steps", costly=True
        ),
        "bound": Algorithm(
            bound.bound, _network, "for long messages where hosts share links: no conflicts, fewest steps", costly=True
        ),
        "even": Algorithm(
            even.even,
            _network,
            "for long messages, uneven routes: each step loads the links as the whole does",
            costly=True,
        ),
        "paced": Algorithm(
            joint,
            _network,
            "as joint, where more messages in flight would overrun a host",
            {"window": 4},
            costly=True,
        ),
        "joint": Algorithm(joint, _network, _AT_ONCE, costly=True),
    },
    "fft": {
        "rows": Algorithm(_pencil_rows, _network, _AT_ONCE, costly=True),
        "columns": Algorithm(_pencil_columns, _network, _AT_ONCE, costly=True),
    },
}
