"""What a schedule costs: the hierarchical alpha-beta model with contention, its calibration and its closed forms."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..schedule import Schedule
from .bounds import between, link_loads
from .loads import Messages, check_routes, merged, messages_of, run_starts

__all__ = [
    "Cost",
    "Model",
    "binomial_gather_bound",
    "cost",
    "topology_aware_gather_bound",
    "topology_aware_gather_gain",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Subramoni 2013, table 1.1: latency in seconds by switches crossed, and the link's rate in bytes/s.
_TABLE = {
    "ranger": ({0: 0.46e-6, 1: 1.57e-6, 3: 2.45e-6, 5: 2.85e-6}, 8e9 / 8),
    "stampede": ({0: 0.19e-6, 1: 1.07e-6, 3: 1.76e-6, 5: 2.54e-6}, 54e9 / 8),
}


MOST = 1 << 17  # messages of a series of steps that are looked at: some 0.1 s
DENSE = 1 << 20  # entries of a table that may stay empty before its keys are sorted instead


@dataclass(frozen=True)
class Model:
    """Start-up and per-byte cost of a message by distance: the levels of Subramoni 2013, section 3.

    :param hops: switches crossed at each level, ascending, 0 inside a host.
    :param t_s: seconds to start a message at each level.
    :param t_w: seconds a byte, between hosts that have the network's fastest links and share none of them.
    :raises ValueError: if the levels are none, not ascending, of different number, or a cost is negative.
    """

    hops: tuple[int, ...]
    t_s: tuple[float, ...]
    t_w: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.hops or not len(self.hops) == len(self.t_s) == len(self.t_w):
            raise ValueError("expecting t_s and t_w of each level, and at least one level")
        if min(self.hops) < 0 or (np.diff(self.hops) <= 0).any():
            raise ValueError(f"expecting levels of ascending hops, got {self.hops}")
        if not all(0 <= value < float("inf") for value in (*self.t_s, *self.t_w)):
            raise ValueError(f"expecting costs of at least 0 seconds, got t_s {self.t_s} and t_w {self.t_w}")

    @classmethod
    def preset(cls, name: str) -> Model:
        """A system of table 1.1 of the source: ``ranger`` or ``stampede``.

        The table has no cost of bytes by distance: it is that of the link everywhere, inside a host too.

        :raises ValueError: for another name.
        """
        if name not in _TABLE:
            raise ValueError(f"expecting one of {', '.join(_TABLE)}, got {name!r}")
        latency, rate = _TABLE[name]
        return cls(tuple(latency), tuple(latency.values()), (1 / rate,) * len(latency))

    @classmethod
    def from_measured(cls, source: str | Path | Mapping[str, Any]) -> Model:
        """A model from measurements: ``{"levels": {"0": {"t_s": seconds, "t_w": seconds a byte}, "1": ...}}``.

        :param source: the mapping, or a JSON file that holds it; levels are named by their hops.
        :raises ValueError: saying which level or field is not as wanted.
        """
        place = "model" if isinstance(source, Mapping) else str(source)
        try:
            data = source if isinstance(source, Mapping) else json.loads(Path(source).read_text(encoding="utf-8"))
            levels = sorted((int(hops), level) for hops, level in data["levels"].items())
            hops, costs = [hop for hop, _ in levels], [level for _, level in levels]
            columns = [tuple(float(level[name]) for level in costs) for name in ("t_s", "t_w")]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            wanted = '{"levels": {"HOPS": {"t_s": seconds, "t_w": seconds a byte}, ...}}'
            raise ValueError(f"{place}: expecting {wanted}, got {type(error).__name__}: {error}") from error
        return cls(tuple(hops), *columns)

    @classmethod
    def fit(cls, samples: Iterable[tuple[int, float, float]]) -> Model:
        """The model that fits measured messages best, with no negative cost.

        Least squares of the relative error, level by level: large messages would else decide the start-up alone.

        :param samples: rows of hops, bytes, seconds (above 0).
        :raises ValueError: without samples, or for a time that is not above 0.
        """
        from scipy.optimize import nnls  # here, for its import takes longer than all else of this package

        table = np.array(list(samples), dtype=np.float64).reshape(-1, 3)
        if not len(table) or not (table[:, 2] > 0).all():
            raise ValueError("expecting samples of hops, bytes and seconds above 0")
        hops = np.unique(table[:, 0]).astype(int)
        costs = []
        for level in hops:
            size, seconds = table[table[:, 0] == level, 1:].T
            unit = max(size.max(), 1.0)
            terms = np.stack((np.ones_like(size), size / unit), axis=1) / seconds[:, None]
            solution, _ = nnls(terms, np.ones_like(size))
            costs.append((float(solution[0]), float(solution[1] / unit)))
        t_s, t_w = zip(*costs, strict=True)
        return cls(tuple(hops.tolist()), t_s, t_w)

    def as_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """What ``from_measured`` reads."""
        levels = zip(self.hops, self.t_s, self.t_w, strict=True)
        return {"levels": {str(hops): {"t_s": t_s, "t_w": t_w} for hops, t_s, t_w in levels}}

    def by_hops(self, most: int) -> tuple[Floats, Floats]:
        """Start-up and per-byte cost for 0 to ``most`` hops, each of shape (most + 1,).

        Linear between levels and, with the slope of the last two levels between hosts, beyond them, where cost never
        falls; below the first level it is the first's.
        """
        hops = np.arange(most + 1)
        outside = [level for level in range(len(self.hops)) if self.hops[level] > 0][-2:]
        tables = []
        for values in (self.t_s, self.t_w):
            table = np.interp(hops, self.hops, values)
            if len(outside) == 2:
                near, far = outside
                slope = (values[far] - values[near]) / (self.hops[far] - self.hops[near])
                table += max(slope, 0.0) * np.maximum(hops - self.hops[far], 0)
            tables.append(table)
        return tables[0], tables[1]


@dataclass(frozen=True, eq=False)
class Cost:
    """How long a schedule takes, by a model.

    :param seconds: until the last rank is complete, and not less than ``link_seconds``.
    :param link_seconds: what the busiest link needs for all that crosses it in the whole schedule.
    :param rank_seconds: until each rank is complete by its own steps, shape (p,).
    :param finish: until the last rank of all steps so far is complete, shape (steps,).
    :param contention: the largest factor by which a shared link prolongs a message in each step, shape (steps,).
    """

    seconds: float
    link_seconds: float
    rank_seconds: Floats
    finish: Floats
    contention: Floats

    @property
    def critical_rank(self) -> int:
        """The rank that is complete last, the lowest among equals."""
        return int(self.rank_seconds.argmax())

    @property
    def step_seconds(self) -> Floats:
        """What each step adds to the time, shape (steps,)."""
        return np.diff(self.finish, prepend=0.0)


def cost(schedule: Schedule, network: Network, model: Model, block_bytes: int = 1, *, most: int = MOST) -> Cost:
    """The time of a schedule on a network: the source's model with every step's own contention.

    A message of b bytes over h hops starts when both its ranks have completed their earlier steps, and takes
    ``t_s[h] * k + b * t_w[h] * c``. k is the number of messages that its sender sends, or its receiver receives, in
    the step, if that is more: a rank starts them one after the other. The contention c is the busiest link of the
    route in this step: the transfers on it, over its capacity relative to the network's fastest host link, never below
    1. Several messages of a rank, or of ranks of one host, so share the host's link; inside a host c is k. Fair sharing
    ends a message after all bytes of its link at the latest, so small neighbours count by their bytes.

    Contention is that of one step; ranks that are in different steps seem not to meet on a link. So the time is never
    below what the busiest link needs for all that crosses it: the sum of ``b * t_w[h]`` over its relative capacity.

    Local moves cost nothing, and steps that a schedule declares independent are costed one after the other.

    Rings and alltoalls with a message for each pair are long series of steps. Beyond ``most`` messages only some of
    these steps are costed, each of which stands for the steps around it. In a ring with equal shares all
    steps are equal, and ``seconds`` is exact unless ranks enter the ring at different times. In an alltoall
    ``link_seconds`` is exact, from what each pair of hosts exchanges, and ``seconds`` an estimate: with 16 to 128 of
    1,024 steps it was within 9 % of the cost of all, in three placements on three fat trees.
    ``finish`` and ``contention`` are interpolated.

    :param schedule: the schedule.
    :param network: on which it runs.
    :param model: seconds of start-ups and bytes by hops.
    :param block_bytes: bytes of one block.
    :param most: messages of a series at which some of its steps stand for all.
    :raises ValueError: if the network has another number of ranks, or no route that the schedule needs.
    Cost: a sort of the messages looked at, times the links of a route; one array operation for each of their steps.
    """
    messages, series = _looked_at(schedule, most)
    check_routes(messages, schedule, network)
    hops = network.hops[network.rank_host[messages.source], network.rank_host[messages.destination]]
    t_s, t_w = model.by_hops(int(network.hops.max(initial=0)))
    ports = _ports(messages, schedule.size)
    nbytes = messages.blocks * block_bytes * t_w[hops]
    contention, busy = _on_links(messages, nbytes * series.weight[messages.step], network)
    if series.partial and schedule.collective == "alltoall":
        share = schedule.blocks if schedule.counts is None else schedule.counts
        traffic = between(share, network.rank_host, network.num_hosts)
        busy = link_loads(network, traffic * block_bytes * t_w[np.maximum(network.hops, 0)])
    on_link = float((busy * _fastest_host_link(network) / network.capacity).max(initial=0.0))
    duration = t_s[hops] * ports + nbytes * np.where(hops, contention, ports)
    return _run(messages, schedule, duration, contention, on_link, series)


def binomial_gather_bound(
    t_s: float, t_w: float, exchanges: float, nbytes: float, *, delta: float = 1.0, contention: float = 1.0
) -> float:
    """Seconds that a binomial gather which ignores the switches takes at least (Subramoni 2013, section 3).

    ``T >= alpha (t_s C3 + N t_w C3 delta)``, with the costs of messages between switches.

    :param t_s: seconds to start a message between switches.
    :param t_w: seconds a byte between switches.
    :param exchanges: C3, exchanges between switches on the critical path; at worst the number of leaf switches.
    :param nbytes: N, bytes of one process.
    :param delta: how many processes' data one exchange carries; the source leaves it open.
    :param contention: alpha, at least 1.
    """
    return contention * (t_s * exchanges + nbytes * t_w * exchanges * delta)


def topology_aware_gather_bound(t_s: float, t_w: float, racks: int, nbytes: float, *, contention: float = 1.0) -> float:
    """Seconds that a gather over leaf switches' leaders takes at least (Subramoni 2013, section 3).

    ``T >= alpha (t_s log2 R + M t_w (1 - 1/R))``, with the costs of messages between switches.

    :param t_s: seconds to start a message between switches.
    :param t_w: seconds a byte between switches.
    :param racks: R, leaf switches.
    :param nbytes: M, aggregate bytes that the last leader gathers.
    :param contention: alpha, at least 1.
    """
    return contention * (t_s * log2(racks) + nbytes * t_w * (1 - 1 / racks))


def topology_aware_gather_gain(racks: int) -> float:
    """R / log2 R, how much less start-up the topology-aware gather has where the blind one crosses switches R times.

    :raises ValueError: below two leaf switches.
    """
    if racks < 2:
        raise ValueError(f"expecting at least two leaf switches, got {racks}")
    return racks / log2(racks)


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
    if schedule.phases is None:
        return messages_of(schedule), series
    phases = [(start, phase) for start, phase in schedule.phases if not phase.local]
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


def _numbered(key: Integers, size: int) -> tuple[Integers, int]:
    """Keys below ``size`` as numbers with few gaps, and a bound on these."""
    if size <= DENSE + 4 * len(key):
        return key, size
    values, number = np.unique(key, return_inverse=True)
    return number, len(values)


def _steps_of(messages: Messages) -> tuple[Integers, int]:
    """Number of each message's step among those that have messages, and how many there are."""
    first = run_starts(messages.step)
    return np.repeat(np.arange(len(first)), np.diff(np.append(first, len(messages)))), len(first)


