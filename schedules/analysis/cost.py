"""The prediction of a schedule's time by clocks of ranks and links, which advance through its steps."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..phases import Given
from ..schedule import REDUCE, Schedule
from .bounds import between
from .loads import MOST_HOSTS, ScheduleMessages, check_routes, crossings, merged, messages_of, run_starts
from .model import Model

__all__ = ["Cost", "cost"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Most messages of a long series of steps that are all evaluated, which takes about 0.1 s. If there are more, some steps
# stand for the others.
MOST = 1 << 17
# Most parts of messages that are evaluated one by one, because each part of a step is evaluated as a further step.
MOST_CUT = 1 << 15


@dataclass(frozen=True, eq=False)
class Cost:
    """The predicted time of a schedule.

    :param seconds: time until the last rank is complete, at least ``link_seconds``.
    :param link_seconds: time that the busiest link needs for the bytes of the whole schedule, except for the first
        bytes, which an idle link passes in no time (`Model.burst`).
    :param rank_seconds: time until each rank is complete, shape (p,), in seconds.
    :param finish: time until all ranks have completed each step and all steps before it, shape (steps,), in seconds.
    """

    seconds: float
    link_seconds: float
    rank_seconds: Floats
    finish: Floats

    def __repr__(self) -> str:
        return f"Cost({self.seconds:.4g} s, busiest link {self.link_seconds:.4g} s, {len(self.rank_seconds):,} ranks)"

    @property
    def step_seconds(self) -> Floats:
        """The time in seconds by which each step delays the end of all steps up to it, shape (steps,)."""
        return np.diff(self.finish, prepend=0.0)


def cost(
    schedule: Schedule, network: Network, model: Model, block_bytes: float = 1, *, slices: int = 1, most: int = MOST
) -> Cost:
    """Predict the time of a schedule on a network with the model of Subramoni 2013, and a clock for each rank and link.

    A rank enters a step when its previous step is complete or, if steps overlap (``Schedule.window``, ``slices``), when
    its last step outside the window is. A message of b bytes over h hops starts when its sender enters the step and, if
    it is longer than ``model.rendezvous.above``, not before its receiver enters the step and the receiver's clearance
    arrives. Its start-up takes ``t_s[h] + (k - 1) t_o``, where k is the larger of the number of messages that its
    sender sends and the number that its receiver receives in the step. Its transfer takes ``b * t_w[h]`` on each link,
    times the ratio of the network's fastest host link to this link's rate. The messages of one step share a link
    fairly: with m messages on it, a message ends after m times its own bytes, or after the bytes of all m if they are
    fewer. The next step's messages on the link wait for these. ``model.burst`` bytes of a message pass in no time, as
    with a token bucket, which fills while the link idles. Inside a host, each of k messages of a rank takes k times as
    long. A receiver combines the vectors that have arrived one after the other, ``model.t_r`` per byte.

    The source has no clocks of links: it multiplies a step's time by the number of messages on the busiest link. We do
    the same within a step; the clocks carry the remaining work of one step over to the next if ranks have drifted
    apart.

    Local moves cost nothing. The result is at least the time that the busiest link needs for all its bytes.

    Rings, and alltoalls with one message per pair, are long series of steps. If they have more than ``most`` messages,
    only a sample of the steps is evaluated, and each of these represents the steps around it. In a ring with equal
    shares all steps are equal, so ``seconds`` is exact unless ranks enter the ring at different times. In an alltoall
    on up to 2,048 hosts ``link_seconds`` is exact, from the bytes of each pair of hosts, and ``seconds`` is an
    estimate. ``finish`` is interpolated.

    :param schedule: the schedule.
    :param network: network on which it runs.
    :param model: start-up and per-byte costs in seconds, by hops.
    :param block_bytes: bytes per block.
    :param slices: number of parts into which every message is cut; if steps depend on each other, a part depends on the
        same part of the step before.
    :param most: number of messages of a series above which only a sample of its steps is evaluated.
    :raises ValueError: if the network has another number of ranks, or lacks a route that the schedule needs.
    Cost: a sort of the evaluated messages, times the links of a route; some array operations per evaluated step.
    """
    messages, series = _looked_at(schedule, most)
    check_routes(messages, schedule, network)
    in_parts = slices > 1 and not series.partial and len(messages) * slices <= MOST_CUT
    parts = slices if in_parts else 1
    window = (schedule.window if schedule.independent else 1) * parts
    hops = network.hops[network.rank_host[messages.source], network.rank_host[messages.destination]]
    loads = _Loads(messages, hops, series.weight[messages.step], block_bytes, slices, slices // parts)
    in_flight = min(window or schedule.num_steps * parts, schedule.num_steps * parts)
    clocks = _Clocks(network, model, schedule.size, window, in_flight)
    finish = _through_steps(clocks, loads, parts, schedule.num_steps, series)
    busy = clocks.busy
    if series.partial and schedule.collective == "alltoall" and network.num_hosts <= MOST_HOSTS:
        share = schedule.blocks if schedule.counts is None else schedule.counts
        traffic = between(share, network.rank_host, network.num_hosts)
        busy = network.loads(traffic * block_bytes * clocks.t_w[np.maximum(network.hops, 0)]) * clocks.relative
    on_link = float((busy - clocks.head[-1] * clocks.relative).max(initial=0.0))
    return Cost(max(float(clocks.last.max()), on_link), on_link, clocks.last, finish)


@dataclass(frozen=True, eq=False)
class _Loads:
    """The messages whose time is evaluated, one by one or as representatives of others.

    :param messages: the messages.
    :param hops: switches that each message crosses, shape (messages,).
    :param weight: number of steps that each message's step represents, shape (messages,).
    :param block_bytes: bytes per block.
    :param slices: number of parts into which a message is cut.
    :param unseen: number of parts of a message that are evaluated together as one; each of them has its own start-up.
    """

    messages: ScheduleMessages
    hops: NDArray[np.int16]
    weight: Integers
    block_bytes: float
    slices: int
    unseen: int


class _Clocks:
    """Ranks and links, each with the time until which it is busy.

    :param network: network of the ranks.
    :param model: start-up and per-byte costs.
    :param size: number of ranks.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    :param in_flight: the lesser of ``window`` and the number of steps; the number of steps if there is no limit.
    :ivar head: time in seconds by which a burst shortens a message on the fastest host link, by hops.
    :ivar last: time at which each rank completed its last step, shape (p,).
    :ivar busy: time in seconds that each link was busy, shape (links,).
    """

    def __init__(self, network: Network, model: Model, size: int, window: int, in_flight: int) -> None:
        self.network, self.model, self.window, self.in_flight = network, model, window, in_flight
        self.t_s, self.t_w = model.by_hops(int(network.hops.max(initial=0)))
        self.head = np.where(np.arange(len(self.t_w)), model.burst * self.t_w, 0.0)
        self.relative = _fastest_host_link(network) / network.capacity
        self._free, self.busy = np.zeros(len(network.capacity)), np.zeros(len(network.capacity))
        self._complete = np.zeros((size, max(window, 1)))  # completion times of each rank's last steps, a ring buffer
        self._steps = np.zeros(size, dtype=np.int64)
        self._ready, self._processor, self.last = np.zeros(size), np.zeros(size), np.zeros(size)

    def step(self, loads: _Loads, span: slice) -> float:
        """Advance the clocks by some messages of one step, and return the time at which the last of them arrives.

        :param loads: all messages that are evaluated.
        :param span: range of the messages of this step.
        """
        source, destination = loads.messages.source[span], loads.messages.destination[span]
        hops, weight = loads.hops[span], loads.weight[span]
        nbytes = loads.messages.blocks[span] * (loads.block_bytes / loads.slices)
        seconds = nbytes * loads.unseen * self.t_w[hops] * weight
        sends, receives = (np.bincount(one, minlength=len(self.last)) for one in (source, destination))
        ranks = np.flatnonzero(sends + receives)
        self._enter(ranks)
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
        arrived = through
        if self.model.t_r:
            combined = loads.messages.reduced[span] * (loads.block_bytes / loads.slices) * loads.unseen * weight
            arrived = through + self.model.t_r * np.bincount(destination, combined, len(self.last))[destination]
        self._leave(ranks, source, destination, arrived, np.where(asks, through, start + ports * each * weight))
        starts = each * loads.unseen * weight
        busy = np.maximum(*(np.bincount(one, starts, minlength=len(self.last)) for one in (source, destination)))
        self._processor[ranks] = np.maximum(self._processor, self._ready)[ranks] + busy[ranks]
        return float(arrived.max())

    def _enter(self, ranks: Integers) -> None:
        """Advance the ranks' clocks to the time at which they may enter their next step."""
        if self.window:
            place = self._steps[ranks] % self.window
            self._ready[ranks] = np.maximum(self._ready[ranks], self._complete[ranks, place])

    def _leave(self, ranks: Integers, source: Integers, destination: Integers, arrived: Floats, sent: Floats) -> None:
        """Set the ranks' clocks to the end of a step, when all that they send is sent and all they receive has arrived.

        :param ranks: ranks that take part in the step.
        :param source: sending rank of each message, shape (messages,).
        :param destination: receiving rank of each message, shape (messages,).
        :param arrived: time in seconds at which each message has arrived, shape (messages,).
        :param sent: time in seconds at which each message is sent, shape (messages,).
        """
        complete = self._ready.copy()
        np.maximum.at(complete, source, sent)
        np.maximum.at(complete, destination, arrived)
        if self.window:
            self._complete[ranks, self._steps[ranks] % self.window] = complete[ranks]
            self._steps[ranks] += 1
        self.last[ranks] = np.maximum(self.last[ranks], complete[ranks])

    def _word(self, source: Integers, destination: Integers, seconds: Floats) -> Floats:
        """The seconds that each message waits for its receiver's clearance to send, behind the receiver's own messages.

        The receiver is assumed to send, in each step that it has in flight, as much as in the present step.

        :param source: sending rank of each message, shape (messages,).
        :param destination: receiving rank of each message, shape (messages,).
        :param seconds: time of each message on the network's fastest link, shape (messages,).
        """
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
        self,
        messages: ScheduleMessages,
        span: slice,
        *,
        network_seconds: Floats,
        head: Floats,
        start: Floats,
        end: Floats,
    ) -> Floats:
        """The time at which each message has passed its links, at least ``end``; makes the links busy until then."""
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
    """Advance the clocks through all evaluated steps, part by part, and return the completion time of each step."""
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
    """The capacity of the fastest link from a host into the fabric."""
    if network.num_hosts > MOST_HOSTS:
        hosts = np.arange(network.num_hosts)
        first = network.routes(hosts, np.roll(hosts, 1))[:, :1]
    else:
        first = network.links[:, :, :1]
    return float(network.capacity[first[first >= 0]].max(initial=0.0))


