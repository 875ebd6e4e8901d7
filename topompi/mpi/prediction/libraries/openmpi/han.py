"""The algorithms of Open MPI's component coll/han, which runs a collective as calls inside hosts and between hosts.

It cuts long vectors into segments, and makes one call inside hosts and one between hosts for each segment.

The facts are those of ``ompi/mca/coll/han``, version 5.0.11. The ranks of a host are its low communicator. The ranks
with the same index on their hosts are an up communicator; only the up communicator with the root's index (0 in a call
without a root) is used. On low and up communicators coll/tuned chooses the algorithm of blocking calls. Non-blocking
calls, which are on the up communicator only, run by coll/libnbc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .....schedules.nested import pipelined
from .....schedules.network import Network
from .....schedules.phases import GridPhase, sequence
from .....schedules.schedule import INPUT, OUTPUT, SCRATCH, Schedule
from .....schedules.transfers import Rows, local_moves, transfers
from ..base import CallShape, LibraryAlgorithm
from .hosts import SEGMENT, Build, HanCommunicators
from .tuned import tuned

__all__ = ["HanDecision", "han"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class HanDecision(LibraryAlgorithm):
    """The algorithm that coll/han runs for a call.

    Unlike in other decisions, ``algorithm`` is not the name of a schedule's algorithm, and ``parameters`` describe the
    call.

    :param question: the call.
    """

    question: CallShape = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, question: CallShape, collective: str, algorithm: str, says: str) -> HanDecision:
        """The decision for a call.

        :param question: the call.
        :param collective: the collective of the schedule.
        :param algorithm: short description of the algorithm.
        :param says: description in the library's words.
        """
        of_call = {name: getattr(question, name) for name in ("method", "nbytes", "commutative", "item")}
        return cls(collective, algorithm, says, None, of_call, question=question)

    def schedule(self, network: Network, root: int = 0) -> Schedule:
        """The schedule with the library's messages.

        :param network: the job's network; the hosts of the ranks are taken from the call, not from it.
        :param root: the root of a rooted collective.
        """
        build = _BUILDERS[self.collective] if _takes(self.question) else _THROUGH_ONE[self.collective]
        return build(Build(self.question, network, root))


def han(question: CallShape) -> HanDecision | None:
    """The algorithm that coll/han runs for a call; None for a call that it leaves to other components.

    It leaves calls with operations that do not commute, and calls, except ``Allreduce``, in jobs whose hosts have
    different numbers of ranks. If the other component runs such a call as two calls, one to rank 0 (for example a
    gather) and one from rank 0 (a broadcast), coll/han may run these two. The result is then a decision, too.

    :param question: the call, on ranks for which coll/han has priority.
    """
    made, balanced = tuned(question), HanCommunicators.of(question.rank_host).balanced
    if made is None:
        return None
    if _takes(question) and (balanced or question.method == "Allreduce"):
        vectors = ("Bcast", "Reduce", "Allreduce")
        segments = max(-(-question.nbytes // SEGMENT), 1) if question.method in vectors else 1
        says = "han: inside hosts and between them" + (f", {segments} segments of 64 KiB" if segments > 1 else "")
        return HanDecision.of(question, made.collective, "two levels", says)
    direct = made.says == "tuned: basic_linear" and made.collective == "allreduce"
    if made.algorithm == "through_one" and balanced and not direct:
        return HanDecision.of(question, made.collective, "through one, two levels", f"{made.says}, with han")
    return None


def _takes(question: CallShape) -> bool:
    """Whether coll/han has an algorithm of its own for the call."""
    method = question.method
    return method.lower() in _BUILDERS and (question.commutative or method not in ("Reduce", "Allreduce"))


def _bcast(build: Build) -> Schedule:
    segments = build.segments()
    stages: list[tuple[Rows, ...]] = []
    for at, blocks, nbytes in segments:
        place = (OUTPUT, at)
        up = build.ibcast(blocks, place) if at else build.tuned(build.up, "Bcast", nbytes, blocks, place, place)
        stages.append((up, build.tuned(build.low, "Bcast", nbytes, blocks, place, place)))
    total = _total(segments)
    own = local_moves(0, build.root, (INPUT, 0), (OUTPUT, 0), total)
    return build.finished(sequence(own, pipelined(stages)), total)


def _reduce(build: Build) -> Schedule:
    segments = build.segments()
    return build.finished(pipelined(_reduced(build, segments)), _total(segments))


def _reduced(build: Build, segments: list[tuple[int, int, int]]) -> list[tuple[Rows, ...]]:
    """The stages of each segment: a reduction inside hosts, then one between them."""
    sums = build.scratch(_total(segments))
    stages: list[tuple[Rows, ...]] = []
    for at, blocks, nbytes in segments:
        between = (SCRATCH, sums + at)
        low = build.tuned(build.low, "Reduce", nbytes, blocks, (INPUT, at), between)
        stages.append((low, build.ireduce(nbytes, blocks, between, (OUTPUT, at))))
    return stages


def _allreduce(build: Build) -> Schedule:
    segments, stages = build.segments(), []
    for (at, blocks, nbytes), reduced in zip(segments, _reduced(build, segments), strict=True):
        place = (OUTPUT, at)
        spread = build.ibcast(blocks, place), build.tuned(build.low, "Bcast", nbytes, blocks, place, place)
        stages.append((*reduced, *spread))
    return build.finished(pipelined(stages), _total(segments))


def _gather(build: Build) -> Schedule:
    host, whole, order = *_shares(build), build.by_hosts()
    each, nbytes = len(order) // len(build.leaders), build.question.nbytes
    low = build.tuned(build.low, "Gather", nbytes, 1, (INPUT, 0), host)
    up = build.tuned(build.up, "Gather", each * nbytes, each, host, whole)
    back = local_moves(0, build.root, (SCRATCH, whole[1] + np.arange(build.size)), (OUTPUT, order), 1)
    return build.finished(sequence(low, up, back), 1)


def _scatter(build: Build) -> Schedule:
    host, whole, order = *_shares(build), build.by_hosts()
    each, nbytes = len(order) // len(build.leaders), build.question.nbytes
    there = local_moves(0, build.root, (INPUT, order), (SCRATCH, whole[1] + np.arange(build.size)), 1)
    up = build.tuned(build.up, "Scatter", each * nbytes, each, whole, host)
    low = build.tuned(build.low, "Scatter", nbytes, 1, host, (OUTPUT, 0))
    return build.finished(sequence(there, up, low), 1)


def _allgather(build: Build) -> Schedule:
    host, whole, order = *_shares(build), build.by_hosts()
    each, nbytes = len(order) // len(build.leaders), build.question.nbytes
    low = build.tuned(build.low, "Gather", nbytes, 1, (INPUT, 0), host)
    up = build.tuned(build.up, "Allgather", each * nbytes, each, host, whole)
    places = whole[1] + np.arange(build.size)

    def moved(steps: Integers, which: Integers) -> Integers:
        return local_moves(steps[:, None], build.leaders[which, None], (SCRATCH, places), (OUTPUT, order), 1)

    number = len(build.leaders)
    back = GridPhase(1, members=number, make=moved, near=lambda rank: np.flatnonzero(build.leaders == rank), local=True)
    spread = build.tuned(build.low, "Bcast", build.size * nbytes, build.size, (OUTPUT, 0), (OUTPUT, 0))
    return build.finished(sequence(low, up, back, spread), 1)


def _inner(build: Build, method: str, nbytes: int) -> Schedule:
    """The schedule by coll/han of a call to or from rank 0 that is half of another call (the gather of an allgather).

    :param build: parts of the schedule of the whole call.
    :param method: mpi4py's name of the call to or from rank 0.
    :param nbytes: size of the call to or from rank 0, in bytes.
    """
    inner = CallShape(method, nbytes, build.question.rank_host, True, build.question.item)
    return _BUILDERS[method.lower()](Build(inner, build.network, 0, 1 if method == "Scatter" else build.size))


def _allreduce_through_one(build: Build) -> Schedule:
    spread = _inner(build, "Bcast", build.question.nbytes)
    reduced = build.tuned(build.every, "Reduce", build.question.nbytes, spread.blocks, (INPUT, 0), (OUTPUT, 0))
    return build.finished(sequence(reduced, build.whole(spread, (OUTPUT, 0), (OUTPUT, 0))), spread.blocks)


def _allgather_through_one(build: Build) -> Schedule:
    ranks = np.arange(build.size)
    spread = _inner(build, "Bcast", build.size * build.question.nbytes)
    share = spread.blocks // build.size
    gather = transfers(0, ranks, 0, (INPUT, 0), (OUTPUT, ranks * share), share)
    return build.finished(sequence(gather, build.whole(spread, (OUTPUT, 0), (OUTPUT, 0))), share)


def _reduce_scatter_through_one(build: Build) -> Schedule:
    ranks, nbytes = np.arange(build.size), build.question.nbytes
    reduced = _inner(build, "Reduce", nbytes) if build.question.commutative else None
    blocks = reduced.blocks if reduced is not None else build.size
    share, sums = blocks // build.size, (SCRATCH, build.scratch(blocks))
    up = build.tuned(build.every, "Reduce", nbytes, blocks, (INPUT, 0), sums)
    if reduced is not None:
        up = build.whole(reduced, (INPUT, 0), sums)
    if build.question.method == "Reduce_scatter":
        return build.finished(
            sequence(up, transfers(0, 0, ranks, (SCRATCH, sums[1] + ranks * share), (OUTPUT, 0), share)), share
        )
    scatter = _inner(build, "Scatter", nbytes // build.size)
    return build.finished(sequence(up, build.whole(scatter, sums, (OUTPUT, 0), share)), share)


def _shares(build: Build) -> tuple[tuple[int, int], tuple[int, int]]:
    """Reserve scratch memory for blocks that leaders gather from, or scatter to, the ranks of their hosts.

    :returns: buffer and first block of the memory for the blocks of one host, then of that for the blocks of all hosts.
    """
    each = build.size // len(build.leaders)
    return (SCRATCH, build.scratch(each)), (SCRATCH, build.scratch(build.size))


def _total(segments: list[tuple[int, int, int]]) -> int:
    at, blocks, _ = segments[-1]
    return at + blocks


_BUILDERS: dict[str, Callable[[Build], Schedule]] = {
    "bcast": _bcast,
    "reduce": _reduce,
    "allreduce": _allreduce,
    "gather": _gather,
    "scatter": _scatter,
    "allgather": _allgather,
}
_THROUGH_ONE: dict[str, Callable[[Build], Schedule]] = {
    "allreduce": _allreduce_through_one,
    "allgather": _allgather_through_one,
    "reduce_scatter": _reduce_scatter_through_one,
}