def _ports(messages: Messages, size: int) -> Integers:
    """Messages of one step that go out of a message's sender or into its receiver, whichever are more."""
    most = np.ones(len(messages), dtype=np.int64)
    step, steps = _steps_of(messages)
    for rank in (messages.source, messages.destination):
        number, bound = _numbered(step * size + rank, steps * size)
        np.maximum(most, np.bincount(number, minlength=bound)[number], out=most)
    return most


def _on_links(messages: Messages, seconds: Floats, network: Network) -> tuple[Floats, Floats]:
    """Load of the busiest link of each message's route, shape (messages,), and the time of each link, shape (links,).

    The load is relative to the link's capacity and at least 1. The time is what a link needs if each message takes it
    for so many seconds at a host link's rate.
    """
    busy, relative = np.zeros(len(network.capacity)), _fastest_host_link(network) / network.capacity
    contention = np.ones(len(messages))
    steps, _ = _steps_of(messages)
    source, destination = (network.rank_host[rank] for rank in (messages.source, messages.destination))
    for span in messages.chunks():
        # Neighbouring messages that the network does not distinguish count as one.
        step, blocks = steps[span], messages.blocks[span]
        if not len(step):
            continue
        changes = (np.diff(column[span]) != 0 for column in (steps, source, destination, messages.blocks))
        runs = np.flatnonzero(np.append(True, np.any(list(changes), axis=0)))
        many = np.diff(np.append(runs, len(step)))
        routes = network.links[source[span][runs], destination[span][runs]]
        run, place = np.nonzero(routes >= 0)
        if not len(run):
            continue
        link = routes[run, place].astype(np.int64)
        cell = (step[runs] - step[0])[run] * len(busy) + link
        number, bound = _numbered(cell, int(step[-1] - step[0] + 1) * len(busy))
        transfers = np.bincount(number, weights=many[run], minlength=bound)[number]
        total = np.bincount(number, weights=(many * blocks[runs])[run], minlength=bound)[number]
        sharing = np.minimum(transfers, total / np.maximum(blocks[runs][run], 1)) * relative[link]
        first = run_starts(run)
        most = np.ones(len(runs))
        most[run[first]] = np.maximum(np.maximum.reduceat(sharing, first), 1)
        contention[span] = np.repeat(most, many)
        busy += np.bincount(link, weights=np.add.reduceat(seconds[span], runs)[run], minlength=len(busy))
    return contention, busy


