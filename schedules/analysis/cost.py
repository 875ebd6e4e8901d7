"""How long a schedule takes by a model: clocks of ranks and links that go through its steps."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..phases import Given
from ..schedule import Schedule
from .bounds import between
from .loads import Messages, check_routes, crossings, merged, messages_of, run_starts
from .model import Model

__all__ = ["Cost", "cost"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST = 1 << 17  # messages of a series of steps that are looked at: some 0.1 s
MOST_CUT = 1 << 15  # messages that are cut one by one: each part is a step of its own


@dataclass(frozen=True, eq=False)
class Cost:
    """How long a schedule takes, by a model.

    :param seconds: until the last rank is complete, and not less than ``link_seconds``.
    :param link_seconds: what the busiest link needs for all that crosses it in the whole schedule, less its burst.
    :param rank_seconds: until each rank is complete, shape (p,).
    :param finish: until the last rank of all steps so far is complete, shape (steps,).
    """

    seconds: float
    link_seconds: float
    rank_seconds: Floats
    finish: Floats

    def __repr__(self) -> str:
        return f"Cost({self.seconds:.4g} s, busiest link {self.link_seconds:.4g} s, {len(self.rank_seconds):,} ranks)"

    @property
    def critical_rank(self) -> int:
        """The rank that is complete last, the lowest among equals."""
        return int(self.rank_seconds.argmax())

    @property
    def step_seconds(self) -> Floats:
        """What each step adds to the time, shape (steps,)."""
        return np.diff(self.finish, prepend=0.0)


def cost(
    schedule: Schedule, network: Network, model: Model, block_bytes: int = 1, *, lanes: int = 1, most: int = MOST
) -> Cost:
    """The time of a schedule on a network: the source's model, with a clock for each rank and each link.

    A rank enters a step when its step before is complete or, where steps overlap (``Schedule.window``, ``lanes``), its
    last step outside the window. A message of b bytes over h hops starts when its sender enters the step and, if it is
    longer than ``model.rendezvous.above``, when its receiver does too and the receiver's word is through. It takes
    ``t_s[h] + (k - 1) t_o`` to start, where k is the number of messages that its sender sends, or its receiver
    receives, in the step, if that is more; and ``b * t_w[h]`` on each link, over the link's rate relative to the
    network's fastest host link. The messages of one step share a link fairly: a message ends after all bytes on its
    link at the latest, and after as many times its own bytes as there are messages. The next step's messages on the
    link wait for these. A message is through a link as much sooner as ``model.burst`` bytes take, but not before it
    starts: a token bucket, which fills while the link idles. Inside a host k messages of a rank take k times as long.

    The source has no clocks of links: it multiplies a step by the messages that share its busiest link. So do we within
    a step; the clocks carry over what one step leaves to the next, where ranks have drifted apart.

    Local moves cost nothing. The time is never below what the busiest link needs for all that crosses it.

    Rings and alltoalls with a message for each pair are long series of steps. Beyond ``most`` messages only some of
    these steps are costed, each of which stands for the steps around it. In a ring with equal shares all
    steps are equal, and ``seconds`` is exact unless ranks enter the ring at different times. In an alltoall
    ``link_seconds`` is exact, from what each pair of hosts exchanges, and ``seconds`` an estimate.
    ``finish`` is interpolated.

    :param schedule: the schedule.
    :param network: on which it runs.
    :param model: seconds of start-ups and bytes by hops.
    :param block_bytes: bytes of one block.
    :param lanes: parts into which every message is cut; where steps depend on each other a part depends on the same
        part of the step before.
    :param most: messages of a series at which some of its steps stand for all.
    :raises ValueError: if the network has another number of ranks, or no route that the schedule needs.
    Cost: a sort of the messages looked at, times the links of a route; some array operations for each of their steps.
    """
    messages, series = _looked_at(schedule, most)
    check_routes(messages, schedule, network)
    in_parts = lanes > 1 and not series.partial and len(messages) * lanes <= MOST_CUT
    parts = lanes if in_parts else 1
    window = (schedule.window if schedule.independent else 1) * parts
    hops = network.hops[network.rank_host[messages.source], network.rank_host[messages.destination]]
    loads = _Loads(messages, hops, series.weight[messages.step], block_bytes, lanes, lanes // parts)
    in_flight = min(window or schedule.num_steps * parts, schedule.num_steps * parts)
    clocks = _Clocks(network, model, schedule.size, window, in_flight)
    finish = _through_steps(clocks, loads, parts, schedule.num_steps, series)
    busy = clocks.busy
    if series.partial and schedule.collective == "alltoall":
        share = schedule.blocks if schedule.counts is None else schedule.counts
        traffic = between(share, network.rank_host, network.num_hosts)
        busy = network.loads(traffic * block_bytes * clocks.t_w[np.maximum(network.hops, 0)]) * clocks.relative
    on_link = float((busy - clocks.head[-1] * clocks.relative).max(initial=0.0))
    return Cost(max(float(clocks.last.max()), on_link), on_link, clocks.last, finish)


@dataclass(frozen=True, eq=False)
class _Loads:
    """The messages that are looked at, each as one of its parts.

    :param messages: the messages.
    :param hops: switches that each crosses, shape (messages,).
    :param weight: steps for which each message's step stands, shape (messages,).
    :param block_bytes: bytes of one block.
    :param lanes: parts into which a message is cut.
    :param unseen: parts that are one message here; each still takes a start.
    """

    messages: Messages
    hops: NDArray[np.int16]
    weight: Integers
    block_bytes: int
    lanes: int
    unseen: int


class _Clocks:
    """Ranks and links, each with the time until which it is busy.

    :param network: of the ranks.
    :param model: of costs.
    :param size: number of ranks.
    :param window: steps of a rank in flight at most; 0 for no bound.
    :param in_flight: steps of a rank in flight at most, of as many as there are.
    :ivar head: seconds that a burst spares a message on the fastest host link, by hops.
    :ivar last: when each rank was complete at last, shape (p,).
    :ivar busy: seconds that each link was busy, shape (links,).
    """

    def __init__(self, network: Network, model: Model, size: int, window: int, in_flight: int) -> None:
        self.network, self.model, self.window, self.in_flight = network, model, window, in_flight
        self.t_s, self.t_w = model.by_hops(int(network.hops.max(initial=0)))
        self.head = np.where(np.arange(len(self.t_w)), model.burst * self.t_w, 0.0)
        self.relative = _fastest_host_link(network) / network.capacity
        self._free, self.busy = np.zeros(len(network.capacity)), np.zeros(len(network.capacity))
        self._complete = np.zeros((size, max(window, 1)))  # of each rank's last steps, a ring
        self._steps = np.zeros(size, dtype=np.int64)
        self._ready, self._processor, self.last = np.zeros(size), np.zeros(size), np.zeros(size)

    def step(self, loads: _Loads, span: slice) -> float:
        """Take the ranks through a part of a step, and return when the last message of it is through."""
        source, destination = loads.messages.source[span], loads.messages.destination[span]
        hops, weight = loads.hops[span], loads.weight[span]
        nbytes = loads.messages.blocks[span] * (loads.block_bytes / loads.lanes)
        seconds = nbytes * loads.unseen * self.t_w[hops] * weight
        ranks = np.unique(np.concatenate((source, destination)))
        self._enter(ranks)
        sends, receives = (np.bincount(one, minlength=len(self.last)) for one in (source, destination))
        ports = np.maximum(sends[source], receives[destination]) * loads.unseen
        each = self.t_s[hops] if self.model.t_o is None else np.minimum(self.model.t_o, self.t_s[hops])
        starting = (self.t_s[hops] + (ports - 1) * each) * weight
        start = np.maximum(self._ready, self._processor)[source]
        asks = nbytes > self.model.rendezvous.above
        if asks.any():
            there = np.maximum(self._ready, self._processor)[destination]
            word = self._word(source, destination, seconds) if self.model.rendezvous.waits else 0.0
            start = np.where(asks, np.maximum(start, there) + word, start)
        inside = np.where(hops, 0.0, seconds * np.maximum(sends[source], receives[destination]))
        head = self.head[hops]
        through = self._on_links(
            loads.messages, span, network_seconds=seconds, head=head, start=start, end=start + inside
        )
        through = np.maximum(through, start + np.maximum(seconds - head, 0.0)) + starting
        self._leave(ranks, source, destination, through, np.where(asks, through, start + ports * each * weight))
        starts = each * loads.unseen * weight
        busy = np.maximum(*(np.bincount(one, starts, minlength=len(self.last)) for one in (source, destination)))
        self._processor[ranks] = np.maximum(self._processor, self._ready)[ranks] + busy[ranks]
        return float(through.max())

    def _enter(self, ranks: Integers) -> None:
        """Ranks enter a step of theirs."""
        if self.window:
            place = self._steps[ranks] % self.window
            self._ready[ranks] = np.maximum(self._ready[ranks], self._complete[ranks, place])

    def _leave(self, ranks: Integers, source: Integers, destination: Integers, arrived: Floats, sent: Floats) -> None:
        """Ranks are complete when what they send is sent and what they receive has arrived."""
        complete = self._ready.copy()
        np.maximum.at(complete, source, sent)
        np.maximum.at(complete, destination, arrived)
        if self.window:
            self._complete[ranks, self._steps[ranks] % self.window] = complete[ranks]
            self._steps[ranks] += 1
        self.last[ranks] = np.maximum(self.last[ranks], complete[ranks])

    def _word(self, source: Integers, destination: Integers, seconds: Floats) -> Floats:
        """How long the receivers' words wait behind what the receivers have in flight: as in this step in all."""
        size, rendezvous = len(self.last), self.model.rendezvous
        out = np.bincount(source, weights=seconds, minlength=size)[destination]
        key, back = source * size + destination, destination * size + source
        place = np.minimum(np.searchsorted(key, back), len(key) - 1)
        same = np.where(key[place] == back, seconds[place], 0.0)
        host = self.network.rank_host
        first = self.network.links[host[destination], host[source], 0] if self.network.links.shape[2] else None
        relative = 1.0 if first is None else np.where(first >= 0, self.relative[first], 0.0)
        behind = rendezvous.same * same + rendezvous.others * (out - same)
        return np.asarray(relative * self.in_flight * behind)

    def _on_links(
        self, messages: Messages, span: slice, *, network_seconds: Floats, head: Floats, start: Floats, end: Floats
    ) -> Floats:
        """When each message is through its links, and not before ``end``; the links are busy until they are through."""
        message, link = crossings(messages, span, self.network)
        if not len(link):
            return end
        number = len(self._free)
        load = np.bincount(link, weights=network_seconds[message], minlength=number)
        many = np.bincount(link, minlength=number)
        first = np.full(number, np.inf)
        np.minimum.at(first, link, start[message])
        begin = np.maximum(self._free, first)
        shared = np.minimum(load[link], many[link] * network_seconds[message]) - head[message]
        through = end.copy()
        np.maximum.at(through, message, np.maximum(begin[link], start[message]) + shared * self.relative[link])
        used = many > 0
        self._free[used] = (begin + load * self.relative)[used]
        self.busy += load * self.relative
        return through


