"""The choice among an MPI library's own algorithms by the cost model, for files that the library reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log

import numpy as np

from .libraries.base import CallShape, LibraryAlgorithm
from .libraries.openmpi.forced import NUMBERS, SEGMENTED, forced
from .libraries.openmpi.tuned import chosen_word, tuned
from .predictor import Predictor
from .untuned import GAIN

__all__ = ["METHODS", "SIZES", "LibraryChoice", "choices", "left_to_han", "mean_gain"]

METHODS = tuple(NUMBERS)
SIZES = tuple(4**power for power in range(1, 13))  # bytes of a call, as `Predictor.seconds` takes them
# Bytes of all data of a call below which the choice is left to the library: on an emulated network with Open MPI,
# predictions for broadcasts of 4 KiB were wrong by more than a factor of two.
LEAST = 16 << 10
OF_BLOCKS = ("Allgather", "Alltoall", "Gather", "Scatter")  # calls whose size is that of one rank's block
ROOTED_BLOCKS = ("Gather", "Scatter")  # calls whose messages start with one block
# Calls that coll/han of Open MPI 5.0 runs if hosts have several ranks; coll/tuned runs all others.
OVER_HOSTS = ("Allgather", "Allreduce", "Bcast", "Gather", "Reduce", "Scatter")
SEGMENTS = (8 << 10, 32 << 10, 128 << 10)
# Algorithms that call two other collectives of the same communicator one after the other, to which rules apply too.
_IN_TWO = {
    ("Allreduce", "nonoverlapping"): ("Reduce", "Bcast"),
    ("Reduce_scatter_block", "basic_linear"): ("Reduce", "Scatter"),
}


@dataclass(frozen=True)
class LibraryChoice:
    """The fastest of a library's algorithms for calls of one method and size, beside the library's own choice.

    :param method: mpi4py's name of the call.
    :param nbytes: size of the call in bytes: a broadcast's message, a reduction's vector, else one block.
    :param number: the library's number of the algorithm; 0 for the choice of coll/tuned.
    :param segment: bytes of a segment; 0 for whole messages.
    :param says: the algorithm in the library's words.
    :param seconds: predicted seconds of the algorithm.
    :param native: predicted seconds of what the library runs without rules, which may be coll/han.
    """

    method: str
    nbytes: int
    number: int
    segment: int
    says: str
    seconds: float
    native: float

    @property
    def gain(self) -> float:
        """Predicted time of the library's own choice over that of the algorithm."""
        return self.native / self.seconds


def choices(
    predictor: Predictor, method: str, sizes: Sequence[int] = SIZES, *, least: float = GAIN
) -> list[LibraryChoice]:
    """The choice for each size: that of coll/tuned unless another of its algorithms is predicted to be clearly faster.

    Calls of less than 16 KiB are left to coll/tuned, because predictions are not sure enough there.

    The component coll/han of Open MPI 5 takes no rules. They count for methods that coll/tuned runs in its place.

    :param predictor: the job's predictor, with Open MPI as its library.
    :param method: one of ``METHODS``.
    :param sizes: sizes of calls in bytes, ascending.
    :param least: least ratio of predicted times with which another algorithm is chosen.
    Cost: about 10 predictions for each size, and 40 if algorithms are made of two calls; if hosts have several ranks,
    also the choices of these two calls for all ``SIZES``.
    """
    calls = dict.fromkeys(call for key, pair in _IN_TWO.items() if key[0] == method for call in pair)
    apart = [one for call in calls if _several(predictor) for one in choices(predictor, call, SIZES, least=least)]
    left = left_to_han(predictor, apart, list(calls))
    return [_choice(predictor, method, nbytes, least, left) for nbytes in sizes]


def _several(predictor: Predictor) -> bool:
    """Whether hosts have several ranks, so that coll/han runs."""
    return predictor.interface.num_hosts < predictor.interface.num_ranks


def _choice(predictor: Predictor, method: str, nbytes: int, least: float, left: Sequence[str] = ()) -> LibraryChoice:
    question = CallShape(method, nbytes, np.asarray(predictor.interface.rank_host))
    native, own = predictor.native(method, nbytes, 0), tuned(question)

    def seconds_of(word: str, decision: LibraryAlgorithm) -> float:
        in_two = _in_two(predictor, question, word, least, left)
        return predictor.decided(decision, nbytes, 0) if in_two is None else in_two

    alone = native.seconds if own is None else seconds_of(chosen_word(question), own)
    found = (alone / least, 0, 0, native.says if own is None else own.says)
    whole = nbytes * (question.ranks if method in OF_BLOCKS and method not in ROOTED_BLOCKS else 1)
    for number, word in NUMBERS[method].items() if whole >= LEAST else ():
        lengths = [one for one in SEGMENTS if 2 * one <= nbytes] if word in SEGMENTED else []
        for segment in (0, *lengths):
            decision = forced(question, number, segment)
            seconds = seconds_of(word, decision)
            if seconds < found[0]:
                found = seconds, number, segment, decision.says
    seconds, number, segment, says = found
    return LibraryChoice(method, nbytes, number, segment, says, seconds if number else alone, native.seconds)


def _in_two(predictor: Predictor, question: CallShape, word: str, least: float, left: Sequence[str]) -> float | None:
    """Seconds of an algorithm of two calls, if one of them has a rule or stays with coll/han; None for all others.

    :param predictor: the job's predictor.
    :param question: the call.
    :param word: the algorithm in the library's words.
    :param least: least ratio of predicted times with which another algorithm is chosen.
    :param left: methods that coll/han goes on to run, also inside other calls.
    """
    methods = _IN_TWO.get((question.method, word), ())
    sizes = [question.nbytes // (question.ranks if method in OF_BLOCKS else 1) for method in methods]
    parts = [_choice(predictor, method, nbytes, least) for method, nbytes in zip(methods, sizes, strict=True)]
    if not any(one.number or one.method in left for one in parts):
        return None
    return sum(one.native if one.method in left else one.seconds for one in parts)


def left_to_han(predictor: Predictor, chosen: Sequence[LibraryChoice], among: Sequence[str] = OVER_HOSTS) -> list[str]:
    """The methods that coll/han should go on to run: those whose long calls are not clearly faster by rules.

    :param predictor: the job's predictor.
    :param chosen: the choices of all methods.
    :param among: the methods in question.
    """
    if not _several(predictor):
        return []
    long = {
        method: [one for one in chosen if (one.method, one.nbytes >= LEAST) == (method, True)]
        for method in among
        if method in OVER_HOSTS
    }
    return [method for method, some in long.items() if mean_gain(some) < GAIN]


def mean_gain(chosen: Sequence[LibraryChoice]) -> float:
    """The geometric mean of the predicted gains; 1 if no time is known."""
    gains = [log(one.gain) for one in chosen if 0 < one.seconds < inf and one.native < inf]
    return exp(sum(gains) / len(gains)) if gains else 1.0
