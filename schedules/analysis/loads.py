"""The load that a schedule puts on a network: loads and conflicts of links by step, traffic by distance, idle ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..schedule import REDUCE, Schedule
from .bounds import Bound, distinct, link_width, lower_bound, min_steps, require_routes

__all__ = ["MOST_HOSTS", "Analysis", "ScheduleMessages", "analyse", "merged", "messages_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

CHUNK = 1 << 17  # messages whose routes are in memory at once
MOST_HOSTS = 2048  # hosts above which routes are followed as they are needed, because those of all pairs fill memory


@dataclass(frozen=True, eq=False)
class ScheduleMessages:
    """The messages of a schedule, sorted by step, source and destination.

    Transfers of one step between the same two ranks are one message (Bruck's scattered blocks travel together). Local
    moves are no messages.

    :param step: step of each message, shape (messages,).
    :param source: sending rank of each message, shape (messages,).
    :param destination: receiving rank of each message, shape (messages,).
    :param blocks: number of blocks of each message, shape (messages,).
    :param reduced: number of these blocks that the receiver combines with its own, shape (messages,).
    """

    step: Integers
    source: Integers
    destination: Integers
    blocks: Integers
    reduced: Integers

    def __len__(self) -> int:
        return len(self.step)

    def chunks(self, limit: int = CHUNK) -> Iterator[slice]:
        """Divide the messages into ranges of whole steps, of about ``limit`` messages each, as Python slices."""
        ends = np.append(np.flatnonzero(np.diff(self.step)) + 1, len(self.step))
        ends = ends[np.append(np.diff(ends // limit) > 0, True)]
        return (slice(int(begin), int(end)) for begin, end in zip(np.append(0, ends[:-1]), ends, strict=True))


def messages_of(schedule: Schedule) -> ScheduleMessages:
    """The messages of a schedule. Cost: a sort of its rows."""
    columns = (schedule.step, schedule.source, schedule.destination, schedule.count, schedule.operation)
    return merged(*(column.astype(np.int64) for column in columns), size=schedule.size)


def merged(
    step: Integers, source: Integers, destination: Integers, count: Integers, operation: Integers, *, size: int
) -> ScheduleMessages:
    """Merge the transfers that have equal step, source and destination to one message each.

    Transfers may be in any order. A local move is no message; if it combines blocks, these count for the last message
    that its rank has received before.

    :param step: step of each transfer, shape (transfers,).
    :param source: sending rank of each transfer, shape (transfers,).
    :param destination: receiving rank of each transfer, shape (transfers,).
    :param count: number of blocks of each transfer, shape (transfers,).
    :param operation: ``COPY`` or ``REDUCE`` of each transfer, shape (transfers,).
    :param size: number of ranks, p.
    """
    sent = source != destination
    later = ~sent & (operation == REDUCE)
    key = (step[sent] * size + source[sent]) * size + destination[sent]
    order = np.argsort(key, kind="stable")
    first = run_starts(key[order])
    moved = count[sent][order]
    parts = (moved, np.where(operation[sent][order] == REDUCE, moved, 0))
    blocks, reduced = (np.add.reduceat(one, first) if len(one) else one for one in parts)
    one = order[first]
    found = ScheduleMessages(step[sent][one], source[sent][one], destination[sent][one], blocks, reduced)
    if later.any() and len(found):
        _combine_later(found, step[later], source[later], count[later])
    return found


def _combine_later(messages: ScheduleMessages, step: Integers, rank: Integers, count: Integers) -> None:
    """Add blocks that ranks combine after a message to those that are combined as the message arrives.

    :param messages: the messages.
    :param step: step of each local move that combines blocks, shape (moves,).
    :param rank: rank of each move, shape (moves,).
    :param count: number of blocks of each move, shape (moves,).
    """
    steps = max(int(messages.step[-1]), int(step.max())) + 1
    received = messages.destination * steps + messages.step
    order = np.argsort(received, kind="stable")
    place = order[np.maximum(np.searchsorted(received[order], rank * steps + step) - 1, 0)]
    before = (messages.destination[place] == rank) & (messages.step[place] < step)
    np.add.at(messages.reduced, place[before], count[before])


@dataclass(frozen=True, eq=False)
class Analysis:
    """Loads, conflicts, idle ranks, traffic by distance, and bounds of one schedule on one network.

    These columns have one entry for each step and link with a message, sorted by step, then link:

    :param step: step of each entry, shape (entries,).
    :param link: number of the link, shape (entries,).
    :param transfers: number of messages on the link in the step, shape (entries,).
    :param bytes: bytes on the link in the step, shape (entries,).
    :param senders: number of ranks that send over the link in the step, on the host with most of them, shape
        (entries,).

    The others describe the whole schedule:

    :param network: the network.
    :param width: number of transfers that fit into each link at full rate, shape (links,), see ``link_width``.
    :param num_steps: number of steps.
    :param active_steps: number of steps with messages; each costs one start-up.
    :param idle_ranks: number of ranks without a message in each step, shape (steps,).
    :param messages_by_hops: number of messages by switches crossed, 0 inside a host, shape (most hops + 1,).
    :param bytes_by_hops: bytes by switches crossed, shape (most hops + 1,).
    :param bound: lower bounds on the time of the collective with any schedule.
    :param min_steps: lower bound on the steps of an alltoall without conflicts, see ``min_steps``; else 0.
    :param alpha: start-up time of a message in seconds.
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
    bound: Bound
    min_steps: int
    alpha: float

    def __repr__(self) -> str:
        messages = int(self.messages_by_hops.sum())
        return f"Analysis({messages:,} messages in {self.active_steps:,} steps, {self.conflicts.sum():,} conflicts)"

    def summary(self) -> str:
        """Describe the analysis in lines: messages, bytes by distance, conflicts, the busiest link, time and bound."""
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
    def conflicts(self) -> Integers:
        """The number of messages on each link in each step beyond those that it may carry, shape (entries,).

        A link may carry its width times ``senders``: the ranks of one host share their host's link with any schedule,
        so their simultaneous messages count as no conflict there, nor on any later link.
        """
        return np.maximum(self.transfers - self.width[self.link] * self.senders, 0)

    @cached_property
    def conflicts_of_step(self) -> Integers:
        """The number of conflicts (see `conflicts`) on all links together in each step, shape (steps,)."""
        total = np.zeros(self.num_steps, dtype=np.int64)
        np.add.at(total, self.step, self.conflicts)
        return total

    @cached_property
    def busiest_link(self) -> Integers:
        """The link of each step that needs the most time for its bytes, shape (steps,).

        Among equals it is the lowest link; -1 if no link is loaded.
        """
        busiest = np.full(self.num_steps, -1, dtype=np.int64)
        # If indices repeat, the last assignment remains: the most loaded link, and among equals the lowest.
        order = np.lexsort((-self.link, self._seconds))
        busiest[self.step[order]] = self.link[order]
        return busiest

    @cached_property
    def busiest_seconds(self) -> Floats:
        """The bytes of the busiest link over its capacity, in seconds, in each step, shape (steps,)."""
        busiest = np.zeros(self.num_steps)
        np.maximum.at(busiest, self.step, self._seconds)
        return busiest

    @property
    def seconds(self) -> float:
        """The sum over steps of the busiest link's time, and a start-up per step with messages; at least ``bound``."""
        return float(self.busiest_seconds.sum()) + self.alpha * self.active_steps

    @property
    def ratio(self) -> float:
        """The quotient of ``seconds`` and the bound; NaN if the bound is 0, as inside one host."""
        return self.seconds / self.bound.seconds if self.bound.seconds else float("nan")

    @cached_property
    def _seconds(self) -> Floats:
        return self.bytes / self.network.capacity[self.link]


def analyse(schedule: Schedule, network: Network, block_bytes: int = 1, *, alpha: float = 0.0) -> Analysis:
    """Analyse a schedule on a network: loads, conflicts, idle ranks, traffic by distance, and bounds.

    :param schedule: the schedule.
    :param network: network on which it runs.
    :param block_bytes: bytes per block.
    :param alpha: start-up time of a message in seconds, for the bounds; 0 to count bytes only.
    :raises ValueError: if the network has another number of ranks, or lacks a route that the schedule needs.

    Cost: a sort of (rows x links of a route) entries; memory for the routes of about 2^17 messages, or of one step.
    """
    messages = messages_of(schedule)
    check_routes(messages, schedule, network)
    traffic = _traffic(messages, network, block_bytes)
    hops = np.maximum(network.hops, 0).astype(np.int64)
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
        bound=lower_bound(
            network, schedule.collective, share, root=schedule.root, block_bytes=block_bytes, alpha=alpha
        ),
        min_steps=min_steps(network) if schedule.collective == "alltoall" and schedule.counts is None else 0,
        alpha=alpha,
    )


