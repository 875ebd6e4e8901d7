"""Broadcasts, reductions and scans in two stages, inside hosts and among their first ranks, as MPI libraries do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .exchanges import checked_root
from .nested import NestedPhase, Place
from .phases import Phase, sequence
from .rooted.broadcast import knomial
from .rooted.reduction import reduce_halving, reduce_knomial
from .rooted.scattered import scatter_doubling, scatter_ring
from .schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule
from .symmetric.scanexchange import scan_exchange
from .transfers import Rows, local_moves, transfers

__all__ = ["bcast_hosts", "reduce_hosts", "scan_hosts"]

Integers = NDArray[np.int64]


def _places(source: Place, target: Place, scratch: Place) -> dict[int, Place]:
    return {INPUT: source, OUTPUT: target, SCRATCH: scratch}


_IN_PLACE = _places((OUTPUT, 0), (OUTPUT, 0), (SCRATCH, 0))
_BETWEEN: dict[str, Callable[..., Schedule]] = {
    "binomial": knomial,
    "scatter_doubling": scatter_doubling,
    "scatter_ring": scatter_ring,
}


def bcast_hosts(
    rank_host: ArrayLike, *, root: int = 0, between: str = "binomial", at_once: bool = False, blocks: int | None = None
) -> Schedule:
    """A broadcast among the first ranks of all hosts, then inside each host, by binomial trees.

    This is MPICH's composition. A root that is not the first rank of its host first sends the message to the first rank
    or, with ``at_once``, first broadcasts inside its host. Messages: those of the algorithm ``between`` among the first
    ranks, and one or two to each other rank. It is fast if messages inside a host are fast; it ignores the topology
    beyond the host.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param root: the root's rank.
    :param between: algorithm among the hosts' first ranks: ``binomial``, ``scatter_doubling`` or ``scatter_ring``.
    :param at_once: whether the root first broadcasts inside its host, if it is not the first rank there.
    :param blocks: number of blocks of the message; by default one, or one per host if the message is scattered.
    """
    if between not in _BETWEEN:
        raise ValueError(f"expecting between of {', '.join(_BETWEEN)}, got {between!r}")
    size = len(np.asarray(rank_host))
    groups, leaders, here = _grouped(rank_host, checked_root(size, root))
    total = blocks or (1 if between == "binomial" else len(groups))
    exchange = _BETWEEN[between](len(groups), root=here, blocks=total)
    parts: list[Rows | Phase] = [local_moves(0, root, (INPUT, 0), (OUTPUT, 0), total)]
    carried = root != leaders[here]
    if carried and at_once:
        mine = groups[here]
        first = knomial(len(mine), root=int(np.searchsorted(mine, root)), blocks=total)
        parts.append(NestedPhase.of(first, mine, _IN_PLACE))
        groups = [*groups[:here], *groups[here + 1 :]]
    elif carried:
        parts.append(transfers(0, root, leaders[here], (OUTPUT, 0), (OUTPUT, 0), total))
    parts.append(NestedPhase.of(exchange, leaders, _IN_PLACE))
    parts.append(_joined([NestedPhase.of(knomial(len(one), blocks=total), one, _IN_PLACE) for one in groups]))
    return Schedule.from_phases("bcast", size, f"over hosts, {between}", sequence(*parts), root=root, blocks=total)


def reduce_hosts(
    rank_host: ArrayLike, *, root: int = 0, between: str = "binomial", to_first: bool = True, blocks: int | None = None
) -> Schedule:
    """A reduction inside each host to its first rank, by binomial trees, then among the first ranks of all hosts.

    This is MPICH's composition. Messages: those of the algorithm ``between`` among the first ranks, and one from each
    other rank. It is fast if messages inside a host are fast; it ignores the topology beyond the host.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param root: the root's rank.
    :param between: algorithm among the first ranks: ``binomial``, or ``halving`` (`reduce_halving` with
        ``root_joins=False``).
    :param to_first: whether the first ranks reduce to rank 0, which sends the result to the root. Otherwise they reduce
        to the first rank of the root's host, and then the ranks of that host reduce to the root.
    :param blocks: number of blocks of the vector; by default one, or one per corner of the hypercube that halves it.
    """
    if between not in ("binomial", "halving"):
        raise ValueError(f"expecting between 'binomial' or 'halving', got {between!r}")
    size = len(np.asarray(rank_host))
    groups, leaders, here = _grouped(rank_host, checked_root(size, root))
    total = blocks or (1 if between == "binomial" else 1 << len(groups).bit_length() - 1)
    target = 0 if to_first else here
    inner = _places((INPUT, 0), (SCRATCH, 0), (SCRATCH, 2 * total))
    outer = _places((SCRATCH, 0), (SCRATCH, total), (SCRATCH, 2 * total))
    if between == "halving":
        exchange = reduce_halving(len(groups), root=target, root_joins=False, blocks=total)
    else:
        exchange = reduce_knomial(len(groups), root=target, blocks=total)
    early = [one for number, one in enumerate(groups) if to_first or number != here]
    parts: list[Rows | Phase] = [
        _joined([NestedPhase.of(reduce_knomial(len(one), blocks=total), one, inner) for one in early])
    ]
    if not to_first:
        parts.append(local_moves(0, leaders[here], (INPUT, 0), (SCRATCH, 0), total))
    parts.append(NestedPhase.of(exchange, leaders, outer))
    if to_first:
        parts.append(transfers(0, leaders[0], root, (SCRATCH, total), (OUTPUT, 0), total))
    else:
        mine = groups[here]
        last = reduce_knomial(len(mine), root=int(np.searchsorted(mine, root)), blocks=total)
        parts.append(local_moves(0, mine[1:], (INPUT, 0), (SCRATCH, total), total))
        parts.append(NestedPhase.of(last, mine, _places((SCRATCH, total), (OUTPUT, 0), (SCRATCH, 2 * total))))
    return Schedule.from_phases("reduce", size, f"over hosts, {between}", sequence(*parts), root=root, blocks=total)


def scan_hosts(rank_host: ArrayLike, *, blocks: int = 1) -> Schedule:
    """A scan inside each host, then among the hosts' first ranks; then each rank adds the prefix of earlier hosts.

    This is MPICH's scan for hosts of consecutive ranks. On other placements each run of consecutive ranks counts as a
    host. A host's last rank sends the sum of the host to the host's first rank, and each first rank sends its prefix to
    the next host's first rank. It is fast if messages inside a host are fast.

    :param rank_host: host of each rank, shape (p,), any numbers.
    :param blocks: number of blocks of the vector; they travel together.
    """
    host, size = np.asarray(rank_host), len(np.asarray(rank_host))
    begins = np.append(True, host[1:] != host[:-1])
    groups, leaders, _ = _grouped(np.cumsum(begins), 0)
    last = np.append(leaders[1:], size) - 1
    total, prefix, before = ((SCRATCH, place * blocks) for place in range(3))
    inside = _places((INPUT, 0), (OUTPUT, 0), (SCRATCH, 3 * blocks))
    later = np.flatnonzero(np.cumsum(begins) > 1)
    parts: list[Rows | Phase] = [
        _joined([NestedPhase.of(scan_exchange(len(one), blocks=blocks), one, inside) for one in groups]),
        transfers(0, last, leaders, (OUTPUT, 0), total, blocks),
        NestedPhase.of(
            scan_exchange(len(leaders), blocks=blocks), leaders, _places(total, prefix, (SCRATCH, 3 * blocks))
        ),
        transfers(0, leaders[:-1], leaders[1:], prefix, before, blocks),
        _joined(
            [
                NestedPhase.of(knomial(len(one), blocks=blocks), one, _places(before, before, before))
                for one in groups[1:]
            ]
        ),
        transfers(0, later, later, before, (OUTPUT, 0), blocks, REDUCE),
    ]
    return Schedule.from_phases("scan", size, "over hosts", sequence(*parts), blocks=blocks)


def _grouped(rank_host: ArrayLike, root: int) -> tuple[list[Integers], Integers, int]:
    """The ranks of each host, hosts in the order of their first ranks; these first ranks; the index of root's host."""
    host = np.asarray(rank_host)
    _, first, number = np.unique(host, return_index=True, return_inverse=True)
    leaders = np.sort(first).astype(np.int64)
    place = np.searchsorted(leaders, first[number])
    order = np.argsort(place, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(place[order])) + 1)
    return groups, leaders, int(place[root])


def _joined(stages: Sequence[NestedPhase]) -> Rows:
    """The rows of stages that run at the same time on different ranks."""
    return np.concatenate([np.empty((0, 9), dtype=np.int64), *(stage.rows() for stage in stages)])
