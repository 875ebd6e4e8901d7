"""A deterministic model of jobs with phases on one node, which writes records of a shutter with known truth.

A job repeats its phases. In a phase it progresses at a solo rate; partners slow it to ``1 - sensitivity x (sum of the
partners' aggressiveness)``. Independent nodes run side by side in arrays, and their records follow each other in one
log. What neighbours take from a job's caches comes back after their stop with a time constant, and is lost at their
return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.estimates.records import Records

__all__ = ["Phase", "Shutter", "Simulated", "simulate"]

SLOWEST = 0.05  # least speed beside others, of the speed alone
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Phase:
    """A part of a job's cycle.

    :param seconds: length alone.
    :param rate: progress per second alone.
    :param sensitivity: share of the speed lost per unit of the partners' aggressiveness.
    :param aggressiveness: load on what the jobs share, 0 to 1.
    """

    seconds: float
    rate: float = 1.0
    sensitivity: float = 0.0
    aggressiveness: float = 0.0


@dataclass(frozen=True)
class Shutter:
    """The rhythm of the shutter.

    :param region: seconds of each of the three regions (K S).
    :param windows: number of windows that divide a region (K).
    :param pause: mean seconds between shutters (P).
    :param jitter: largest deviation of a pause from the mean, of the mean. Equal pauses fall into step with periodic
        jobs, because each shutter sets the phases of the jobs back in the same way; the sample is then not uniform.
    :param long_every: each how many shutters of a job one is long; 0 for none.
    :param warm: seconds by which a long shutter is longer.
    :param poisson: whether pauses are exponentially distributed, in place of ``jitter``. Only then do shutters sample
        the time uniformly if jobs fall in step with each other and each shutter disturbs this.
    """

    region: float = 0.0032
    windows: int = 10
    pause: float = 0.2
    jitter: float = 0.25
    poisson: bool = False
    long_every: int = 0
    warm: float = 0.04

    def drawn(self, rng: np.random.Generator, nodes: int) -> Reals:
        """Draw the pause of each node, shape (nodes,)."""
        if self.poisson:
            return self.pause * rng.exponential(size=nodes)
        return self.pause * (1 + self.jitter * rng.uniform(-1, 1, nodes))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Records of simulated jobs, and the truth.

    :param records: log of the shutter; jobs are named ``0``, ``1`` and so on.
    :param performance: true ``T_solo / T_co`` of each job while none stands still, shape (n,).
    :param stopped: share of the time that each job stood still, shape (n,).
    :param by_node: true performance on each node during its log, shape (nodes, n).
    """

    records: Records
    performance: Reals
    stopped: Reals
    by_node: Reals


class _Nodes:
    """State of equal nodes with n jobs each: the phase of each job, and the seconds of solo work left in it."""

    def __init__(
        self, jobs: Sequence[Sequence[Phase]], nodes: int, rng: np.random.Generator, refill: float = 0.0
    ) -> None:
        most = max(map(len, jobs))
        table = np.zeros((4, len(jobs), most))
        for number, phases in enumerate(jobs):
            for at, one in enumerate(phases):
                table[:, number, at] = one.seconds, one.rate, one.sensitivity, one.aggressiveness
        self.seconds, self.rate, self.sensitivity, self.aggressiveness = table
        self.count = np.array([len(phases) for phases in jobs])
        self.job = np.arange(len(jobs))[None, :]
        start = rng.random((nodes, len(jobs))) * self.seconds.sum(axis=1)
        ends = np.cumsum(self.seconds, axis=1)
        self.phase = np.minimum((start[:, :, None] >= ends).sum(axis=2), self.count - 1)
        self.left = ends[self.job, self.phase] - start
        self.refill = refill
        self.cold = np.zeros(self.left.shape)  # load of partners that have stopped, as caches still feel it

    def run(self, seconds: Reals | float, running: NDArray[np.bool_]) -> tuple[Reals, Reals]:
        """Run some jobs for a time; return their progress and their seconds of solo work, both of shape (nodes, n)."""
        progress, work = np.zeros(self.left.shape), np.zeros(self.left.shape)
        rest = np.full((len(self.left), 1), 1.0) * np.reshape(seconds, (-1, 1))
        felt = np.zeros(self.left.shape) if running.all() else self._felt(rest)
        while (rest > 0).any():
            load = self.aggressiveness[self.job, self.phase] * running
            others = np.maximum(load.sum(axis=1, keepdims=True) - load, felt)
            speed = np.maximum(SLOWEST, 1 - self.sensitivity[self.job, self.phase] * others) * running
            with np.errstate(divide="ignore"):
                ends = np.where(running, self.left / np.where(running, speed, 1), np.inf)
            step = np.minimum(rest, ends.min(axis=1, keepdims=True))
            done = speed * step
            progress += done * self.rate[self.job, self.phase]
            work += done
            self.left -= done
            rest = rest - step
            over = running & (ends <= step)
            self.phase = np.where(over, (self.phase + 1) % self.count, self.phase)
            self.left = np.where(over, self.seconds[self.job, self.phase], self.left)
        if self.refill > 0 and running.all():
            load = self.aggressiveness[self.job, self.phase]
            self.cold = load.sum(axis=1, keepdims=True) - load
        return progress, work

    def _felt(self, seconds: Reals) -> Reals:
        """Return the mean load of stopped partners that caches feel in the next seconds, and let caches refill."""
        if self.refill == 0:
            return self.cold
        at = seconds / self.refill
        mean = self.cold * -np.expm1(-at) / np.maximum(at, 1e-12)
        self.cold = self.cold * np.exp(-at)
        return mean


