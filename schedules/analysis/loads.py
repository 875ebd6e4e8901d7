"""What a schedule does to a network: loads and conflicts of links step by step, traffic by distance, idle ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..schedule import Schedule
from .bounds import Bound, distinct, link_width, lower_bound, min_steps, require_routes

__all__ = ["Analysis", "Messages", "analyse", "merged", "messages_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

CHUNK = 1 << 17  # messages whose routes are looked at together: bounds the memory


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of a schedule, in the order of steps, sources and destinations.

    Transfers of one step between the same two ranks are one message (Bruck's scattered blocks travel together); local
    moves are none.

    :param step: step of each message, shape (messages,); likewise ``source`` and ``destination``, which are ranks.
    :param blocks: blocks in it.
    """

    step: Integers
    source: Integers
    destination: Integers
    blocks: Integers

    def __len__(self) -> int:
        return len(self.step)

    def chunks(self, limit: int = CHUNK) -> Iterator[slice]:
        """Slices of whole steps, of about ``limit`` messages each."""
        ends = np.append(np.flatnonzero(np.diff(self.step)) + 1, len(self.step))
        ends = ends[np.append(np.diff(ends // limit) > 0, True)]
        return (slice(int(begin), int(end)) for begin, end in zip(np.append(0, ends[:-1]), ends, strict=True))


def messages_of(schedule: Schedule) -> Messages:
    """The messages of a schedule; cost: a sort of its rows."""
    rows = schedule.messages
    columns = (schedule.step, schedule.source, schedule.destination, schedule.count)
    step, source, destination, count = (column[rows].astype(np.int64) for column in columns)
    return merged(step, source, destination, count, schedule.size)


def merged(step: Integers, source: Integers, destination: Integers, count: Integers, size: int) -> Messages:
    """Messages from transfers between ranks, given in any order.

    :param step: of each transfer, shape (transfers,); likewise ``source``, ``destination`` and ``count``, the blocks.
    :param size: number of ranks, p.
    """
    key = (step * size + source) * size + destination
    order = np.argsort(key, kind="stable")
    first = run_starts(key[order])
    blocks = np.add.reduceat(count[order], first) if len(count) else count
    one = order[first]
    return Messages(step[one], source[one], destination[one], blocks)


@dataclass(frozen=True, eq=False)
class Analysis:
    """Loads, conflicts, idle ranks, traffic by distance and bounds of one schedule on one network.

    The columns hold one entry for each step and link that carries something, by step, then link:

    :param step: step, shape (entries,); likewise the columns that follow.
    :param link: link of the network.
    :param transfers: messages on the link in the step.
    :param bytes: their bytes.
    :param senders: the most ranks of one host that send over the link in the step.

    Of the whole schedule:

    :param network: the network.
    :param width: transfers that fit into each link at full rate, shape (links,), see ``link_width``.
    :param num_steps: number of steps.
    :param active_steps: steps with messages, of which each costs one start-up.
    :param idle_ranks: ranks without a message in each step, shape (steps,).
    :param messages_by_hops: messages by switches crossed, 0 inside a host, shape (most hops + 1,); likewise
        ``bytes_by_hops``.
    :param messages_by_level: messages by level: 0 inside a host, 1 inside a leaf switch, and so on outwards; the last
        are those that no cluster holds, shape (levels + 2,); likewise ``bytes_by_level``.
    :param bound: lower bounds on the time of the collective, whatever the schedule.
    :param min_steps: lower bound on the steps of an alltoall without conflicts, see ``min_steps``; else 0.
    :param alpha: seconds to start a message.
    """

    step: Integers
    link: Integers
    transfers: Integers
    bytes: Integers
    senders: Integers
    network: Network
    width: Integers
    num_steps: int
    active_steps: int
    idle_ranks: Integers
    messages_by_hops: Integers
    bytes_by_hops: Integers
    messages_by_level: Integers
    bytes_by_level: Integers
    bound: Bound
    min_steps: int
    alpha: float

    def __repr__(self) -> str:
        messages = int(self.messages_by_hops.sum())
        return f"Analysis({messages:,} messages in {self.active_steps:,} steps, {self.conflicts.sum():,} conflicts)"

    def summary(self) -> str:
        """Some lines for people: messages, bytes by distance, conflicts, the busiest link, the time and its bound."""
        messages, total = int(self.messages_by_hops.sum()), int(self.bytes_by_hops.sum())
        lines = [f"{messages:,} messages, {total:,} bytes, in {self.active_steps:,} steps"]
        for hops in np.flatnonzero(self.messages_by_hops).tolist():
            where = "inside a host" if hops == 0 else f"{hops} hop{'s' * (hops > 1)}"
            lines.append(f"{where}: {self.messages_by_hops[hops]:,} messages, {self.bytes_by_hops[hops]:,} bytes")
        lines.append(f"{self.conflicts.sum():,} transfers more on links than fit at full rate")
        if len(self.link):
            carried = np.bincount(self.link, weights=self.bytes)
            lines.append(f"busiest link: {carried.argmax()}, {int(carried.max()):,} bytes")
        lines.append(f"{self.seconds:.4g} s step by step; no schedule takes less than {self.bound.seconds:.4g} s")
        return "\n".join(lines)

    @cached_property
    def relative_load(self) -> Floats:
        """Transfers over the link's width, shape (entries,)."""
        return self.transfers / self.width[self.link]

    @cached_property
    def conflicts(self) -> Integers:
        """Transfers on the link beyond what it may carry in a step, shape (entries,).

        A link may carry its width for each of ``senders``: the ranks of one host share their host's link whatever the
        order, so what they send at once is no fault of the schedule on any link behind it either.
        """
        return np.maximum(self.transfers - self.width[self.link] * self.senders, 0)

    @cached_property
    def conflicts_of_step(self) -> Integers:
        """Conflicts of all links in each step, shape (steps,)."""
        total = np.zeros(self.num_steps, dtype=np.int64)
        np.add.at(total, self.step, self.conflicts)
        return total

    @cached_property
    def busiest_link(self) -> Integers:
        """The link of each step that needs most time for its bytes, shape (steps,).

        The lowest number among equals is taken, and -1 where no link is loaded.
        """
        busiest = np.full(self.num_steps, -1, dtype=np.int64)
        # The last assignment stands: the most loaded, and among equals the lowest link.
        order = np.lexsort((-self.link, self._seconds))
        busiest[self.step[order]] = self.link[order]
        return busiest

    @cached_property
    def busiest_seconds(self) -> Floats:
        """Bytes of the busiest link over its capacity in each step, shape (steps,)."""
        busiest = np.zeros(self.num_steps)
        np.maximum.at(busiest, self.step, self._seconds)
        return busiest

    @property
    def seconds(self) -> float:
        """The steps one after the other, each as long as its busiest link and one start-up: what the bound bounds."""
        return float(self.busiest_seconds.sum()) + self.alpha * self.active_steps

    @property
    def ratio(self) -> float:
        """``seconds`` over the bound; NaN where the bound is 0, as inside one host."""
        return self.seconds / self.bound.seconds if self.bound.seconds else float("nan")

    @cached_property
    def _seconds(self) -> Floats:
        return self.bytes / self.network.capacity[self.link]


def analyse(schedule: Schedule, network: Network, block_bytes: int = 1, *, alpha: float = 0.0) -> Analysis:
    """Loads, conflicts, idle ranks, traffic by distance and bounds of a schedule on a network.

    :param schedule: the schedule.
    :param network: on which it runs.
    :param block_bytes: bytes of one block.
    :param alpha: seconds to start a message, for the bounds; 0 leaves bytes alone.
    :raises ValueError: if the network has another number of ranks, or no route that the schedule needs.
    Cost: a sort of the rows times the links of a route; memory for about 2^17 messages' routes, or one step's.
    """
    messages = messages_of(schedule)
    check_routes(messages, schedule, network)
    traffic = _traffic(messages, network, block_bytes)
    hops, levels = np.maximum(network.hops, 0).astype(np.int64), _levels(network)
    loads = np.concatenate([_link_loads(messages, span, network) for span in messages.chunks()], axis=1)
    share = schedule.blocks if schedule.counts is None else schedule.share()
    return Analysis(
        step=loads[0],
        link=loads[1],
        transfers=loads[2],
        bytes=loads[3] * block_bytes,
        senders=loads[4],
        network=network,
        width=link_width(network),
        num_steps=schedule.num_steps,
        active_steps=len(run_starts(messages.step)),
        idle_ranks=_idle_ranks(messages, schedule),
        messages_by_hops=_totals(traffic[0], hops, int(hops.max()) + 1),
        bytes_by_hops=_totals(traffic[1], hops, int(hops.max()) + 1),
        messages_by_level=_totals(traffic[0], levels, len(network.clusters) + 2),
        bytes_by_level=_totals(traffic[1], levels, len(network.clusters) + 2),
        bound=lower_bound(
            network, schedule.collective, share, root=schedule.root, block_bytes=block_bytes, alpha=alpha
        ),
        min_steps=min_steps(network) if schedule.collective == "alltoall" and schedule.counts is None else 0,
        alpha=alpha,
    )


def check_routes(messages: Messages, schedule: Schedule, network: Network) -> None:
    """Raise ValueError unless the network has the schedule's ranks and all the routes of the messages."""
    if schedule.size != network.num_ranks:
        raise ValueError(f"expecting a network of {schedule.size} ranks, got {network.num_ranks}")
    require_routes(network, network.rank_host[messages.source], network.rank_host[messages.destination])


def run_starts(ascending: NDArray[np.integer]) -> NDArray[np.intp]:
    """Where each run of equal values begins."""
    if not len(ascending):
        return np.empty(0, dtype=np.intp)
    return np.concatenate(([0], np.flatnonzero(np.diff(ascending)) + 1))


def crossings(messages: Messages, span: slice, network: Network) -> tuple[NDArray[np.intp], Integers]:
    """Each link of each message's route: position of the message in the span, and link; by message."""
    host = network.rank_host
    links = network.links[host[messages.source[span]], host[messages.destination[span]]]
    message, place = np.nonzero(links >= 0)
    return message, links[message, place].astype(np.int64)


def _link_loads(messages: Messages, span: slice, network: Network) -> Integers:
    """Step, link, transfers, blocks and senders of each loaded (step, link) of some whole steps, shape (5, entries)."""
    message, link = crossings(messages, span, network)
    # Ranks are counted host by host, so that one sort brings a link's senders together by host and rank.
    by_host = np.argsort(network.rank_host, kind="stable")
    place = np.empty_like(by_host)
    place[by_host] = np.arange(len(by_host))
    cell = messages.step[span][message] * len(network.capacity) + link
    key = cell * len(place) + place[messages.source[span]][message]
    order = np.argsort(key)
    cell, key = cell[order], key[order]
    first = run_starts(cell)
    if not len(first):
        return np.empty((5, 0), dtype=np.int64)
    blocks = np.add.reduceat(messages.blocks[span][message[order]], first)
    rank_first = run_starts(key)
    host = network.rank_host[by_host][key[rank_first] % len(place)]
    host_first = run_starts(cell[rank_first] * network.num_hosts + host)
    ranks = np.diff(host_first, append=len(host))
    senders = np.maximum.reduceat(ranks, run_starts(cell[rank_first][host_first]))
    step, link = np.divmod(cell[first], len(network.capacity))
    return np.stack((step, link, np.diff(first, append=len(cell)), blocks, senders))


def _traffic(messages: Messages, network: Network, block_bytes: int) -> Integers:
    """Messages and bytes from host to host, shape (2, n, n)."""
    pair = network.rank_host[messages.source], network.rank_host[messages.destination]
    traffic = np.zeros((2, network.num_hosts, network.num_hosts), dtype=np.int64)
    np.add.at(traffic[0], pair, 1)
    np.add.at(traffic[1], pair, messages.blocks * block_bytes)
    return traffic


def _totals(traffic: Integers, distance: Integers, size: int) -> Integers:
    """Traffic summed over the host pairs of each distance, shape (size,)."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, distance, traffic)
    return total


def _levels(network: Network) -> Integers:
    """Level of each pair of hosts, shape (n, n): 0 one host, 1 one leaf switch, one more for each border between."""
    level = np.ones(network.hops.shape, dtype=np.int64)
    for cluster in network.clusters:
        level += cluster[:, None] != cluster[None, :]
    np.fill_diagonal(level, 0)
    return level


def _idle_ranks(messages: Messages, schedule: Schedule) -> Integers:
    """Ranks without a message in each step, shape (steps,)."""
    ends = np.concatenate((messages.source, messages.destination))
    busy = distinct(np.tile(messages.step, 2) * schedule.size + ends) // schedule.size
    return schedule.size - np.bincount(busy, minlength=schedule.num_steps).astype(np.int64)
