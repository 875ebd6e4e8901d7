"""The default algorithms of MPICH 4 and 5.

The sizes and the order of the rules are facts from the tables built into MPICH 5.0.2 (its "collective selection" in
JSON: one table for the whole job, one for compositions over hosts, one inside hosts), checked by recorded messages of
5.0.2 and 4.3.2. They agree with the defaults of its variables ``MPIR_CVAR_BCAST_SHORT_MSG_SIZE`` and others. The
messages of the algorithms are described in Thakur, Rabenseifner and Gropp, Optimization of collective communication
operations in MPICH, 2005.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ....schedules.exchanges import with_second_heads
from ...execution.specs import CALLS
from .base import CallShape, LibraryAlgorithm

__all__ = ["MPICH", "recognise"]

_VERSION = re.compile(r"^MPICH Version:\s*([45]\.\S+)", re.MULTILINE)
# Variables that choose other algorithms, or change the sizes at which MPICH changes algorithms.
_CHANGES = re.compile(
    r"^(MPIR_CVAR|MPIR_PARAM|MPICH)_\w*(ALGORITHM|COMPOSITION|COLL|SIZE|MIN_PROCS|KVAL|THROTTLE|CLIQUES|NO_?LOCAL)"
)

PIECE = 32768  # bytes: size to which a ring of Allgatherv cuts messages (MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE)
COUNTED = ("Gatherv", "Scatterv", "Alltoallv", "Alltoallw")


@dataclass(frozen=True)
class TableLine:
    """A line of a table of algorithms, in which the first line that fits a call decides.

    :param algorithm: MPICH's name of the algorithm.
    :param below: number of ranks below which the line fits; None for any number.
    :param power: True if the number of ranks must be a power of two.
    :param most: largest size in bytes; None for any.
    :param total: True if ``most`` is the size of all ranks' blocks together.
    :param commutes: True if the operation must commute; None for any. MPICH checks instead whether it is predefined.
    :param items: True if a vector must have at least as many items as the largest power of two up to the number of
        ranks.
    """

    algorithm: str
    below: int | None = None
    power: bool = False
    most: int | None = None
    total: bool = False
    commutes: bool | None = None
    items: bool = False

    def fits(self, question: CallShape, ranks: int) -> bool:
        """Whether this line of the table fits a call.

        :param question: the call.
        :param ranks: number of ranks that run the algorithm: all of the job, or one per host.
        """
        nbytes = question.nbytes * ranks if self.total else question.nbytes
        return (
            (self.below is None or ranks < self.below)
            and (not self.power or ranks.bit_count() == 1)
            and (self.most is None or nbytes <= self.most)
            and self.commutes in (None, question.commutative)
            and (not self.items or question.nbytes // question.item >= 1 << ranks.bit_length() - 1)
        )


TABLES: Mapping[str, tuple[TableLine, ...]] = {
    "bcast": (
        TableLine("binomial", below=8),
        TableLine("binomial", most=12288),
        TableLine("scatter_recursive_doubling_allgather", power=True, most=524288),
        TableLine("scatter_ring_allgather"),
    ),
    "gather": (TableLine("binomial"),),
    "scatter": (TableLine("binomial"),),
    "allgather": (
        TableLine("recursive_doubling", power=True, most=524287, total=True),
        TableLine("ring", power=True),
        TableLine("brucks", most=81919, total=True),
        TableLine("ring"),
    ),
    "reduce": (
        TableLine("binomial", most=2048),
        TableLine("reduce_scatter_gather", commutes=True, items=True),
        TableLine("binomial"),
    ),
    "allreduce": (
        TableLine("recursive_doubling", most=8),
        TableLine("reduce_scatter_allgather", commutes=True, items=True),
        TableLine("recursive_doubling"),
    ),
    "reduce_scatter": (
        TableLine("recursive_halving", most=524287, commutes=True),
        TableLine("pairwise", commutes=True),
        TableLine("noncommutative", power=True),
        TableLine("recursive_doubling"),
    ),
    "scan": (TableLine("recursive_doubling"),),
    "exscan": (TableLine("recursive_doubling"),),
    # The table lists Bruck's algorithm from 8 ranks on; recorded messages of 4.3.2 and 5.0.2 show it from 9 on.
    "alltoall": (
        TableLine("scattered", below=9, most=32768),
        TableLine("brucks", most=256),
        TableLine("scattered", most=32768),
        TableLine("pairwise"),
    ),
}


def _plain(algorithm: str, **parameters: object) -> Callable[[int], tuple[str, dict[str, object]]]:
    """The function of a number of ranks that returns an algorithm of topompi with the same parameters for any number.

    :param algorithm: name of the algorithm, which the function returns with the parameters.
    :param parameters: further arguments of the algorithm's generator, by name.
    """
    return lambda ranks: (algorithm, parameters)


def _ordered(algorithm: str, **parameters: object) -> Callable[[int], tuple[str, dict[str, object]]]:
    """The function of a number of ranks that returns an algorithm of topompi with the ranks in their order.

    :param algorithm: name of the algorithm, which the function returns with the parameters.
    :param parameters: further arguments of the algorithm's generator, by name; ``order`` is added.
    """
    return lambda ranks: (algorithm, {"order": np.arange(ranks), **parameters})


def _second(algorithm: str, **parameters: object) -> Callable[[int], tuple[str, dict[str, object]]]:
    """The same function as `_ordered` makes, but for algorithms that first reduce pairs of ranks to one rank each.

    They do so if the number of ranks is no power of two. The second rank of each pair then goes on, not the first one.

    :param algorithm: name of the algorithm, which the function returns with the parameters.
    :param parameters: further arguments of the algorithm's generator, by name; ``order`` is added.
    """
    return lambda ranks: (algorithm, {"order": with_second_heads(np.arange(ranks)), **parameters})


def _pairs(ranks: int) -> tuple[str, dict[str, object]]:
    return ("shift" if ranks & (ranks - 1) else "pairwise"), {}


OURS: Mapping[tuple[str, str], Callable[[int], tuple[str, dict[str, object]]]] = {
    ("bcast", "binomial"): _plain("binomial"),
    ("bcast", "scatter_recursive_doubling_allgather"): _plain("scatter_doubling"),
    ("bcast", "scatter_ring_allgather"): _plain("scatter_ring"),
    ("gather", "binomial"): _plain("binomial"),
    ("scatter", "binomial"): _plain("binomial"),
    ("gather", "linear"): _plain("at_once"),
    ("scatter", "linear"): _plain("at_once"),
    ("allgather", "recursive_doubling"): _ordered("doubling", near_last=False),
    ("allgather", "ring"): _ordered("ring"),
    ("allgather", "brucks"): _plain("bruck"),
    ("reduce", "binomial"): _plain("binomial"),
    ("reduce", "reduce_scatter_gather"): _ordered("halving", root_joins=False),
    ("allreduce", "recursive_doubling"): _second("doubling"),
    ("allreduce", "reduce_scatter_allgather"): _second("halving"),
    ("reduce_scatter", "recursive_halving"): _second("halving", near_first=False),
    ("reduce_scatter", "pairwise"): _plain("pairwise"),
    ("reduce_scatter", "noncommutative"): _ordered("halving"),
    ("scan", "recursive_doubling"): _plain("exchange"),
    ("exscan", "recursive_doubling"): _plain("exchange"),
    ("alltoall", "scattered"): _plain("scatter_destination"),
    ("alltoall", "brucks"): _plain("bruck"),
    ("alltoall", "pairwise"): _pairs,
}


@dataclass(frozen=True)
class MPICH:
    """The model of MPICH: the algorithms that it chooses for calls.

    :param version: version of the library, for example ``5.0.2``.
    """

    version: str = "5.0.2"

    @property
    def name(self) -> str:
        """Name and version, for example ``MPICH 5.0.2``."""
        return f"MPICH {self.version}"

    def decide(self, question: CallShape) -> LibraryAlgorithm | None:
        """The algorithm that MPICH runs for a call.

        It is None if no schedule describes the call, its size is unknown, or all ranks are on one host.

        :param question: the call.
        """
        collective = CALLS[question.method].collective
        if collective not in TABLES or (question.method in ("Allgatherv", "Reduce_scatter") and not question.nbytes):
            return None
        hosts = len(np.unique(question.rank_host))
        if collective in ("bcast", "reduce", "allreduce") and hosts < question.ranks:
            return _over_hosts(collective, question, hosts)
        runs = np.count_nonzero(np.diff(question.rank_host)) + 1
        if collective == "scan" and 1 < hosts == runs < question.ranks:
            return LibraryAlgorithm(collective, "hosts", "over hosts of consecutive ranks")
        return _alone(collective, question)


def _alone(collective: str, question: CallShape) -> LibraryAlgorithm | None:
    """The algorithm that MPICH runs among all ranks, without regard to hosts; None if no schedule describes it."""
    theirs = _theirs(collective, question, question.ranks)
    if collective == "reduce" and not question.commutative:
        return LibraryAlgorithm(collective, "through_zero", f"{theirs} at rank 0")
    if (collective, theirs) not in OURS:
        return None
    pieces = -(-question.nbytes // PIECE)
    if question.method == "Allgatherv" and theirs == "ring" and pieces > 1:
        parameters = {"order": np.arange(question.ranks), "pieces": pieces}
        return LibraryAlgorithm(collective, "ring", f"{theirs}, messages of {PIECE >> 10} KiB", pieces, parameters)
    ours, parameters = OURS[collective, theirs](question.ranks)
    return LibraryAlgorithm(collective, ours, theirs, parameters=parameters)


def _theirs(collective: str, question: CallShape, ranks: int) -> str:
    """MPICH's name of the algorithm for a call of ``ranks`` ranks."""
    if question.method in COUNTED:
        return "scattered" if collective == "alltoall" else "linear"
    return next(rule.algorithm for rule in TABLES[collective] if rule.fits(question, ranks))