def _through_steps(clocks: _Clocks, loads: _Loads, parts: int, steps: int, series: _Series) -> Floats:
    """Take the clocks through all steps that are looked at, part by part; when each step of all was complete."""
    finish, now = np.zeros(steps), 0.0
    bounds = [*run_starts(loads.messages.step).tolist(), len(loads.messages)]
    for begin, end in itertools.pairwise(bounds):
        for _ in range(parts):
            now = max(now, clocks.step(loads, slice(begin, end)))
        finish[loads.messages.step[begin]] = now
    looked = np.flatnonzero(series.weight)
    finish = np.maximum.accumulate(finish[looked])
    times: Floats = np.interp(np.arange(steps), np.append(-1, series.last[looked]), np.append(0.0, finish))
    return times


def _fastest_host_link(network: Network) -> float:
    """Capacity of the fastest link by which a host enters the fabric."""
    first = network.links[:, :, :1]
    return float(network.capacity[first[first >= 0]].max(initial=0.0))


@dataclass(frozen=True, eq=False)
class _Series:
    """Which steps are looked at, and for how many each of them stands.

    :param weight: steps for which each step stands, shape (steps,); 0 for those that another one stands for.
    :param last: the last of the steps for which the one that is looked at stands, by step, shape (steps,).
    """

    weight: Integers
    last: Integers

    @property
    def partial(self) -> bool:
        """Whether any step is left out."""
        return not self.weight.all()


