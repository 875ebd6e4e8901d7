"""The algorithms of MPICH that a file can select for a call, and those of Intel MPI with the same messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...execution.specs import CALLS
from .base import CallShape, LibraryAlgorithm
from .mpich import OURS

__all__ = ["ALGORITHMS", "INTEL", "PIPELINE", "forced", "intel_forced"]

PIPELINE = "pipelined_tree"  # with one child for each rank, thus a chain of ranks in their order from the root on
CHUNKS = (8 << 10, 32 << 10, 128 << 10)  # bytes to which the pipeline cuts messages

# MPICH's names of the algorithms by mpi4py's name of the call; their numbers in a `LibraryChoice` count from 1.
ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "Bcast": ("binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather", PIPELINE),
    "Reduce": ("binomial", "reduce_scatter_gather"),
    "Allreduce": ("recursive_doubling", "reduce_scatter_allgather", "ring"),
    "Allgather": ("recursive_doubling", "brucks", "ring"),
    "Alltoall": ("brucks", "scattered", "pairwise"),
    "Reduce_scatter": ("recursive_halving", "pairwise"),
    "Reduce_scatter_block": ("recursive_halving", "pairwise"),
}
POWERS = ("scatter_recursive_doubling_allgather",)  # algorithms that need a power of two of ranks

# Intel's numbers of algorithms, with MPICH's name of the algorithm. Left out are those for whose messages Intel has no
# public description. Source: Intel MPI Library, Developer Reference for Linux, I_MPI_ADJUST family, 2019 and 2020.
INTEL: Mapping[str, Mapping[int, str]] = {
    "Bcast": {1: "binomial", 2: "scatter_recursive_doubling_allgather", 3: "scatter_ring_allgather"},
    "Reduce": {2: "binomial", 5: "reduce_scatter_gather"},
    "Allreduce": {1: "recursive_doubling", 2: "reduce_scatter_allgather", 8: "ring"},
    "Allgather": {1: "recursive_doubling", 2: "brucks", 3: "ring"},
    "Alltoall": {1: "brucks", 2: "scattered", 3: "pairwise"},
    "Reduce_scatter": {1: "recursive_halving", 2: "pairwise"},
}


def forced(question: CallShape) -> Iterator[tuple[int, int, LibraryAlgorithm]]:
    """The number, the bytes of a segment (0 for whole messages) and the schedule of each algorithm that suits a call.

    All run among all ranks, without regard to hosts.

    :param question: the call.
    """
    for number, word in enumerate(ALGORITHMS.get(question.method, ()), 1):
        if word == PIPELINE:
            for chunk in CHUNKS:
                if 2 * chunk <= question.nbytes:
                    says, pieces = f"{word}, messages of {chunk >> 10} KiB", -(-question.nbytes // chunk)
                    in_order = {"order": np.arange(question.ranks)}
                    yield number, chunk, LibraryAlgorithm("bcast", "chain", says, pieces, in_order)
        elif (decision := _decision(question, word)) is not None:
            yield number, 0, decision


def intel_forced(question: CallShape) -> Iterator[tuple[int, int, LibraryAlgorithm]]:
    """Intel's number, 0 and the schedule of each algorithm of Intel MPI that suits a call.

    :param question: the call.
    """
    for number, word in INTEL.get(question.method, {}).items():
        if (decision := _decision(question, word)) is not None:
            yield number, 0, decision


def _decision(question: CallShape, word: str) -> LibraryAlgorithm | None:
    """The schedule of an algorithm; None if it needs another number of ranks, or more items than the call has."""
    collective, ranks = CALLS[question.method].collective, question.ranks
    doubling = collective == "allgather" and word == "recursive_doubling"
    if (word in POWERS or doubling) and ranks.bit_count() > 1:
        return None
    if collective in ("reduce", "allreduce") and question.nbytes // question.item < ranks:
        return None
    if (collective, word) == ("allreduce", "ring"):
        return LibraryAlgorithm(collective, "ring", word, parameters={"order": np.arange(ranks)})
    ours, parameters = OURS[collective, word](ranks)
    return LibraryAlgorithm(collective, ours, word, parameters=parameters)
