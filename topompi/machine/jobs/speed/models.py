"""Models of jobs' run times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ....errors import TopompiError
from ....inputs.extensions import names_function
from ..allocation import Occupancy
from ..cluster import Cluster
from ..errors import JobsError
from ..named import for_one_run, imported_late, made_by
from ..workload import Workload

__all__ = ["SPEEDS", "AsLogged", "Faster", "Ranges", "SharedLinks", "Speed", "SpeedProduct", "find_speed"]

Integers = NDArray[np.int64]


class Speed:
    """The base class of models of run time: how long a job runs at rate 1, and its present rate.

    A job at rate r does r seconds of its work per second. If ``steady`` is false, rates may change at each start and
    end of a job. ``slowest`` is the lowest rate that the scheduler reckons with; if a job's user requested no time, the
    job's estimate is its run time at this rate.
    """

    name = ""
    steady = True
    slowest = 1.0

    def on(self, workload: Workload, cluster: Cluster) -> Speed:
        """Return the model of one simulation: a copy, or a new one that depends on the jobs or the cluster.

        :param workload: the jobs, numbered by their positions.
        :param cluster: the cluster.
        """
        return for_one_run(self)

    def durations(self, workload: Workload) -> Integers:
        """Return the seconds that each job runs at rate 1."""
        return workload.duration

    def rates(self, state: Occupancy) -> dict[int, float]:
        """Return the rates, above 0, of running jobs by job; jobs that are left out run at rate 1."""
        return {}

    def estimates(self, workload: Workload) -> Integers:
        """Return the seconds for which the scheduler plans each job: the request, else the time at ``slowest``."""
        if self.steady:
            return workload.estimate
        slow = np.ceil(workload.run / self.slowest).astype(np.int64)
        return np.where(workload.request > 0, workload.request, slow)


class AsLogged(Speed):
    """A model with the run times of the log."""

    name = "as-logged"


class Faster(Speed):
    """A model with shorter run times for jobs of more than ``above`` nodes (Pollard et al., SC18, section V-C).

    :param percent: reduction in per cent of the logged time, from 0 to below 100.
    :param above: number of nodes up to which jobs keep their logged time.
    """

    def __init__(self, percent: float, above: int = 4) -> None:
        if not 0 <= percent < 100:
            raise JobsError(f"speed: expecting 0 <= per cent < 100, got {percent}")
        self.percent, self.above = percent, above
        self.name = f"faster:{percent:g}"

    def durations(self, workload: Workload) -> Integers:
        """Return the run time of each job in seconds, shorter for jobs of more than ``above`` nodes."""
        return _shortened(workload, np.where(workload.nodes > self.above, self.percent, 0.0))


class Ranges(Speed):
    """A model with run times that are shorter by a percentage, which follows from a random range and the job's nodes.

    The percentage grows with the job's nodes from the lower end of the job's range to the upper end at 512 nodes. The
    models are V1 and V2 of Pollard et al., SC18, section V-C. Two details that the source does not give are ours: the
    growth starts at 0 nodes, and the ranges are drawn with equal chances.

    :param kind: name of the ranges of which each job draws one, in per cent: ``V1`` has 0-10, 0-20 and 0-30; ``V2`` has
        0 for jobs below 5 nodes, 0-10 and 0-20 up to 128 nodes, and 0-10, 10-20 and 10-30 for larger jobs.
    :param seed: seed of the draws; a job draws the same range under every policy.
    :param anchor: number of nodes at which the growth starts.
    """

    RANGES = ((0, 10), (0, 20), (0, 30))
    RANGES_ABOVE_128 = ((0, 10), (10, 20), (10, 30))
    FULL = 512

    def __init__(self, kind: str, seed: int = 0, anchor: int = 0) -> None:
        if kind not in ("V1", "V2") or not 0 <= anchor < self.FULL:
            raise JobsError(f"speed: expecting V1 or V2 and an anchor below {self.FULL}, got {kind!r} and {anchor}")
        self.kind, self.seed, self.anchor = kind, seed, anchor
        self.name = f"{kind}:{seed}"

    def durations(self, workload: Workload) -> Integers:
        """Return the run time of each job in seconds, shorter by the percentage for its range and its nodes."""
        nodes = workload.nodes
        draws = np.random.default_rng(self.seed).random(len(workload))
        ranges = np.array(self.RANGES, dtype=float)[(draws * 3).astype(int)]
        if self.kind == "V2":
            ranges = np.array(self.RANGES, dtype=float)[(draws * 2).astype(int)]
            large = nodes > 128
            ranges[large] = np.array(self.RANGES_ABOVE_128, dtype=float)[(draws[large] * 3).astype(int)]
            ranges[nodes < 5] = 0
        share = np.clip((nodes - self.anchor) / (self.FULL - self.anchor), 0, 1)
        return _shortened(workload, ranges[:, 0] + (ranges[:, 1] - ranges[:, 0]) * share)


class SharedLinks(Speed):
    """A model with longer run times while a job can share links between switches with another job.

    :param percent: additional time in per cent while links are shared.
    """

    steady = False

    def __init__(self, percent: float) -> None:
        if percent < 0:
            raise JobsError(f"speed: expecting 0 or more per cent, got {percent}")
        self.slowest = 1 / (1 + percent / 100)
        self.name = f"shared:{percent:g}"

    def rates(self, state: Occupancy) -> dict[int, float]:
        """Return the rate of each job that shares links. Cost: a check of the links of all running jobs."""
        sharing = {job for pair in state.conflicts().pairs for job in pair}
        return dict.fromkeys(sharing, self.slowest)


class SpeedProduct(Speed):
    """A model in which several causes change a job's rate, which is the product of the rates of their models.

    :param parts: two or more models; the durations at rate 1 are those of the first.
    """

    def __init__(self, *parts: Speed) -> None:
        self.parts, self.steady = parts, all(part.steady for part in parts)
        self.name = "&".join(part.name for part in parts)
        self.slowest = float(np.prod([part.slowest for part in parts]))

    def on(self, workload: Workload, cluster: Cluster) -> Speed:
        """Return the model of one simulation."""
        return SpeedProduct(*(part.on(workload, cluster) for part in self.parts))

    def durations(self, workload: Workload) -> Integers:
        """Return the seconds that each job runs at rate 1, by the first model."""
        return self.parts[0].durations(workload)

    def rates(self, state: Occupancy) -> dict[int, float]:
        """Return the product of the rates of all models. Cost: that of the models, and a number per running job."""
        found: dict[int, float] = {}
        for part in self.parts:
            for job, rate in part.rates(state).items():
                found[job] = found.get(job, 1.0) * rate
        return found


def _shortened(workload: Workload, percent: NDArray[np.float64]) -> Integers:
    """Return run times reduced by these percentages, rounded to seconds, and at most the job's estimate."""
    run = np.rint(workload.run * (1 - percent / 100)).astype(np.int64)
    shortened: Integers = np.minimum(run, workload.estimate)
    return shortened


