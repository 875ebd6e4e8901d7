"""The reason why an algorithm ran a call, in words, for the table of counted calls."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mpi4py import MPI

from ..execution.sizes import needs_of
from ..prediction.scope import unmodelled
from ..selection.choice import Choice
from ..selection.classes import Key, middle_of, size_class

if TYPE_CHECKING:
    from ..prediction.untuned import Prediction
    from .state import State

__all__ = ["why_ran"]

UNSOUND = "something is wrong with the call on this rank"


def why_ran(
    state: State, method: str, choice: Choice, ran: str, nbytes: int, root: int | None, op: MPI.Op | None
) -> str:
    """The reason why an algorithm ran a call, in words: the reason of the choice, with additions in two cases.

    If another algorithm ran than the chosen one, the text begins with the reason for that. On rank 0 of a virtual
    placement, whose messages do not cross the network, the text ends with the cost model's choice for the real network.

    :param state: topompi's state of the communicator.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param choice: the choice for the call.
    :param ran: name of the algorithm that ran.
    :param nbytes: the call's size in bytes, as the choice counts it.
    :param root: the root; None in a call without one.
    :param op: the operation of a reduction; None in other calls.

    Cost: on rank 0 of a virtual placement one run of the cost model per class of calls; else O(1).
    """
    said = [choice.reason]
    if ran != choice.algorithm:
        refusal = state.executor.unplanned.get((method, choice.algorithm), UNSOUND)
        said = [f"{choice.algorithm} cannot run here: {refusal}", *said]
    elif state.interface.virtual and unmodelled(state.interface) in choice.reason and state.groups.rank == 0:
        real = _on_the_network(state, (method, size_class(nbytes), needs_of(op)), root or 0)
        why = real.reason.removeprefix(f"{real.algorithm}: ")
        said.append(f"on the real network {real.algorithm} would run: {why}")
    return "; ".join(said)


def _on_the_network(state: State, key: Key, root: int) -> Prediction:
    """The cost model's choice for a class of calls, if the ranks of a virtual placement really ran on its hosts.

    :param state: topompi's state of the communicator.
    :param key: the class: method, size class, needs of the operation.
    :param root: the root; it counts only in the first call of a class.
    """
    common = state.common
    if key not in common.predicted:
        from ..prediction.untuned import predict

        size, runs = middle_of(key[1]), partial(state.selector.runs, key)
        common.predicted[key] = predict(common.real_predictor, key[0], size, root, runs, commutative=not key[2].order)
    return common.predicted[key]
