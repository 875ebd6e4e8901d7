"""The algorithms of Open MPI's components coll/tuned and coll/basic, as schedules of topompi.

They are those of ``ompi/mca/coll/base/coll_base_*.c``, version 5.0.11. All run in rank order, beginning with the root
if there is one. The algorithms used instead when counts or the number of ranks do not suit are included.
"""

from __future__ import annotations

from collections.abc import Callable

from ..base import CallShape, LibraryAlgorithm
from .fixed import fixed_decision

__all__ = ["COLLECTIVE", "family", "tuned"]

_Made = tuple[str, dict[str, object]]  # name of an algorithm, and its parameters

COLLECTIVE = {
    "Bcast": "bcast",
    "Gather": "gather",
    "Gatherv": "gather",
    "Scatter": "scatter",
    "Scatterv": "scatter",
    "Allgather": "allgather",
    "Allgatherv": "allgather",
    "Alltoall": "alltoall",
    "Alltoallv": "alltoall",
    "Alltoallw": "alltoall",
    "Reduce": "reduce",
    "Allreduce": "allreduce",
    "Reduce_scatter": "reduce_scatter",
    "Reduce_scatter_block": "reduce_scatter",
    "Scan": "scan",
    "Exscan": "exscan",
}
# Calls that coll/tuned leaves to coll/basic, which has one algorithm for each.
_BASIC: dict[str, _Made] = {
    "Gatherv": ("at_once", {}),
    "Scatterv": ("at_once", {}),
    "Alltoallw": ("at_once", {}),
    "Scan": ("chain", {}),
    "Exscan": ("chain", {}),
}
# Shapes in ``schedules.ranktrees`` by the component's names of trees.
_BCAST_TREES = {
    "basic_linear": "linear",
    "chain": "chain",
    "pipeline": "chain",
    "binary_tree": "binary",
    "binomial": "doubling",
    "knomial": "quaternomial",
}
_REDUCE_TREES = {
    "linear": "linear",
    "chain": "chain",
    "pipeline": "chain",
    "binary": "binary",
    "binomial": "binomial",
    "in-order_binary": "in_order",
}


def tuned(question: CallShape) -> LibraryAlgorithm | None:
    """The algorithm that coll/tuned or coll/basic runs for a call; None for a call that the model does not know."""
    collective = COLLECTIVE.get(question.method)
    if collective is None or question.ranks < 2:
        return None
    if question.method in _BASIC:
        algorithm, parameters = _BASIC[question.method]
        blocks = 1 if collective in ("scan", "exscan") else None
        return LibraryAlgorithm(collective, algorithm, "basic: linear", blocks, parameters)
    word = chosen_word(question)
    algorithm, parameters = family(word, question)
    return LibraryAlgorithm(collective, algorithm, f"tuned: {word}", None, parameters)


def family(word: str, question: CallShape) -> tuple[str, dict[str, object]]:
    """The algorithm of topompi with the messages of one of the component's algorithms, and its parameters.

    :param word: the component's name of the algorithm.
    :param question: the call, which the algorithm may refuse; then another one runs.
    """
    return _FAMILIES[COLLECTIVE[question.method]](word, question)


def chosen_word(question: CallShape) -> str:
    """The name of the algorithm that coll/tuned runs, as ``ompi_info`` prints it."""
    of_block = question.method == "Reduce_scatter_block"
    nbytes = question.nbytes // question.ranks if of_block else question.nbytes
    return fixed_decision(question.method, question.ranks, nbytes, commutative=question.commutative)


def _items(question: CallShape) -> int:
    return question.nbytes // max(question.item, 1)


