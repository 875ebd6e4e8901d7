"""Simulations of jobs beside each other with packets, on chosen lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....netsim import BACKGROUND, ONCE, Program
from ....netsim.packets import PacketSession
from ..errors import InterferenceError
from ..network import SharedNetwork
from .choice import Lanes

__all__ = ["SharedTimes", "Trials"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SharedTimes:
    """The times of jobs beside each other, and the activity of the lanes until all jobs had run once.

    Times and activities are means over draws of the times at which the jobs begin.

    :param draws: seconds of the first run of each job (T_sharing) in each draw, shape (draws, jobs).
    :param end: seconds until all jobs had run once.
    :param waits: seconds for which a packet on each lane waited for room in the next buffer, summed over all links,
        shape (lanes,).
    :param nbytes: bytes of messages on each lane, summed over all links, shape (lanes,).
    """

    draws: Floats
    end: float
    waits: Floats
    nbytes: Floats

    @property
    def seconds(self) -> Floats:
        """Mean seconds of the first run of each job, shape (jobs,)."""
        mean: Floats = self.draws.mean(axis=0)
        return mean

    @property
    def blocked(self) -> Floats:
        """Mean number of links on which a packet of each lane waits for room, shape (lanes,)."""
        return self.waits / self.end


class Trials:
    """The jobs of one placement, with their times on each choice of lanes; no choice is simulated twice.

    :param network: the network; its settings have one lane with the whole buffer of each port.
    :param programs: program of each job.
    :param draws: number of draws of the times at which jobs begin, each within the shortest job's time alone; 0 for one
        simulation in which they begin as the programs do.
    :param seed: seed of the draws.
    :raises InterferenceError: if there are no jobs, or the network is not one of packets.
    """

    def __init__(self, network: SharedNetwork, programs: Sequence[Program], draws: int = 0, seed: int = 0) -> None:
        if network.model != "packet" or network.settings.lanes != 1 or not programs:
            got = f"{network.settings.lanes} of model {network.model} and {len(programs)} jobs"
            raise InterferenceError(f"lanes: expecting a network of packets with one lane, and jobs, got {got}")
        self._network, self._programs = network, [replace(one, lane=0, repeat=ONCE) for one in programs]
        self._draws, self._seed = draws, seed
        self._found: dict[Lanes, SharedTimes] = {}

    @cached_property
    def alone(self) -> Floats:
        """Seconds of each job alone (T_alone) on one lane with the whole buffer, shape (jobs,)."""
        lanes = Lanes.together(1)
        return np.array([self._run(lanes, [one], np.zeros(1)).draws[0, 0] for one in self._programs])

    @cached_property
    def delays(self) -> Floats:
        """Seconds by which each job begins later in each draw, shape (draws, jobs)."""
        shape = (self._draws, len(self._programs))
        if not self._draws:
            return np.zeros((1, shape[1]))
        return np.random.default_rng(self._seed).uniform(0.0, float(self.alone.min()), shape)

    def run(self, lanes: Lanes) -> SharedTimes:
        """The times of all jobs on chosen lanes; a job that ends begins again until all have run once.

        :param lanes: lane of each job, and the weights.
        Cost: a simulation per draw, if the choice is new.
        """
        if lanes not in self._found:
            runs = [self._run(lanes, self._programs, delay) for delay in self.delays]
            waits, nbytes = (np.mean([getattr(one, name) for one in runs], axis=0) for name in ("waits", "nbytes"))
            times = np.concatenate([one.draws for one in runs])
            self._found[lanes] = SharedTimes(times, float(np.mean([one.end for one in runs])), waits, nbytes)
        return self._found[lanes]

    def contention(self, lanes: Lanes) -> Floats:
        """Seconds that each job loses to the others (T_contention, equation 5.1), shape (jobs,); they may be negative.

        All choices are compared with the same times alone, so that what a lane's smaller buffer costs counts.
        """
        return self.run(lanes).seconds - self.alone

    def total(self, lanes: Lanes) -> float:
        """Seconds that all jobs lose (T_total, equation 5.2)."""
        return float(self.contention(lanes).sum())

    def deviation(self, lanes: Lanes) -> float:
        """Standard deviation of T_total over the draws; NaN for fewer than two."""
        totals = self.run(lanes).draws.sum(axis=1)
        return float(totals.std(ddof=1)) if len(totals) > 1 else float("nan")

    def _run(self, lanes: Lanes, programs: Sequence[Program], delays: Floats) -> SharedTimes:
        network = self._network
        settings = lanes.settings(network.settings)
        session = PacketSession(network.tables, hosts=network.hosts, settings=settings, circles=network.circles)
        repeat = BACKGROUND if len(programs) > 1 else ONCE
        handles = [
            session.add(replace(one, repeat=repeat), one.start + float(delay))
            for one, delay in zip(lanes.programs(programs), delays, strict=True)
        ]
        left = set(handles)
        while left:
            left -= set(session.advance())
        result = session.result()
        seconds = np.array([[session.runs(handle).seconds[0] for handle in handles]])
        return SharedTimes(
            seconds, session.now, result.lane_waits.sum(axis=0), result.lane_bytes.sum(axis=0).astype(float)
        )