def simulate(
    jobs: Sequence[Sequence[Phase]],
    rounds: int,
    shutter: Shutter = Shutter(),
    *,
    nodes: int = 32,
    noise: float = 0.0,
    refill: float = 0.0,
    seed: int = 0,
) -> Simulated:
    """Simulate jobs of one node under the shutter.

    Cost: arrays of nodes x n per event; all nodes have their events together.

    :param jobs: phases of each of n jobs.
    :param rounds: number of shutters per node in which each job runs alone.
    :param shutter: rhythm of the shutter.
    :param nodes: number of independent nodes, each with the jobs at phases of its own.
    :param noise: relative standard deviation of the progress in a region; a window of it has sqrt(K) times as much.
    :param refill: time constant in seconds with which the loss that the partners caused ends after their stop; it is
        constant in a window.
    :param seed: seed of the phases at the start and of the noise.
    :raises ColocationError: if there is no job, or a phase has no length.
    """
    if not jobs or not all(phases and all(one.seconds > 0 for one in phases) for phases in jobs):
        raise ColocationError("jobs: expecting phases of positive length for each job, got none")
    rng = np.random.default_rng(seed)
    state, n = _Nodes(jobs, nodes, rng, refill), len(jobs)
    everyone, clock = np.ones(n, bool), np.zeros(nodes)
    span = rounds * n * (4 * shutter.region + shutter.warm + 20 * shutter.pause) + 1
    rows, work, shared = list[tuple[NDArray[Any], ...]](), np.zeros((nodes, n)), np.zeros(nodes)
    stood = 0.0  # seconds in which all jobs but one stood still, in the long part of shutters
    state.run(1.0 if shutter.pause >= 0.2 else 5 * shutter.pause, everyone)
    width = shutter.region / shutter.windows
    for number in range(rounds * n):
        mine = np.arange(n) == number % n
        is_long = bool(shutter.long_every) and number // n % shutter.long_every == 0
        for region in (0, 1, 3, 2) if is_long else (0, 1, 2):
            running = mine if region in (1, 3) else everyone
            if region == 3:
                state.run(shutter.warm - shutter.region, mine)
                clock, stood = clock + shutter.warm - shutter.region, stood + shutter.warm
            for _ in range(shutter.windows):
                progress, solo = state.run(width, running)
                progress *= 1 + noise * shutter.windows**0.5 * rng.standard_normal(progress.shape)
                rows.append(_rows(region, running, clock, width, span, progress))
                clock = clock + width
                if running is everyone:
                    work, shared = work + solo, shared + width
        pause = shutter.drawn(rng, nodes)
        work, shared, clock = work + state.run(pause, everyone)[1], shared + pause, clock + pause
    stopped = np.full(n, (n - 1) * (rounds * shutter.region + stood / n) / clock.mean())
    return Simulated(_records(rows), work.sum(axis=0) / shared.sum(), stopped, work / shared[:, None])


def _records(rows: list[tuple[NDArray[Any], ...]]) -> Records:
    """Join the columns of all windows."""
    region, job, rank, start, end, delta = (np.concatenate(column) for column in zip(*rows, strict=True))
    names, cycles = job.astype(int).astype(str), np.full(len(job), np.nan)
    return Records(region.astype(np.int8), names, rank.astype(np.int64), start, end, delta, cycles)


def _rows(
    region: int, running: NDArray[np.bool_], clock: Reals, width: float, span: float, progress: Reals
) -> tuple[NDArray[Any], ...]:
    """Columns of the records of a window: one record per node and job that runs."""
    jobs = np.flatnonzero(running)
    node = np.repeat(np.arange(len(progress)), len(jobs))
    start = node * span + np.repeat(clock, len(jobs))
    job = np.tile(jobs, len(progress)).astype(float)
    same = np.full(len(node), float(region))
    return same, job, np.zeros(len(node)), start, start + width, progress[:, jobs].ravel()