def _in_order(question: CallShape) -> dict[str, object]:
    """The argument of a generator that keeps ranks in their order; by default it sorts them by nearness."""
    return {"order": range(question.ranks)}


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _bcast(word: str, question: CallShape) -> _Made:
    items = _items(question)
    if word == "split_binary_tree":
        return ("split_binary", {}) if items > 1 else ("shaped_tree", {"shape": "chain"})
    if word == "scatter_allgather_ring":
        return ("scatter_ring", {}) if items >= question.ranks else ("shaped_tree", {"shape": "linear"})
    if word == "scatter_allgather":
        return ("scatter_doubling_handing", {}) if items >= question.ranks else ("shaped_tree", {"shape": "linear"})
    return "shaped_tree", {"shape": _BCAST_TREES[word]}


def _reduce(word: str, question: CallShape) -> _Made:
    if word != "rabenseifner":
        return "shaped_tree", {"shape": _REDUCE_TREES[word]}
    if _items(question) < 1 << question.ranks.bit_length() - 1:
        return "shaped_tree", {"shape": "linear"}
    return "halves", {}


def _allreduce(word: str, question: CallShape) -> _Made:
    if word == "basic_linear":
        return "through_one", {"up": "linear", "down": "linear"}
    if word == "nonoverlapping":
        return "through_one", {"up": _shape_of("Reduce", question), "down": _shape_of("Bcast", question)}
    if word == "rabenseifner":
        return "halves", {}
    # These choices set no segment size, and a segmented ring without one is a ring. The component runs no ring if the
    # vector has fewer items than there are ranks.
    if word in ("ring", "segmented_ring") and _items(question) >= question.ranks:
        return "ring", _in_order(question)
    return "doubling_even", {}


def _shape_of(method: str, question: CallShape, nbytes: int | None = None) -> str:
    """The shape of the tree of a reduction or broadcast inside another collective."""
    inner = CallShape(
        method,
        question.nbytes if nbytes is None else nbytes,
        question.rank_host,
        question.commutative,
        question.item,
    )
    _, parameters = (_reduce if method == "Reduce" else _bcast)(chosen_word(inner), inner)
    return str(parameters.get("shape", "linear"))


def _reduce_scatter(word: str, question: CallShape) -> _Made:
    if word in ("non-overlapping", "basic_linear"):
        down = "linear"
        if question.method == "Reduce_scatter_block":
            inner = CallShape("Scatter", question.nbytes // question.ranks, question.rank_host)
            down = "binomial" if chosen_word(inner) == "binomial" else "linear"
        return "through_one", {"up": _shape_of("Reduce", question), "down": down}
    if word == "ring":
        return "ring", _in_order(question)
    if word == "recursive_doubling":
        return "outside", {}
    if word == "recursive_halving":
        return "far_halving", {}
    if question.method == "Reduce_scatter_block" and _is_power_of_two(question.ranks):
        return "halving", _in_order(question)
    return "butterfly", {}


def _allgather(word: str, question: CallShape) -> _Made:
    if word == "default":
        return "through_one", {"down": _shape_of("Bcast", question, question.nbytes * question.ranks)}
    if word == "two_proc":
        return "doubling", {**_in_order(question), "near_last": False}
    if word == "recursive_doubling" and _is_power_of_two(question.ranks):
        return "doubling", {**_in_order(question), "near_last": False}
    if word in ("bruck", "recursive_doubling"):
        return "bruck", {}
    return ("neighbours", {}) if word == "neighbor" and question.ranks % 2 == 0 else ("ring", _in_order(question))


def _alltoall(word: str, question: CallShape) -> _Made:
    if word == "modified_bruck":
        return "bruck", {}
    # All linear algorithms start all messages at once. linear_sync limits the number under way, but the default limit
    # is the number of messages.
    return ("at_once" if "linear" in word else "shift"), {}


def _gather(word: str, question: CallShape) -> _Made:
    return ("binomial" if word == "binomial" else "at_once"), {}


_FAMILIES: dict[str, Callable[[str, CallShape], _Made]] = {
    "bcast": _bcast,
    "gather": _gather,
    "scatter": _gather,
    "allgather": _allgather,
    "alltoall": _alltoall,
    "reduce": _reduce,
    "allreduce": _allreduce,
    "reduce_scatter": _reduce_scatter,
}
