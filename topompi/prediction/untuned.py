"""The choice without measurements: an algorithm that the model predicts to be faster, or the MPI library's (native).

Only the default set may be chosen: algorithms that were not slower in measurements, each from a size of calls on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..execution.specs import CALLS, NATIVE
from ..schedules.algorithm import Algorithm
from ..schedules.alltoall.dcss import dcss
from ..schedules.registry import ALGORITHMS, find_algorithm
from ..schedules.segments import cut, variants
from .predictor import MOST_RANKS, PAIRWISE, Native, Predictor, is_sized

__all__ = ["GAIN", "UNPROVEN", "UNSIZED", "Prediction", "candidates", "predict"]

RANKS = 16  # number of ranks with which the default set was measured
DIVIDED = ("bcast", "reduce", "allreduce", "reduce_scatter")  # collectives whose schedules divide a message among ranks
UNPROVEN = "no schedule has proved itself for calls of this kind and size"
UNSIZED = "a call without a size that all ranks know cannot be costed"
# Least predicted ratio of native's time to an algorithm's for which the algorithm runs, because predictions err;
# docs/lab/untuned.md compares them with measurements.
GAIN = 1.1

Runs = Callable[[str], bool]


@dataclass(frozen=True)
class Prediction:
    """The model's choice for a call, with the predictions for its alternatives.

    :param algorithm: name of the chosen algorithm.
    :param reason: the reason in words, with the numbers that decided.
    :param seconds: predicted seconds of the choice; None without a prediction.
    :param native: the MPI library's presumed algorithm; None without a prediction.
    :param ours: names and predicted seconds of the default set's algorithms, fastest first.
    """

    algorithm: str
    reason: str
    seconds: float | None = None
    native: Native | None = None
    ours: tuple[tuple[str, float], ...] = ()


def predict(
    predictor: Predictor,
    method: str,
    nbytes: int,
    root: int,
    runs: Runs,
    commutative: bool = True,
    *,
    always_native: bool = False,
) -> Prediction:
    """The choice for calls of one method and size by the model alone: an algorithm of the default set, or native.

    :param predictor: the job's predictor.
    :param method: mpi4py's name of the call.
    :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
    :param root: the root of a rooted collective.
    :param runs: function that tells whether an algorithm can run the call.
    :param commutative: True if a reduction's operation commutes.
    :param always_native: True to predict the library's call even if no schedule may be chosen. That can take a second
        for thousands of ranks.
    """
    if predictor.inapplicable or not is_sized(method, nbytes):
        return Prediction(NATIVE, f"native: {predictor.inapplicable or UNSIZED}")
    names = candidates(predictor, method, nbytes, runs)
    if not names and not always_native:
        return Prediction(NATIVE, f"native: {UNPROVEN}")
    native = predictor.native(method, nbytes, root, commutative)
    library = f"{native.says} ({1e6 * native.seconds:,.0f} us)"
    if not names:
        return Prediction(NATIVE, f"native: {UNPROVEN}; cost model: {library}", native.seconds, native)
    ours = sorted(((name, predictor.seconds(method, name, nbytes, root)) for name in names), key=lambda row: row[1])
    collective = CALLS[method].collective
    close = [row for row in ours if GAIN * row[1] <= min(GAIN**2 * ours[0][1], native.seconds)] or ours[:1]
    best, seconds = max(close, key=lambda row: _trust(collective, row[0]))
    says = f"cost model: {best} {native.seconds / seconds:.2f}x as fast as {library}"
    if native.seconds < GAIN * seconds:
        return Prediction(NATIVE, f"native: {says}", native.seconds, native, tuple(ours))
    # Subramoni 2013, section 6, has a rule for alltoalls: it is quoted as an explanation, and decides nothing here.
    rule = f"DCSS: {dcss(predictor.network).reason}; " if collective == "alltoall" else ""
    return Prediction(best, f"{rule}{says}", seconds, native, tuple(ours))


def _trust(collective: str, name: str) -> tuple[float, bool]:
    """The sort key of an algorithm among those whose predictions differ by less than ``GAIN``; the greatest is chosen.

    It prefers algorithms that proved faster only in long calls, then those whose transfers are cut into parts that
    travel separately. While one part waits for its receiver another travels, an effect that the model lacks (up to 2.1
    times as fast in packet simulations).
    """
    whole, segment = cut(name)
    known = find_algorithm(collective, whole)
    return known.default, segment is not None and known.cut == "slices"


def candidates(predictor: Predictor, method: str, nbytes: int, runs: Runs) -> list[str]:
    """The algorithms of the default set that can run calls of a size, and those of them with cut messages if this pays.

    :param predictor: the job's predictor.
    :param method: mpi4py's name of the call.
    :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
    :param runs: function that tells whether an algorithm can run the call.
    """
    collective, ranks = CALLS[method].collective, predictor.interface.num_ranks
    hosts, known = predictor.interface.num_hosts, ALGORITHMS.get(collective, {})

    def measured(one: Algorithm) -> float:
        if collective in DIVIDED and not one.logarithmic:
            # With more ranks the parts of a message are shorter, but must be as long as in the measured calls.
            return nbytes * min(1.0, RANKS / (hosts if one.cut == "segments" else ranks))
        # With several ranks per host, a ring crosses the host's link in as many times more steps.
        return nbytes * hosts / ranks if collective == "allgather" else nbytes

    names = [name for name, one in known.items() if one.default <= measured(one) and runs(name)]
    if hosts == ranks:
        names = [name for name in names if not known[name].alone]
    if predictor.together is not None and collective == "alltoall" and nbytes > PAIRWISE:
        names = [name for name in names if known[name].joint]
    if ranks > MOST_RANKS:
        names = [name for name in names if known[name].shares_links or not known[name].costly]
        # A pipeline through many ranks is slow, and its schedule needs the rows of all ranks.
        names = [name for name in names if known[name].cut != "blocks"]
    return [*names, *filter(runs, variants(collective, names, nbytes, ranks))]
