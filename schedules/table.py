"""The table of all algorithms, by collective and name, with their properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Literal

import numpy as np

from ..network import rate_delay
from .algorithm import Algorithm, View, takes_network
from .alltoall import aggregation, colouring, even, tacs
from .alltoall import direct as alltoall
from .alltoall.fft import grid_groups, pencils, squarest
from .alltoall.hostschedule import HostSchedule
from .alltoall.joint import joint, side_by_side
from .lanes.collectives import lanes_allreduce, lanes_bcast, lanes_reduce
from .lanes.scans import scan_lanes
from .lanes.stages import AcrossHosts
from .network import Network
from .rooted import broadcast, gather, packedtrees, reduction, scatterallgather
from .schedule import ROOTED, Schedule
from .swing import ranks_on_grid
from .symmetric import (
    allgather,
    allreduce,
    aside,
    barrier,
    bucket,
    grouped,
    reduce_scatter,
    scan,
    swing,
)
from .trees import depth_first, rank_clusters, ring_order

__all__ = ["ALGORITHMS", "MOST_PARTS"]

MOST_PARTS = 256  # most parts into which a message is cut


def _size(network: Network, root: int) -> tuple[tuple[int], dict[str, object]]:
    return (network.num_ranks,), {}


def _rates(network: Network, root: int) -> tuple[tuple[Network], dict[str, object]]:
    first = network.links[:, :, 0]
    rate = np.where(first >= 0, network.capacity[first], 0).max(axis=1)
    return (network,), {"delay": rate_delay(np.where(rate > 0, rate, 1.0))}


def _order(network: Network, root: int) -> tuple[tuple[int], dict[str, object]]:
    order = depth_first(rank_clusters(network), network.num_ranks, root=root)
    return (network.num_ranks,), {"order": order}


def _grid_and_ports(network: Network, root: int) -> tuple[tuple[object], dict[str, object]]:
    return (ranks_on_grid(network),), {"ports": network.ports}


def _grid_or_ring_and_ports(network: Network, root: int) -> tuple[tuple[object], dict[str, object]]:
    """The torus, or, if the job does not fill one, the ranks in their order along rings; and the ports of a host."""
    grid = ranks_on_grid(network)
    return (ring_order(network) if grid.ndim == 1 else grid,), {"ports": network.ports}


def _along_routes(network: Network, root: int) -> tuple[tuple[int], dict[str, object]]:
    return (network.num_ranks,), {"order": ring_order(network, root=root)}


def _towards_root(network: Network, root: int) -> tuple[tuple[int], dict[str, object]]:
    """The arguments of a generator whose messages travel against the order, to the root."""
    return (network.num_ranks,), {"order": ring_order(network, root=root, inwards=True)}


def _clusters(network: Network, root: int) -> tuple[tuple[object, ...], dict[str, object]]:
    return (network.num_ranks, rank_clusters(network)), {}


def _grid(network: Network, root: int) -> tuple[tuple[object], dict[str, object]]:
    return (ranks_on_grid(network),), {}


def _hosts(network: Network, root: int) -> tuple[tuple[object], dict[str, object]]:
    return (network.rank_host,), {}


def _hosts_in_order(network: Network, root: int) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments of a generator that takes hosts as the only level of clusters, and ranks in depth-first order."""
    return (network.num_ranks, network.rank_host[None]), _order(network, root)[1]


def _pencil_rows(
    network: Network, *, rows: int | None = None, window: int = 16, blocks: int = 1, seed: int = 1
) -> Schedule:
    """The alltoall of all rows of a process grid at once, see `schedules.alltoall.fft.pencils`.

    :param network: the job's network.
    :param rows: number of rows of the grid; by default the number that makes the grid most nearly square.
    :param window: largest number of steps that a rank has in flight.
    :param blocks: number of blocks of one message.
    :param seed: seed of the random search.
    """
    rows = squarest(network.num_ranks) if rows is None else rows
    columns = network.num_ranks // max(rows, 1)
    made = pencils(network, rows, columns, window=window, blocks=blocks, seed=seed)
    return side_by_side(grid_groups(rows, columns)[0], made.rows, "fft rows", blocks=blocks)