def _fastest_host_link(network: Network) -> float:
    """Capacity of the fastest link by which a host enters the fabric."""
    first = network.links[:, :, :1]
    return float(network.capacity[first[first >= 0]].max(initial=0.0))


def _run(
    messages: Messages, schedule: Schedule, duration: Floats, contention: Floats, on_link: float, series: _Series
) -> Cost:
    """The clocks of all ranks, step by step."""
    clock, now = np.zeros(schedule.size), 0.0
    finish, largest = np.zeros(schedule.num_steps), np.zeros(schedule.num_steps)
    bounds = [*run_starts(messages.step).tolist(), len(messages)]
    for begin, end in itertools.pairwise(bounds):
        step, span = int(messages.step[begin]), slice(begin, end)
        source, destination = messages.source[span], messages.destination[span]
        done = np.maximum(clock[source], clock[destination]) + duration[span] * series.weight[step]
        np.maximum.at(clock, source, done)
        np.maximum.at(clock, destination, done)
        now = max(now, float(done.max()))
        finish[step], largest[step] = now, contention[span].max()
    looked = np.flatnonzero(series.weight)
    finish = np.maximum.accumulate(finish[looked])
    ends = series.last[looked]
    times = np.interp(np.arange(schedule.num_steps), np.append(-1, ends), np.append(0.0, finish))
    largest = largest[looked][np.searchsorted(ends, np.arange(schedule.num_steps))]
    return Cost(max(float(clock.max()), on_link), on_link, clock, times, largest)
