"""The choice without measurements: a schedule that the cost model predicts to be faster, or the MPI library (native).

Only schedules of the default set may be chosen. These were not slower than native in measurements; each belongs to the
set only for calls from a certain size on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from ...schedules.algorithm import Algorithm
from ...schedules.registry import ALGORITHMS, find_algorithm
from ...schedules.segments import cut, variants
from ..execution.specs import CALLS, NATIVE
from .predictor import MOST_RANKS, PAIRWISE, Native, Predictor, is_sized

__all__ = ["GAIN", "UNPROVEN", "UNREACHABLE", "UNSIZED", "Prediction", "candidates", "predict"]

RANKS = 16  # number of ranks with which the default set was measured
DIVIDED = ("bcast", "reduce", "allreduce", "reduce_scatter")  # collectives whose schedules divide a message among ranks
UNPROVEN = "no schedule has proved itself for calls of this kind and size"
UNREACHABLE = "every algorithm sends messages between hosts that have no route"
UNSIZED = "a call without a size that all ranks know cannot be costed"
# Least ratio of native's predicted time to an algorithm's with which the algorithm is chosen. It is above 1 because
# predictions err; docs/lab/untuned.md compares them with measurements.
GAIN = 1.1

Runs = Callable[[str], bool]


@dataclass(frozen=True)
class Prediction:
    """The cost model's choice for a call, with the predicted times of the algorithms that it compared.

    :param algorithm: name of the chosen algorithm.
    :param reason: the reason in words, with the numbers that decided.
    :param seconds: predicted seconds of the choice; None without a prediction.
    :param native: the MPI library's presumed algorithm; None without a prediction.
    :param ours: names and predicted seconds of topompi's algorithms that might have been chosen, fastest first.
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
    """The choice for calls of one method and size by the cost model alone.

    It is native, or an algorithm of the default set (algorithms that were not slower than native in measurements).

    :param predictor: the job's predictor.
    :param method: mpi4py's name of the call.
    :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
    :param root: the root of a rooted collective.
    :param runs: function of an algorithm's name; True if the algorithm can run the call.
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
    timed = ((name, predictor.seconds(method, name, nbytes, root)) for name in names)
    ours = sorted((row for row in timed if row[1] < inf), key=lambda row: row[1])  # infinite: cannot run here
    if not ours and native.seconds == inf:
        return Prediction(NATIVE, f"native: {UNREACHABLE}")
    if not ours:
        return Prediction(NATIVE, f"native: no schedule can run here; cost model: {library}", native.seconds, native)
    collective = CALLS[method].collective
    close = [row for row in ours if GAIN * row[1] <= min(GAIN**2 * ours[0][1], native.seconds)] or ours[:1]
    best, seconds = max(close, key=lambda row: _trust(collective, row[0]))
    says = f"cost model: {best} {native.seconds / seconds:.2f}x as fast as {library}"
    if native.seconds == inf:
        says = f"cost model: {best} ({1e6 * seconds:,.0f} us); hosts have no route for {native.says}"
    if native.seconds < GAIN * seconds:
        return Prediction(NATIVE, f"native: {says}", native.seconds, native, tuple(ours))
    return Prediction(best, says, seconds, native, tuple(ours))


def _trust(collective: str, name: str) -> tuple[float, bool]:
    """The sort key of an algorithm among algorithms whose predicted times are closer than the factor ``GAIN``.

    The algorithm with the greatest key is chosen. It is the one that may be chosen only in the longest calls; among
    equals, one whose transfers are cut into slices. While one slice waits for its receiver another one is sent, an
    effect that the cost model lacks (up to 2.1 times as fast in packet simulations).

    :param collective: a key of ``schedules.ALGORITHMS``.
    :param name: name of the algorithm, with or without a segment size (``ring/32K``).
    """
    whole, segment = cut(name)
    known = find_algorithm(collective, whole)
    return known.default, segment is not None and known.cut == "slices"


def candidates(predictor: Predictor, method: str, nbytes: int, runs: Runs) -> list[str]:
    """The candidates for calls of a size: algorithms of the default set, and their variants with cut messages.

    The default set has the algorithms that were not slower than the MPI library's in measurements, each for calls from
    a certain size on. A variant is a candidate only if cutting to its segment size pays for calls of this size.

    :param predictor: the job's predictor.
    :param method: mpi4py's name of the call.
    :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
    :param runs: function of an algorithm's name; True if the algorithm can run the call.
    """
    collective, ranks = CALLS[method].collective, predictor.interface.num_ranks
    hosts, known = predictor.interface.num_hosts, ALGORITHMS.get(collective, {})

    def measured(one: Algorithm) -> float:
        if collective in DIVIDED and not one.logarithmic:
            # With more ranks than in the measurements, each rank's part of the message is shorter; the size that counts
            # is that of a measured call with parts of the same length.
            return nbytes * min(1.0, RANKS / (hosts if one.cut == "segments" else ranks))
        # With k ranks per host, a ring sends over a host's link in k times as many steps as with one rank per host, so
        # that blocks count as if they were k times shorter.
        return nbytes * hosts / ranks if collective == "allgather" else nbytes

    def least(name: str) -> float:
        # Where ranks share hosts, an algorithm with a form for them was measured from that form's size on.
        forms = [one.default for one in known.values() if one.alone == name] if hosts < ranks else []
        return max(known[name].default, min(forms, default=0.0))

    names = [name for name, one in known.items() if least(name) <= measured(one) and runs(name)]
    names = [name for name in names if predictor.fits(known[name])]
    if hosts == ranks:
        names = [name for name in names if not known[name].alone]
    if predictor.together is not None and collective == "alltoall" and nbytes > PAIRWISE:
        names = [name for name in names if known[name].joint]
    if ranks > MOST_RANKS:
        names = [name for name in names if known[name].shares_links or not known[name].costly]
        # A pipeline through many ranks is slow, and its schedule has many transfers, which every rank must generate.
        names = [name for name in names if known[name].cut != "blocks"]
    return [*names, *filter(runs, variants(collective, names, nbytes, ranks))]