def _pencil_columns(
    network: Network, *, rows: int | None = None, window: int = 16, blocks: int = 1, seed: int = 1
) -> Schedule:
    """The alltoall of all columns of a process grid at once; the parameters are those of ``_pencil_rows``."""
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
_FULL = "for small and medium blocks, many ranks a host"
_AT_ONCE = "for long messages where rows or columns of a process grid exchange at once"


# Values of `Algorithm.segments`: sizes of parts in bytes, and the numbers of parts for which cutting was faster.
# Over TCP, MPI libraries send a long message only after the receiver has agreed, and the agreement waits in the queues
# of loaded links. Messages of 32 KiB are below that size, and shorter ones fill a chain of some dozen ranks sooner.
# Generators that divide messages make 8 parts by default; fewer parts save start-ups for short messages.
_ON_LANES = {32 << 10: range(2, MOST_PARTS + 1)}
_OF_A_CHAIN = {8 << 10: range(9, MOST_PARTS + 1), 16 << 10: range(9, MOST_PARTS + 1)}
_OF_LONG_VECTORS = {64 << 10: range(3, 33), 256 << 10: range(2, 65), 1 << 20: range(5, 65), 4 << 20: range(9, 65)}
_OF_PACKED_TREES = {8 << 10: range(33, MOST_PARTS + 1)}  # below the size from which a message waits for its receiver
_OF_A_CIRCULANT = {4 << 10: range(3, 8), 16 << 10: range(9, MOST_PARTS + 1)}


# The same for algorithms in lanes, which pipeline segments or blocks: while some are sent between hosts, others are
# sent inside hosts.
_OF_LANE_SEGMENTS = {64 << 10: range(2, 17), 256 << 10: range(2, 17)}
_OF_LANE_BLOCKS = {16 << 10: range(9, 33), 64 << 10: range(9, 65)}

# Least bytes of a call (`Algorithm.default`) for which the algorithm that the model predicts as fastest was measured to
# be no slower than the library's, from tests/records/emulated.json and uneven.json.
_MEDIUM = 16 << 10
_SHORT = 4 << 10
_LONG = 32 << 10
# Alltoalls with one peer per step, from tests/records/alltoalls.json; packed trees, from docs/lab/untuned.md; and
# allreduces in which slow hosts stand aside, from tests/records/uneven.json.
_LONGEST = 256 << 10


def _embedded(view: View, walk: str, when: str) -> Algorithm:
    return Algorithm(broadcast.reordered, view, when, {"choose": walk})


def _direct(
    generator: Callable[..., Schedule | HostSchedule],
    view: View,
    when: str,
    fixed: Mapping[str, object] | None = None,
    *,
    segments: Mapping[int, range] | None = None,
    **traits: Any,
) -> Algorithm:
    """The algorithm of a generator with one message per pair of ranks, whose messages can be cut into parts.

    It also needs only a rank's own counts (`Algorithm.local_counts`).
    """
    traits |= {"cut": "slices", "segments": segments or {}, "local_counts": True}
    return Algorithm(generator, view, when, fixed or {}, **traits)


def _pipelined(
    generator: Callable[..., Schedule],
    when: str,
    blocks: int,
    segments: Mapping[int, range],
    view: View = _order,
    **traits: Any,
) -> Algorithm:
    return Algorithm(generator, view, when, {"blocks": blocks}, cut="blocks", segments=segments, **traits)


def _packed(generator: Callable[..., Schedule], when: str) -> Algorithm:
    traits: dict[str, Any] = {"cut": "blocks", "segments": _OF_PACKED_TREES, "routed": True, "logarithmic": True}
    return Algorithm(generator, takes_network, when, parts=packedtrees.parts_of, default=_LONGEST, **traits)


