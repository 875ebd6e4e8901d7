"""The choice where nothing has been measured: a schedule of the default set that the model finds faster, or native."""

from __future__ import annotations

from collections.abc import Callable

from ..schedules.alltoall.dcss import dcss
from ..schedules.registry import ALGORITHMS
from ..schedules.segments import variants
from .choice import Choice
from .classes import COLLECTIVE, NATIVE, PAIRWISE
from .model import MOST_RANKS, Predictor

__all__ = ["GAIN", "candidates", "choose"]

GAIN = 1.1  # what must be predicted to leave native: docs/emulated.md has what the prediction is worth


def choose(
    predictor: Predictor,
    method: str,
    nbytes: int,
    root: int,
    runs: Callable[[str], bool],
    commutative: bool = True,
) -> Choice:
    """The choice for a class of calls by the model alone.

    :param predictor: of the job.
    :param method: mpi4py's name of the call.
    :param nbytes: as ``Selector.choose`` counts them.
    :param root: of a rooted collective.
    :param runs: whether an algorithm can run for the call.
    :param commutative: whether a reduction's operation commutes.
    """
    if predictor.inapplicable or not nbytes:
        return Choice(NATIVE, f"native: {predictor.inapplicable or 'nothing by which a call could be costed'}")
    names = candidates(predictor, method, nbytes, runs)
    native = predictor.native(method, nbytes, root, commutative)
    if not names:
        return Choice(NATIVE, f"native: no schedule of the default set for such calls; {native.says}", native.seconds)
    costs = [predictor.seconds(method, name, nbytes, root) for name in names]
    seconds = min(costs)
    best = names[costs.index(seconds)]
    gain = native.seconds / seconds
    says = f"cost model: {best} {gain:.2f}x as fast as {native.says}"
    if gain < GAIN:
        return Choice(NATIVE, f"native: {says}", native.seconds)
    return Choice(best, f"{_explained(predictor, method)}{says}", seconds)


def candidates(predictor: Predictor, method: str, nbytes: int, runs: Callable[[str], bool]) -> list[str]:
    """The algorithms of the default set that can run for calls of a size, cut where it is worth while.

    :param predictor: of the job.
    :param method: mpi4py's name of the call.
    :param nbytes: as ``Selector.choose`` counts them.
    :param runs: whether an algorithm can run for the call.
    """
    collective, ranks = COLLECTIVE[method], predictor.interface.num_ranks
    known = ALGORITHMS.get(collective, {})
    names = [name for name, one in known.items() if one.default <= nbytes and runs(name)]
    if predictor.together is not None and collective == "alltoall" and nbytes > PAIRWISE:
        names = [name for name in names if known[name].joint]
    if ranks > MOST_RANKS:
        names = [name for name in names if known[name].shares_links or not known[name].costly]
    return [*names, *filter(runs, variants(collective, names, nbytes, ranks))]


def _explained(predictor: Predictor, method: str) -> str:
    """What the reference's rule says of the job's alltoalls."""
    if COLLECTIVE[method] != "alltoall":
        return ""
    scheme = dcss(predictor.network)
    return f"DCSS: {scheme.reason}; "
