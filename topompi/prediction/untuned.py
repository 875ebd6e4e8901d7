"""The choice where nothing has been measured: a schedule of the default set that the model finds faster, or native."""

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

RANKS = 16  # on which the default set was measured
DIVIDED = ("bcast", "reduce", "allreduce", "reduce_scatter")  # whose message schedules divide among the ranks
UNPROVEN = "no schedule has proved itself for calls of this kind and size"
UNSIZED = "a call without a size that all ranks know cannot be costed"
GAIN = 1.1  # what must be predicted to leave native: docs/lab/untuned.md has what the prediction is worth

Runs = Callable[[str], bool]


@dataclass(frozen=True)
class Prediction:
    """What runs by the model, and what it says of the others.

    :param algorithm: what runs.
    :param reason: in words, with the numbers that decided.
    :param seconds: predicted; None where nothing predicts.
    :param native: what the MPI library is thought to run; None where nothing predicts.
    :param ours: the algorithms of the default set and their seconds, the fastest first.
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
    """The choice for a class of calls by the model alone: of the default set, or native.

    :param predictor: of the job.
    :param method: mpi4py's name of the call.
    :param nbytes: as ``Selector.choose`` counts them.
    :param root: of a rooted collective.
    :param runs: whether an algorithm can run for the call.
    :param commutative: whether a reduction's operation commutes.
    :param always_native: whether the library's call is costed although no schedule may be chosen. It can take a second
        on thousands of ranks.
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
    # The reference's rule for alltoalls (Subramoni 2013, section 6) explains; it decides nothing here.
    rule = f"DCSS: {dcss(predictor.network).reason}; " if collective == "alltoall" else ""
    return Prediction(best, f"{rule}{says}", seconds, native, tuple(ours))


def _trust(collective: str, name: str) -> tuple[float, bool]:
    """The rank of an algorithm among those whose predictions differ by less than ``GAIN``: the largest one runs.

    First whether one has proved itself for long calls alone, then whether its messages are cut on lanes: while one part
    waits for its receiver another one travels, of which the model knows little (packets: up to 2.1 times as fast).
    """
    whole, segment = cut(name)
    known = find_algorithm(collective, whole)
    return known.default, segment is not None and known.cut == "lanes"


def candidates(predictor: Predictor, method: str, nbytes: int, runs: Runs) -> list[str]:
    """The algorithms of the default set that can run for calls of a size, cut where it is worth while.

    :param predictor: of the job.
    :param method: mpi4py's name of the call.
    :param nbytes: as ``Selector.choose`` counts them.
    :param runs: whether an algorithm can run for the call.
    """
    collective, ranks = CALLS[method].collective, predictor.interface.num_ranks
    hosts, known = predictor.interface.num_hosts, ALGORITHMS.get(collective, {})

    def measured(one: Algorithm) -> float:
        if collective in DIVIDED and not one.logarithmic:
            # With more ranks the parts of a message are shorter: they may be as long as where they were measured.
            return nbytes * min(1.0, RANKS / (hosts if one.cut == "segments" else ranks))
        # A ring has more steps for a host's link by as many ranks as the host has.
        return nbytes * hosts / ranks if collective == "allgather" else nbytes

    names = [name for name, one in known.items() if one.default <= measured(one) and runs(name)]
    if hosts == ranks:
        names = [name for name in names if not known[name].alone]
    if predictor.together is not None and collective == "alltoall" and nbytes > PAIRWISE:
        names = [name for name in names if known[name].joint]
    if ranks > MOST_RANKS:
        names = [name for name in names if known[name].shares_links or not known[name].costly]
        # A pipeline through many ranks is slow, and its rows are those of all ranks.
        names = [name for name in names if known[name].cut != "blocks"]
    return [*names, *filter(runs, variants(collective, names, nbytes, ranks))]
