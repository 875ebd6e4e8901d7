"""Alltoalls of several groups of ranks at the same time, in steps that are made for all groups together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import gcd

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..network import Network
from ..phases import Phase
from ..schedule import Schedule
from ..transfers import Rows
from .colouring import fewest_steps
from .even import SHARED, even_steps
from .pairs import Shares, StepTable, of_pairs

__all__ = ["all_joint", "joint", "joint_steps", "side_by_side"]

Integers = NDArray[np.int64]


def joint(
    network: Network, *, window: int = 16, blocks: int = 1, counts: ArrayLike | None = None, seed: int = 1
) -> Schedule:
    """The alltoall of one group of ranks, in steps made together with those of all groups in ``network.siblings``.

    Our own algorithm: the method of `even.even` is applied to all groups that share links, so that a step of all groups
    together loads links in the proportions of the whole exchange. Each group runs its own schedule, which is correct
    even if another group runs another schedule or starts late. Without siblings it is `even.even`, except that steps
    are assigned to the messages between ranks, not to the exchanges between hosts.

    Messages: p - 1 per rank of a group of p ranks. It is fast if rows or columns of a process grid exchange at once and
    routes load links unevenly. Cost: about 10 microseconds per message of the groups for which steps are computed, see
    ``joint_steps``. Memory: the steps of p * p messages.

    :param network: network of the group's ranks, with all groups in ``siblings`` if there are several.
    :param window: largest number of steps that a rank has in flight, 0 for no limit. The default is larger than that of
        ``even``, because ranks of a host that belong to different groups drift further apart.
    :param blocks: number of blocks that each rank sends to each rank of its group.
    :param counts: blocks of each pair of ranks, shape (p, p), for alltoallv.
    :param seed: seed of the random choices among equals.
    :raises ValueError: if two hosts have no route.
    """
    siblings = network.siblings
    if siblings is None:
        step = joint_steps(network, [np.arange(network.num_ranks)], seed=seed)[0]
    else:
        step = joint_steps(siblings.network, siblings.groups, seed=seed)[siblings.number]
    return _schedule(step, blocks, counts, window)


def all_joint(
    network: Network, groups: Sequence[Integers], *, window: int = 16, blocks: int = 1, seed: int = 1
) -> tuple[Schedule, ...]:
    """The alltoalls that ``joint`` makes, one per group.

    :param network: network of all ranks.
    :param groups: ranks of each group; groups are disjoint.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    :param blocks: number of blocks that each rank sends to each rank of its group.
    :param seed: seed of the random choices among equals.
    """
    return tuple(_schedule(step, blocks, None, window) for step in joint_steps(network, groups, seed=seed))


def joint_steps(network: Network, groups: Sequence[Integers], *, seed: int = 1) -> list[Integers]:
    """The step of each message between two ranks of a group, one array of shape (ranks, ranks) per group.

    Messages inside a host have step 0.

    A step of all groups together puts on each link, host and rank at most its total load divided by the number of
    steps, rounded up.

    Steps are computed for some groups only, and other groups on the same hosts take these steps, too. From each set of
    hosts the same fraction of groups is taken, so that loads keep their proportions. If, for example, 16 groups each
    have one rank on each of 64 hosts, steps are computed for one of them.

    :param network: network of all ranks.
    :param groups: ranks of each group; groups are disjoint.
    :param seed: seed of the random choices among equals.
    :raises ValueError: if two hosts of a group have no route.
    """
    order = [np.argsort(network.rank_host[ranks], kind="stable") for ranks in groups]
    placed = [ranks[by_host] for ranks, by_host in zip(groups, order, strict=True)]
    model = _models([network.rank_host[ranks].tobytes() for ranks in placed])
    chosen = sorted(set(model))
    made = dict(zip(chosen, _steps(network, [placed[number] for number in chosen], seed), strict=True))
    steps = []
    for number, by_host in zip(model, order, strict=True):
        back = np.argsort(by_host)
        steps.append(made[number][np.ix_(back, back)])
    return steps


def side_by_side(groups: Sequence[Integers], parts: Sequence[Schedule], name: str, *, blocks: int = 1) -> Schedule:
    """Merge alltoalls of disjoint groups to one alltoall of all ranks, in which ranks exchange within their group only.

    :param groups: ranks of each group; together they are 0 to p - 1.
    :param parts: alltoall of each group, all with the same window.
    :param name: name of the algorithm.
    :param blocks: number of blocks that each rank sends to each rank.
    """
    size = sum(len(ranks) for ranks in groups)
    counts = np.zeros((size, size), dtype=np.int64)
    for ranks in groups:
        counts[np.ix_(ranks, ranks)] = blocks
    one = parts[0]
    together = _Groups(max(part.num_steps for part in parts), groups=groups, parts=parts)
    return Schedule.from_phases(
        "alltoall",
        size,
        name,
        ((0, together),),
        blocks=blocks,
        counts=counts,
        independent=one.independent,
        window=one.window,
    )


def _schedule(step: Integers, blocks: int, counts: ArrayLike | None, window: int) -> Schedule:
    return of_pairs("joint", StepTable.of(step, Shares.of(len(step), blocks, counts)), window)


@dataclass(frozen=True, eq=False)
class _Groups(Phase):
    """A phase in which groups of ranks run their own schedules at the same time.

    :param groups: ranks of each group.
    :param parts: schedule of each group.
    """

    groups: Sequence[Integers] = field(kw_only=True)
    parts: Sequence[Schedule] = field(kw_only=True)

    def rows(self) -> Rows:
        """The rows of all groups, group by group, by step within each."""
        return np.concatenate([_among(ranks, part.rows()) for ranks, part in zip(self.groups, self.parts, strict=True)])

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, shape (rows, 9). Cost: only its rows in its group's schedule are made."""
        for ranks, part in zip(self.groups, self.parts, strict=True):
            for place in np.flatnonzero(ranks == rank).tolist():
                return _among(ranks, part.rows_of(place))
        raise ValueError(f"expecting a rank of a group, got {rank}")