def _ring(generator: Callable[..., Schedule], when: str, default: float) -> Algorithm:
    traits: dict[str, Any] = {"cut": "slices", "segments": _ON_LANES, "stand_in": "any", "routed": True}
    return Algorithm(generator, _along_routes, when, default=default, **traits)


def _halving(generator: Callable[..., Schedule], when: str, default: float) -> Algorithm:
    return Algorithm(generator, _order, when, keeps_order=True, stand_in="any", default=default, logarithmic=True)


def _butterfly(generator: Callable[..., Schedule], view: View, when: str, default: float = inf) -> Algorithm:
    return Algorithm(generator, view, when, default=default, logarithmic=True)


def _on_tori(
    generator: Callable[..., Schedule],
    bucket: Callable[..., Schedule],
    default: float,
    longest: float,
    needs: Literal["torus", "ports"] = "ports",
) -> dict[str, Algorithm]:
    """The algorithms on tori by name; all but ``swing`` fill as many links of a host at the same time as it has ports.

    :param generator: maker of the schedule by Swing.
    :param bucket: maker of the schedule by rings along dimensions.
    :param default: least bytes of a call for which ``swing`` may be chosen without measurements.
    :param longest: the same for the others.
    :param needs: where trials and the default consider ``bucket``: ``torus``, or ``ports`` if it is slow with one port.
    """
    return {
        "swing": _butterfly(
            generator,
            _grid,
            "on tori that the job fills; elsewhere for short and medium vectors over clusters in a row",
            default,
        ),
        "swing_ports": Algorithm(
            generator,
            _grid_and_ports,
            "as swing, for longer vectors, where hosts can fill several links at the same time",
            needs="ports",
            default=longest,
            logarithmic=True,
            divides_shares=True,
        ),
        "bucket": Algorithm(
            bucket,
            _grid_or_ring_and_ports,
            "for medium and long vectors on tori that the job fills, or hosts with several ports",
            routed=True,
            needs=needs,
            default=longest,
            divides_shares=True,
        ),
    }


def _of_own_blocks(
    linear: Callable[..., Schedule],
    knomial: Callable[..., Schedule],
    nodes: Callable[..., Schedule],
    leaders: Callable[..., Schedule],
) -> dict[str, Algorithm]:
    """The algorithms of a gather, or of a scatter, by name."""
    return {
        "linear": _direct(linear, _size, _BURST, stand_in="any", default=_MEDIUM),
        "at_once": _direct(linear, _size, _FAIR, {"window": 0}),
        "binomial": Algorithm(knomial, _size, _TREE, stand_in="any"),
        "knomial": Algorithm(knomial, _size, _CHEAP, {"radix": 4}),
        "nodes": Algorithm(nodes, _hosts, _FULL),
        "leaders": Algorithm(leaders, takes_network, _SCARCE),
    }


def _in_lanes(collective: str, across: str, when: str, default: float, **traits: Any) -> Algorithm:
    """The algorithm for several ranks per host that runs another algorithm across hosts, in lanes.

    :param collective: bcast, reduce or allreduce.
    :param across: name of the algorithm that runs across hosts.
    :param when: messages and networks on which it is fast, in one line.
    :param default: least bytes of a call for which it may be chosen without measurements; infinite for never.
    :param traits: further properties of the `Algorithm`.
    """
    base = ALGORITHMS[collective][across]

    def generate(network: Network, root: int, blocks: int | None) -> Schedule:
        made = base.generate(network, root if collective in ROOTED else 0, blocks)
        return made.expand() if isinstance(made, HostSchedule) else made

    exchange = AcrossHosts(generate, base.divides)

    def view(network: Network, root: int) -> tuple[tuple[object, ...], dict[str, object]]:
        return (network, exchange), {}

    traits |= {"alone": across, "default": default, "logarithmic": across in ("circulant", "double_tree", "halving")}
    traits |= {"routed": base.routed, "needs": base.needs}
    return Algorithm(_LANES[collective], view, when, cut="segments", **traits)


