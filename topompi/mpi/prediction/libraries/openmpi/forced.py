"""The algorithms of Open MPI's component coll/tuned that a user can force, by number, as schedules of topompi.

Numbers and names are those that ``ompi_info`` of 5.0.11 prints for the parameters ``coll_tuned_*_algorithm``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base import CallShape, LibraryAlgorithm
from .tuned import COLLECTIVE, family

__all__ = ["NUMBERS", "SEGMENTED", "forced"]

# Left out are a chain, which equals the pipeline with one child for each rank; the algorithms of two ranks; and
# sparbit, which no schedule describes.
NUMBERS: Mapping[str, Mapping[int, str]] = {
    "Bcast": {
        1: "basic_linear",
        3: "pipeline",
        4: "split_binary_tree",
        5: "binary_tree",
        6: "binomial",
        7: "knomial",
        8: "scatter_allgather",
        9: "scatter_allgather_ring",
    },
    "Reduce": {
        1: "linear",
        3: "pipeline",
        4: "binary",
        5: "binomial",
        6: "in-order_binary",
        7: "rabenseifner",
    },
    "Allreduce": {2: "nonoverlapping", 3: "recursive_doubling", 4: "ring", 6: "rabenseifner"},
    "Allgather": {2: "bruck", 3: "recursive_doubling", 4: "ring", 5: "neighbor"},
    "Alltoall": {1: "linear", 2: "pairwise", 3: "modified_bruck"},
    "Reduce_scatter": {1: "non-overlapping", 2: "recursive_halving", 3: "ring", 4: "butterfly"},
    "Reduce_scatter_block": {1: "basic_linear", 2: "recursive_doubling", 3: "recursive_halving", 4: "butterfly"},
    "Gather": {1: "basic_linear", 2: "binomial"},
    "Scatter": {1: "basic_linear", 2: "binomial"},
}
SEGMENTED = ("pipeline",)  # algorithms whose segments our schedules describe


def forced(question: CallShape, number: int, segment: int = 0) -> LibraryAlgorithm:
    """The algorithm of a number for a call, with what the component runs in its place if it cannot run it.

    :param question: the call.
    :param number: a key of ``NUMBERS[question.method]``.
    :param segment: bytes of a segment, for algorithms in ``SEGMENTED``; 0 for whole messages.
    """
    word = NUMBERS[question.method][number]
    says = f"tuned: {word}" + (f", segments of {segment >> 10} KiB" if segment else "")
    collective = COLLECTIVE[question.method]
    if segment:  # a chain of ranks in their order, through which segments pass one after the other
        parameters = {"order": range(question.ranks)}
        return LibraryAlgorithm(collective, "chain", says, max(-(-question.nbytes // segment), 1), parameters)
    algorithm, known = family(word, question)
    return LibraryAlgorithm(collective, algorithm, says, None, known)