def _among(ranks: Integers, rows: Rows) -> Rows:
    """Replace the members' numbers within a group by their ranks in all rows.

    :param ranks: rank of each member.
    :param rows: rows of the group's schedule, shape (rows, 9).
    """
    placed = rows.copy()
    placed[:, 1:3] = ranks[rows[:, 1:3]]
    return placed


def _shared(network: Network, source: Integers, destination: Integers, sender: Integers) -> int:
    """The number of messages per step that the busiest link shall have.

    It is the number of sending ranks on the fullest host if the number of steps is limited by hosts, not by links,
    because every rank then has a message in every step and ranks stay in step. Otherwise it is twice that number, as in
    `even.even`.

    :param network: network of all ranks.
    :param source: sending host of each message, shape (messages,).
    :param destination: receiving host of each message, shape (messages,).
    :param sender: sending rank of each message, shape (messages,).
    """
    busy = int(np.bincount(network.rank_host[np.unique(sender)]).max())
    hosts = max(np.bincount(source).max(), np.bincount(destination).max())
    return busy if hosts == fewest_steps(network, source, destination) else SHARED * busy


def _models(hosts: Sequence[bytes]) -> list[int]:
    """The index of the group whose steps each group takes, which is on the same hosts.

    From each set of hosts the same fraction of groups is taken, so that loads of links keep their proportions.

    :param hosts: hosts of each group's members, as bytes to compare.
    """
    kinds: dict[bytes, list[int]] = {}
    for number, kind in enumerate(hosts):
        kinds.setdefault(kind, []).append(number)
    common = reduce(gcd, map(len, kinds.values()), 0)
    model = [0] * len(hosts)
    for members in kinds.values():
        left = len(members) // common
        for place, number in enumerate(members):
            model[number] = members[place % left]
    return model


def _steps(network: Network, groups: Sequence[Integers], seed: int) -> list[Integers]:
    """The steps of each group, as by ``joint_steps``, but computed for every group."""
    starts = np.cumsum([0, *(len(ranks) ** 2 for ranks in groups)])
    ends = [np.repeat(ranks, len(ranks)) for ranks in groups], [np.tile(ranks, len(ranks)) for ranks in groups]
    sender, receiver = (np.concatenate(some) for some in ends)
    source, destination = network.rank_host[sender], network.rank_host[receiver]
    sent = np.flatnonzero(source != destination)
    step = np.zeros(len(sender), dtype=np.int64)
    if len(sent):
        source, destination, pairs = source[sent], destination[sent], (sender[sent], receiver[sent])
        shared = _shared(network, source, destination, pairs[0])
        step[sent] = 1 + even_steps(network, source, destination, ranks=pairs, shared=shared, seed=seed)
    return [
        step[begin:end].reshape(len(ranks), -1)
        for ranks, begin, end in zip(groups, starts[:-1], starts[1:], strict=True)
    ]