SPEEDS: dict[str, Callable[[str], Speed]] = {
    "as-logged": lambda _: AsLogged(),
    "faster": lambda word: Faster(float(word)),
    "V1": lambda word: Ranges("V1", int(word or 0)),
    "V2": lambda word: Ranges("V2", int(word or 0)),
    "shared": lambda word: SharedLinks(float(word)),
    "links": imported_late("machine.interference.speed:links"),
    "colocated": imported_late("machine.colocation.scheduling.registered:colocated"),
}


def find_speed(name: str | Speed) -> Speed:
    """Return a new model by name: ``as-logged``, ``faster:10``, ``V1:SEED`` or ``shared:5``; a given model unchanged.

    ``links`` and ``colocated:FILE`` are imported when they are asked for; ``links&shared:5`` multiplies the rates of
    two models.

    ``module:function`` makes a model of a user's own, unless the module has a name in ``SPEEDS``.

    :raises JobsError: if a name or number is wrong, or the function makes no model.
    """
    if isinstance(name, Speed):
        return name
    if "&" in name:
        return SpeedProduct(*(find_speed(part) for part in name.split("&")))
    kind, _, word = name.partition(":")
    if kind not in SPEEDS and names_function(name):
        made = made_by(name, Speed, JobsError)
        made.name = made.name or name
        return made
    try:
        return SPEEDS[kind](word)
    except (KeyError, ValueError) as error:
        if isinstance(error, TopompiError):
            raise
        known = f"{', '.join(SPEEDS)}, with a number or a file after a colon, or a module:function"
        raise JobsError(f"speed: expecting {known}, got {name!r}") from None
