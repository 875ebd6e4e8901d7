"""What topompi's schedules would gain on the machines' allocations, by the fitted model, with the model's error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from topompi.schedules import Network, make
from topompi.schedules.analysis.cost import cost
from topompi.schedules.analysis.model import Model
from topompi.schedules.registry import ALGORITHMS

from .algorithms import LIBRARY, Described
from .score import Contest
from .times import SAMPLED, VECTORS, Calibration, Times

__all__ = ["Gain", "bands", "gains"]

# The measured algorithm that resembles each of topompi's most, by collective and name.
NEAREST: Mapping[str, Mapping[str, str]] = {
    "bcast": {
        "binomial": "binomial",
        "knomial": "binomial",
        "scatter_allgather": "scatter_ring_allgather",
        "circulant": "scatter_allgather",
    },
    "allgather": {"ring": "ring", "doubling": "recursive_doubling", "circulant": "bruck", "swing": "bine_permute"},
    "reduce": {"halving": "reduce_scatter_gather", "circulant": "reduce_scatter_gather", "binomial": "binomial"},
    "reduce_scatter": {"ring": "ring", "halving": "recursive_halving", "swing": "bine_permute"},
    "allreduce": {
        "ring": "ring",
        "doubling": "recursive_doubling",
        "halving": "rabenseifner",
        "circulant": "rabenseifner",
        "grouped": "bine_rabenseifner",
        "swing": "bine_rabenseifner",
    },
    "alltoall": {"shift": "pairwise", "pairwise": "pairwise", "bruck": "bruck"},
}
LATER = 0.1e-6  # seconds by which topompi's messages start later than a library's, as in `prediction.predictor`
CALL = 1e-6  # seconds that a call of topompi takes longer


@dataclass(frozen=True)
class Gain:
    """A predicted gain over the library's fastest algorithm.

    :param system: the machine.
    :param collective: the collective.
    :param ranks: number of ranks.
    :param nbytes: bytes of the total vector.
    :param library: the library's fastest algorithm by the model.
    :param own: topompi's fastest algorithm.
    :param factor: predicted seconds of the former over those of the latter.
    :param low: the factor if the model errs as in the worst tenth of the nearest measured algorithm's cells.
    :param high: the same for the best tenth.
    """

    system: str
    collective: str
    ranks: int
    nbytes: int
    library: str
    own: str
    factor: float
    low: float
    high: float

    @property
    def is_certain(self) -> bool:
        """Whether the factor is above 1 in the whole band."""
        return self.low > 1


def bands(some: Sequence[Contest]) -> dict[tuple[str, str, str], tuple[float, float, int]]:
    """The 80 % band of predicted over measured time of each machine's algorithms, beside the mean of each cell.

    The number of cells is the third entry.
    """
    table: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for contest in some:
        error = np.log(contest.predicted / contest.measured)
        first = contest.cell.first
        for name, one in zip(contest.names, error - error.mean(), strict=True):
            table[first.system, first.collective, name].append(float(one))
    return {
        key: (float(np.exp(np.quantile(values, 0.1))), float(np.exp(np.quantile(values, 0.9))), len(values))
        for key, values in table.items()
    }


def _seconds(network: Network, model: Model, found: Described, grid: tuple[int, ...], nbytes: int) -> float:
    try:
        schedule = found.schedule(network, grid)
    except ValueError:
        return inf
    block = nbytes / schedule.blocks
    if found.collective not in VECTORS:
        block /= network.num_ranks
    return cost(schedule, network, model, block, most=SAMPLED).seconds


def gains(
    times: Times,
    jobs: Sequence[tuple[str, str, int]],
    calibrations: Mapping[str, Calibration],
    known: Mapping[tuple[str, str, str], tuple[float, float, int]],
    sizes: Sequence[int],
    least: int = 10,
) -> Iterator[Gain]:
    """Yield the gain of each job, collective and size for which the nearest algorithm's error is known.

    :param times: networks of the jobs.
    :param jobs: machine, run and number of ranks of each job.
    :param calibrations: parameters by machine.
    :param known: the model's errors, as `bands` returns them.
    :param sizes: bytes of the total vector.
    :param least: number of cells from which on an error is known.
    """
    for system, run, ranks in jobs:
        network = times.network(run, ranks)
        model = calibrations[system].model(system)
        message = (model.t_o or 0.0) + LATER
        ours = replace(model, t_s=tuple(start + LATER for start in model.t_s), t_o=message)
        call = calibrations[system]["call"]
        for collective, nearest in NEAREST.items():
            library = {norm: _library(collective, norm, parameters) for norm, parameters in LIBRARY[collective].items()}
            for nbytes in sizes:
                theirs = (
                    min(
                        (call + _seconds(network, model, found, (), nbytes), norm)
                        for norm, found in library.items()
                        if (system, collective, norm) in known
                    )
                    if any((system, collective, norm) in known for norm in library)
                    else None
                )
                own = min(
                    (call + CALL + _own(network, ours, collective, name, nbytes), name)
                    for name in nearest
                    if name in ALGORITHMS[collective]
                )
                band = known.get((system, collective, nearest[own[1]]))
                if theirs is None or band is None or band[2] < least:
                    continue
                factor = theirs[0] / own[0]
                yield Gain(
                    system, collective, ranks, nbytes, theirs[1], own[1], factor, factor * band[0], factor * band[1]
                )


def _library(collective: str, norm: str, made: tuple[str, Mapping[str, object]]) -> Described:
    algorithm, parameters = made
    return Described(collective, algorithm, tuple(sorted(parameters.items())))


def _own(network: Network, model: Model, collective: str, name: str, nbytes: int) -> float:
    try:
        schedule = make(collective, name, network)
    except ValueError:
        return inf
    block = nbytes / schedule.blocks
    if collective not in VECTORS:
        block /= network.num_ranks
    return cost(schedule, network, model, block, most=SAMPLED).seconds