_LANES: dict[str, Callable[..., Schedule]] = {
    "bcast": lanes_bcast,
    "reduce": lanes_reduce,
    "allreduce": lanes_allreduce,
}
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "bcast": {
        "binomial": Algorithm(broadcast.knomial, _size, _TREE, stand_in="any"),
        "knomial": Algorithm(broadcast.knomial, _size, _CHEAP, {"radix": 4}),
        "reordered": _embedded(takes_network, "best", "for medium messages on scattered allocations"),
        "dft": _embedded(takes_network, "dft", "for medium messages, the tree walked depth first to place hosts"),
        "bft": _embedded(takes_network, "bft", "for medium messages, the tree walked breadth first to place hosts"),
        "dft_rate": _embedded(_rates, "dft", _UNLIKE),
        "bft_rate": _embedded(_rates, "bft", _UNLIKE),
        "leaders": Algorithm(broadcast.leaders, takes_network, "where links between clusters are scarce or shared"),
        "chain": Algorithm(
            broadcast.chain,
            takes_network,
            "for large messages on few ranks",
            cut="blocks",
            segments=_OF_A_CHAIN,
            stand_in="any",
            default=_LONG,
            routed=True,
        ),
        "scatter_allgather": Algorithm(
            scatterallgather.scatter_allgather,
            takes_network,
            "for large messages on many ranks",
            stand_in="any",
            default=_LONG,
            routed=True,
        ),
        "scatter_allgather_hosts": Algorithm(
            scatterallgather.scatter_allgather_hosts,
            takes_network,
            "for large messages, many ranks a host",
            alone="scatter_allgather",
            default=2 * _LONG,
            routed=True,
        ),
        "circulant": _pipelined(
            broadcast.circulant,
            "for medium and large messages, full bisection",
            8,
            _OF_A_CIRCULANT,
            default=_MEDIUM,
            logarithmic=True,
        ),
        "double_tree": _pipelined(
            broadcast.double_tree, "for large messages where links between clusters are scarce", 16, _OF_A_CHAIN
        ),
        "packed_trees": _packed(packedtrees.bcast_packed_trees, "for large messages on many ranks, any routes"),
    },
    "gather": _of_own_blocks(gather.gather_linear, gather.gather_knomial, gather.gather_nodes, gather.gather_leaders),
    "scatter": _of_own_blocks(
        gather.scatter_linear, gather.scatter_knomial, gather.scatter_nodes, gather.scatter_leaders
    ),
    "allgather": {
        "ring": _ring(allgather.allgather_ring, "for long vectors: few messages over a border at once", _SHORT),
        "doubling": Algorithm(
            allgather.allgather_doubling, _order, "for short vectors: few start-ups, near ones last", stand_in="any"
        ),
        "grouped": _butterfly(
            grouped.allgather_grouped, _clusters, "for medium and long blocks where links between clusters are scarce"
        ),
        **_on_tori(swing.allgather_swing, bucket.allgather_bucket, inf, _MEDIUM),
        "leaders": Algorithm(allgather.allgather_leaders, _clusters, "for short vectors, many ranks in a cluster"),
    },
    "reduce": {
        "binomial": Algorithm(reduction.reduce_knomial, _size, _TREE, keeps_order=True, whole=True, stand_in="any"),
        "knomial": Algorithm(reduction.reduce_knomial, _size, _CHEAP, {"radix": 4}, keeps_order=True, whole=True),
        "leaders": Algorithm(reduction.reduce_leaders, _clusters, _SCARCE, keeps_order=True, whole=True),
        "chain": _pipelined(
            reduction.reduce_chain,
            "for long vectors on few ranks",
            8,
            _OF_A_CHAIN,
            _towards_root,
            keeps_order=True,
            stand_in="any",
            default=_LONG,
            routed=True,
        ),
        "circulant": _pipelined(
            reduction.reduce_circulant,
            "for medium vectors, full bisection, commuting operations",
            8,
            _OF_A_CIRCULANT,
            default=_MEDIUM,
            logarithmic=True,
        ),
        "double_tree": _pipelined(
            reduction.reduce_double_tree,
            "for long vectors where links between clusters are scarce, commuting operations",
            16,
            _OF_A_CHAIN,
        ),
        "packed_trees": _packed(
            packedtrees.reduce_packed_trees, "for long vectors on many ranks, any routes, commuting operations"
        ),
        "halving": _halving(reduction.reduce_halving, "for long vectors on many ranks", _LONG),
    },
    "reduce_scatter": {
        "ring": _ring(reduce_scatter.reduce_scatter_ring, "for long vectors, commutative operations", 2 * _LONG),
        "halving": _halving(reduce_scatter.reduce_scatter_halving, "for short and medium vectors", _MEDIUM),
        "grouped": _butterfly(
            grouped.reduce_scatter_grouped,
            _clusters,
            "for medium and long vectors where links between clusters are scarce",
            _MEDIUM,
        ),
        **_on_tori(swing.reduce_scatter_swing, bucket.reduce_scatter_bucket, _MEDIUM, 4 * _LONGEST),
    },
    "allreduce": {
        "ring": _ring(allreduce.allreduce_ring, "for long vectors, commutative operations", 4 * _LONG),
        "doubling": Algorithm(
            allreduce.allreduce_doubling,
            _order,
            "for short vectors: fewest start-ups",
            keeps_order=True,
            whole=True,
            stand_in="any",
        ),
        "halving": _halving(
            allreduce.allreduce_halving, "for medium vectors: few start-ups and the least bytes", _MEDIUM
        ),
        "grouped": _butterfly(
            grouped.allreduce_grouped,
            _clusters,
            "for medium and long vectors where links between clusters are scarce",
            _MEDIUM,
        ),
        **_on_tori(swing.allreduce_swing, bucket.allreduce_bucket, _MEDIUM, _LONGEST, "torus"),
        "aside": Algorithm(
            aside.allreduce_aside,
            takes_network,
            "for long vectors where few hosts have slow links",
            cut="segments",
            segments=_OF_LONG_VECTORS,
            parts=aside.parts_of,
            needs="slow hosts",
            default=_LONGEST,
            logarithmic=True,
        ),
        "leaders": Algorithm(
            allreduce.allreduce_leaders,
            _clusters,
            "where many ranks share few links out of a cluster",
            keeps_order=True,
            whole=True,
        ),
    },
    **{
        collective: {
            "chain": Algorithm(
                scan.scan_chain,
                _size,
                "for long vectors on few ranks",
                {"inclusive": inclusive, "blocks": 8},
                cut="blocks",
                segments=_OF_A_CHAIN,
                keeps_order=True,
                stand_in="any",
            ),
            "doubling": Algorithm(
                scan.scan_doubling,
                _size,
                "for short vectors: fewest start-ups",
                {"inclusive": inclusive},
                keeps_order=True,
                whole=True,
                stand_in="any",
            ),
            "leaders": Algorithm(
                scan.scan_leaders,
                _clusters,
                "where hosts have several ranks in order",
                {"inclusive": inclusive},
                keeps_order=True,
                whole=True,
            ),
            "lanes_transposed": Algorithm(
                scan_lanes,
                _hosts,
                "for medium and long vectors, also where hosts have several ranks in order",
                {"inclusive": inclusive},
                keeps_order=True,
            ),
        }
        for collective, inclusive in (("scan", True), ("exscan", False))
    },
    "barrier": {
        "dissemination": Algorithm(
            barrier.barrier_leaders, _size, "on one switch, one rank a host: fewest steps", stand_in="any"
        ),
        "dissemination_hosts": Algorithm(
            barrier.barrier_leaders,
            _hosts_in_order,
            "where hosts have many ranks, or ranks are scattered: one message for each host and step, near ones first",
        ),
        "leaders": Algorithm(barrier.barrier_leaders, _clusters, "where few links leave a cluster"),
    },
    "alltoall": {
        "pairwise": _direct(
            alltoall.alltoall_pairwise,
            _size,
            "for long messages, full bisection, p a power of two",
            segments=_ON_LANES,
            stand_in="long",
            power_of_two=True,
            default=_LONGEST,
        ),
        "shift": _direct(
            alltoall.alltoall_shift,
            _size,
            "for long messages, full bisection, any p",
            segments=_ON_LANES,
            stand_in="long",
            default=_LONGEST,
        ),
        "scatter_destination": _direct(
            alltoall.alltoall_scatter_destination,
            _size,
            "for medium messages: start-ups hide behind one another",
            stand_in="short",
        ),
        "bruck": Algorithm(
            alltoall.alltoall_bruck, _size, "for the smallest blocks: log p messages a rank", stand_in="short"
        ),
        "node_aware": Algorithm(
            aggregation.alltoall_node_aware,
            _hosts,
            "for small and medium blocks, many ranks a host",
            host_counts=True,
        ),
        # Trials leave out ``tacs1`` because ``colouring`` is also free of conflicts and has fewer steps.
        "tacs1": _direct(
            tacs.tacs1,
            takes_network,
            "for long messages where hosts share links: no conflicts",
            trial=False,
            costly=True,
        ),
        "tacs2": _direct(
            tacs.tacs2,
            takes_network,
            "where the network is loaded little: tacs1 without its extra steps",
            segments=_ON_LANES,
            costly=True,
        ),
        "colouring": _direct(
            colouring.colouring,
            takes_network,
            "for long messages where hosts share links: no conflicts, fewest steps",
            costly=True,
        ),
        "even": _direct(
            even.even,
            takes_network,
            "for long messages, uneven routes: each step loads the links as the whole does",
            segments=_ON_LANES,
            shares_links=True,
            costly=True,
            default=_MEDIUM,
        ),
        "paced": _direct(
            joint,
            takes_network,
            "as joint, where more messages in flight would overrun a host",
            {"window": 4},
            joint=True,
            shares_links=True,
            costly=True,
            default=_MEDIUM,
        ),
        "joint": _direct(
            joint, takes_network, _AT_ONCE, segments=_ON_LANES, joint=True, shares_links=True, costly=True
        ),
    },
    "fft": {
        "rows": _direct(_pencil_rows, takes_network, _AT_ONCE, costly=True),
        "columns": _direct(_pencil_columns, takes_network, _AT_ONCE, costly=True),
    },
}

_LONG_VECTORS = "for medium and long vectors, several ranks a host"
for _collective, _name, _when, _least, _segments in (
    ("bcast", "circulant", "for medium and large messages, several ranks a host", _LONG, _OF_LANE_BLOCKS),
    ("bcast", "double_tree", "for large messages where links between clusters are scarce", inf, _OF_LANE_BLOCKS),
    ("reduce", "double_tree", _LONG_VECTORS, inf, _OF_LANE_BLOCKS),
    ("reduce", "halving", _LONG_VECTORS, _MEDIUM, _OF_LANE_SEGMENTS),
    ("reduce", "circulant", _LONG_VECTORS, _LONG, _OF_LANE_BLOCKS),
    ("allreduce", "halving", _LONG_VECTORS, _MEDIUM, _OF_LANE_SEGMENTS),
    ("allreduce", "ring", "for the longest vectors, several ranks a host", _LONG, {}),
    ("allreduce", "aside", "for long vectors, several ranks a host, few hosts slow", inf, _OF_LONG_VECTORS),
):
    ALGORITHMS[_collective][f"lanes_{_name}"] = _in_lanes(_collective, _name, _when, _least, segments=_segments)