def _over_hosts(collective: str, question: CallShape, hosts: int) -> LibraryAlgorithm | None:
    """The algorithm for hosts with several ranks: stages inside hosts, and one between the hosts' first ranks.

    Inside hosts MPICH uses shared memory, which is modelled by binomial trees.
    """
    if hosts == 1:  # MPICH runs the call in shared memory, without messages
        return None
    between, ranks, nbytes = _theirs(collective, question, hosts), question.ranks, question.nbytes
    ours, _ = OURS[collective, between](hosts)
    parameters: dict[str, object] = {"between": ours}
    if collective == "bcast":
        # With fewer than 8 ranks, and for short messages, the root sends to the first rank of its host; else it first
        # broadcasts inside its host. The longest messages ignore hosts.
        power = ranks.bit_count() == 1
        if ranks >= 8 and (nbytes >= 524288 or (nbytes >= 12288 and not power)):
            return _alone(collective, question)
        parameters["at_once"] = ranks >= 8 and nbytes >= 12288
    elif not question.commutative:
        return _alone(collective, question)
    elif collective == "reduce":
        parameters["to_first"] = nbytes > 2048
    else:
        blocks, parameters = 1 << hosts.bit_length() - 1, {"exchange": ours, "second_heads": True}
        return LibraryAlgorithm(
            collective, "leaders", _over(between), blocks if ours == "halving" else None, parameters
        )
    return LibraryAlgorithm(collective, "hosts", _over(between), parameters=parameters)


def _over(between: str) -> str:
    return f"over hosts, {between} between them"


def recognise(version: str, environment: Mapping[str, str]) -> MPICH | None:
    """The model of MPICH for a library's version text; None for another library or release, or changed variables.

    Intel MPI, Cray MPICH and MVAPICH derive from MPICH, and have other version texts: they choose by tables of their
    own, for processors and adapters, which this model lacks.

    :param version: text that ``MPI.Get_library_version()`` returns.
    :param environment: environment variables of the ranks.
    """
    found = _VERSION.match(version)
    if found is None or any(map(_CHANGES.match, environment)):
        return None
    return MPICH(found.group(1))
