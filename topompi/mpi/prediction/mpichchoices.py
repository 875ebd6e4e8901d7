"""The choice among the algorithms of MPICH and of Intel MPI by the cost model, for files that the libraries read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from .libraries.base import CallShape, LibraryAlgorithm
from .libraries.mpich_forced import ALGORITHMS, forced, intel_forced
from .librarychoices import LEAST, OF_BLOCKS, SIZES, LibraryChoice
from .predictor import Predictor
from .untuned import GAIN

__all__ = ["intel_choices", "mpich_choices"]

Rivals = Callable[[CallShape], Iterable[tuple[int, int, LibraryAlgorithm]]]


def mpich_choices(predictor: Predictor, method: str, known: Collection[str] | None = None) -> list[LibraryChoice]:
    """The choice for each size: that of MPICH unless another of its algorithms is predicted to be clearly faster.

    Numbers in the choices are those of ``ALGORITHMS``. Small calls are left to MPICH, as Open MPI's are to it.

    :param predictor: the job's predictor, with MPICH as its library.
    :param method: a key of ``mpich_forced.ALGORITHMS``.
    :param known: names of algorithms that the library has; None for all.
    Cost: about 5 predictions for each size.
    """
    numbers = {number for number, word in enumerate(ALGORITHMS[method], 1) if known is None or word in known}
    return _choices(predictor, method, lambda question: (one for one in forced(question) if one[0] in numbers))


def intel_choices(predictor: Predictor, method: str) -> list[LibraryChoice]:
    """The choice for each size among Intel's algorithms, with Intel's numbers; 0 if none is clearly faster.

    Intel's own choices are not public. An algorithm is compared with the fastest of the predictor's libraries instead.

    :param predictor: the job's predictor, without a library.
    :param method: a key of ``mpich_forced.INTEL``.
    """
    return _choices(predictor, method, intel_forced)


def _choices(predictor: Predictor, method: str, rivals: Rivals) -> list[LibraryChoice]:
    host = np.asarray(predictor.interface.rank_host, dtype=np.int64)
    chosen = []
    for nbytes in SIZES:
        native = predictor.native(method, nbytes, 0)
        best = native.seconds / GAIN, 0, 0, native.says
        if nbytes * (len(host) if method in OF_BLOCKS else 1) >= LEAST:
            for number, segment, decision in rivals(CallShape(method, nbytes, host)):
                seconds = predictor.decided(decision, nbytes, 0)
                if seconds < best[0]:
                    best = seconds, number, segment, decision.says
        seconds, number, segment, says = best
        seconds = seconds if number else native.seconds
        chosen.append(LibraryChoice(method, nbytes, number, segment, says, seconds, native.seconds))
    return chosen