def _looked_at(schedule: Schedule, most: int) -> tuple[Messages, _Series]:
    """The messages of the steps that are looked at."""
    steps = np.arange(schedule.num_steps)
    series = _Series(np.ones_like(steps), steps)
    if schedule.phases is not None:
        phases = [(start, phase) for start, phase in schedule.phases if not phase.local]
    # A step takes a tenth of a millisecond, however few its messages are: a gather from 8,192 ranks has 8,191.
    elif schedule.independent and schedule.counts is None and most // schedule.size < schedule.num_steps:
        phases = [(0, Given(schedule.num_steps, table=schedule.rows(), uniform=True))]
    else:
        return messages_of(schedule), series
    tables = [np.empty((0, 9), dtype=np.int64)]
    for start, phase in phases:
        end, number = start + phase.steps, max(most // schedule.size, 1)
        alone = sum(at < end and start < at + other.steps for at, other in phases) == 1
        if phase.uniform and alone and number < phase.steps:
            bounds = np.arange(number + 1) * phase.steps // number
            # Multiples of the golden ratio: so that no step is a multiple of what the schedule repeats after.
            place = np.arange(number) * 0.6180339887498949 % 1
            chosen = bounds[:-1] + (place * np.diff(bounds)).astype(np.int64)
            series.weight[start:end] = 0
            series.weight[start + chosen] = np.diff(bounds)
            series.last[start:end] = start + np.repeat(bounds[1:] - 1, np.diff(bounds))
            rows = phase.at(chosen)
        else:
            rows = phase.rows()
        sent = rows[rows[:, 1] != rows[:, 2]]
        sent[:, 0] += start
        tables.append(sent)
    sent = np.concatenate(tables)
    return merged(sent[:, 0], sent[:, 1], sent[:, 2], sent[:, 7], schedule.size), series