@dataclass(frozen=True, eq=False)
class _Series:
    """The steps of a schedule that are evaluated, each of which represents a range of steps.

    :param weight: number of steps that each step represents, shape (steps,); 0 if it is not evaluated itself.
    :param last: last step of the range to which each step belongs, shape (steps,).
    """

    weight: Integers
    last: Integers

    @property
    def partial(self) -> bool:
        """Whether some steps are not evaluated."""
        return not self.weight.all()


def _looked_at(schedule: Schedule, most: int) -> tuple[ScheduleMessages, _Series]:
    """The messages of the evaluated steps, and the choice of these steps."""
    steps = np.arange(schedule.num_steps)
    series = _Series(np.ones_like(steps), steps)
    if schedule.phases is not None:
        phases = [(start, phase) for start, phase in schedule.phases if not phase.local]
    # A step takes 0.1 ms even with few messages, and a gather from 8,192 ranks has 8,191 steps.
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
            # Multiples of the golden ratio, so that the sampled steps do not coincide with a period of the schedule.
            place = np.arange(number) * 0.6180339887498949 % 1
            chosen = bounds[:-1] + (place * np.diff(bounds)).astype(np.int64)
            series.weight[start:end] = 0
            series.weight[start + chosen] = np.diff(bounds)
            series.last[start:end] = start + np.repeat(bounds[1:] - 1, np.diff(bounds))
            rows = phase.at(chosen)
        else:
            rows = phase.rows()
        some = rows[(rows[:, 1] != rows[:, 2]) | (rows[:, 8] == REDUCE)]
        some[:, 0] += start
        tables.append(some)
    step, source, destination, count, operation = np.concatenate(tables)[:, [0, 1, 2, 7, 8]].T
    return merged(step, source, destination, count, operation, size=schedule.size), series