def check_routes(messages: ScheduleMessages, schedule: Schedule, network: Network) -> None:
    """Raise ValueError if the network has another number of ranks than the schedule, or lacks a message's route."""
    if schedule.size != network.num_ranks:
        raise ValueError(f"expecting a network of {schedule.size} ranks, got {network.num_ranks}")
    require_routes(network, network.rank_host[messages.source], network.rank_host[messages.destination])


def run_starts(ascending: NDArray[np.integer]) -> NDArray[np.intp]:
    """The index at which each run of equal values begins."""
    if not len(ascending):
        return np.empty(0, dtype=np.intp)
    return np.concatenate(([0], np.flatnonzero(np.diff(ascending)) + 1))


def crossings(messages: ScheduleMessages, span: slice, network: Network) -> tuple[NDArray[np.intp], Integers]:
    """The links on the routes of some messages: index of the message in the span, and link, two arrays by message."""
    host = network.rank_host
    pair = host[messages.source[span]], host[messages.destination[span]]
    links = network.links[pair] if network.num_hosts <= MOST_HOSTS else network.routes(*pair)
    message, place = np.nonzero(links >= 0)
    return message, links[message, place].astype(np.int64)


def _link_loads(messages: ScheduleMessages, span: slice, network: Network) -> Integers:
    """The step, link, transfers, blocks and senders of each loaded link of each step in a span, shape (5, entries)."""
    message, link = crossings(messages, span, network)
    # Ranks are renumbered host by host, so that one sort groups a link's senders by host and rank.
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


def _traffic(messages: ScheduleMessages, network: Network, block_bytes: int) -> Integers:
    """The number of messages and of bytes from host to host, shape (2, n, n)."""
    pair = network.rank_host[messages.source], network.rank_host[messages.destination]
    traffic = np.zeros((2, network.num_hosts, network.num_hosts), dtype=np.int64)
    np.add.at(traffic[0], pair, 1)
    np.add.at(traffic[1], pair, messages.blocks * block_bytes)
    return traffic


def _totals(traffic: Integers, distance: Integers, size: int) -> Integers:
    """The sum of traffic over the host pairs of each distance, shape (size,)."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, distance, traffic)
    return total


def _idle_ranks(messages: ScheduleMessages, schedule: Schedule) -> Integers:
    """The number of ranks without a message in each step, shape (steps,)."""
    ends = np.concatenate((messages.source, messages.destination))
    busy = distinct(np.tile(messages.step, 2) * schedule.size + ends) // schedule.size
    return schedule.size - np.bincount(busy, minlength=schedule.num_steps).astype(np.int64)
