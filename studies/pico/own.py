"""Predicted gains of topompi's schedules on the machines' allocations, by the fitted model, with the model's error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from topompi.schedules import Network, Schedule, make
from topompi.schedules.analysis.cost import cost
from topompi.schedules.analysis.model import Model

from .algorithms import LIBRARY, Described
from .score import Contest
from .times import SAMPLED, VECTORS, Calibration, Times, layer_of

__all__ = ["Gain", "bands", "gains"]

# The measured algorithm that resembles each of topompi's most, by collective and name.
NEAREST: Mapping[str, Mapping[str, str]] = {
    "bcast": {
        "binomial": "binomial",
        "knomial": "binomial",
        "scatter_allgather": "scatter_ring_allgather",
        "circulant": "scatter_allgather",
    },
    "allgather": {"ring": "ring", "doubling": "recursive_doubling", "swing": "bine_permute"},
    "reduce": {"halving": "reduce_scatter_gather", "circulant": "reduce_scatter_gather", "binomial": "binomial"},
    "reduce_scatter": {"ring": "ring", "halving": "recursive_halving", "swing": "bine_permute"},
    "allreduce": {
        "ring": "ring",
        "doubling": "recursive_doubling",
        "halving": "rabenseifner",
        "grouped": "bine_rabenseifner",
        "swing": "bine_rabenseifner",
    },
    "alltoall": {"shift": "pairwise", "pairwise": "pairwise", "bruck": "bruck"},
}
LATER = 0.1e-6  # seconds by which topompi's messages start later than a library's, as in `prediction.predictor`
CALL = 1e-6  # seconds that a call of topompi takes longer
_NONE = (0.0, 0.0, 0)


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
    """The 80 % band of predicted over measured time of each layer's algorithms, beside the mean of each cell.

    The number of cells is the third entry.
    """
    table: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for contest in some:
        error = np.log(contest.predicted / contest.measured)
        first = contest.cell.first
        for name, one in zip(contest.names, error - error.mean(), strict=True):
            table[layer_of(first), first.collective, name].append(float(one))
    return {
        key: (float(np.exp(np.quantile(values, 0.1))), float(np.exp(np.quantile(values, 0.9))), len(values))
        for key, values in table.items()
    }


def _seconds(network: Network, model: Model, found: Described, nbytes: int) -> float:
    try:
        return _cost(found.schedule(network, ()), network, model, nbytes)
    except ValueError:  # an algorithm may refuse a number of ranks
        return inf


def _cost(schedule: Schedule, network: Network, model: Model, nbytes: int) -> float:
    block = nbytes / schedule.blocks / (1 if schedule.collective in VECTORS else network.num_ranks)
    return cost(schedule, network, model, block, most=SAMPLED).seconds


def gains(
    times: Times,
    jobs: Sequence[tuple[str, str, int]],
    calibrations: Mapping[str, Calibration],
    known: Mapping[tuple[str, str, str], tuple[float, float, int]],
    sizes: Sequence[int],
    least: int = 10,
) -> Iterator[Gain]:
    """Yield the gain of each job, collective and size.

    Only those algorithms of topompi take part whose nearest measured algorithm was measured often enough there.

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
            library = {
                norm: Described(collective, algorithm, tuple(sorted(parameters.items())))
                for norm, (algorithm, parameters) in LIBRARY[collective].items()
                if (system, collective, norm) in known
            }
            names = [name for name, norm in nearest.items() if known.get((system, collective, norm), _NONE)[2] >= least]
            if not library or not names:
                continue
            for nbytes in sizes:
                theirs, norm = min((_seconds(network, model, one, nbytes), norm) for norm, one in library.items())
                own, name = min((_own(network, ours, collective, name, nbytes), name) for name in names)
                low, high, _ = known[system, collective, nearest[name]]
                factor = (call + theirs) / (call + CALL + own)
                yield Gain(system, collective, ranks, nbytes, norm, name, factor, factor * low, factor * high)


def _own(network: Network, model: Model, collective: str, name: str, nbytes: int) -> float:
    try:
        return _cost(make(collective, name, network), network, model, nbytes)
    except ValueError:
        return inf
