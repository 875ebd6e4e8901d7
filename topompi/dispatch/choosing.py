"""The choice of an algorithm for a call that is not in the table of calls, and the function that runs it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI
from numpy import ndarray

from ..execution.buffers import on_device
from ..execution.native import NativeIntracomm
from ..execution.sizes import nbytes, needs_of, own_bytes
from ..execution.specs import NATIVE, CallSpec, Form, Needs
from ..execution.timing import timed
from ..selection.choice import Choice
from ..selection.classes import size_class
from .calls import Calls, Run
from .parts import Parts

if TYPE_CHECKING:
    from ..selection.trial import Trial

__all__ = ["NOT_UNDERSTOOD", "YOUNG", "choose", "execute", "remember", "run_and_remember"]

# ``running``, with all generators of schedules, takes a third of the time to import that all of topompi does: it is
# imported where the first call is not the library's.
NOT_UNDERSTOOD = Choice("native", "the MPI library's to run or to refuse")
YOUNG = Choice("native", "native: one of the first calls of a new communicator")
ON_DEVICE = Choice("native", "the MPI library's: messages in a device's memory")
ABSENT = Choice("native", "the MPI library's: another rank's arguments cannot be read")
PAYS = 1 << 16  # bytes of a call that takes as long as its plan takes to make


def choose(
    state: Parts,
    spec: CallSpec,
    arguments: tuple[Any, ...],
    root: int | None,
    op: MPI.Op | None,
    measurable: bool = True,
    young: bool = False,
) -> tuple[Choice, int]:
    """Choose the algorithm of a call by the bytes that it moves; the choice is the same on all ranks.

    Calls that we cannot read (a root out of range, a message of unknown form) are left to the MPI library.

    :param state: of the communicator.
    :param spec: the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param root: the root; None in a call without one.
    :param op: the operation of a reduction; None in other calls.
    :param measurable: whether a trial may time the call.
    :param young: whether it is among the first calls of a new communicator, which may soon be freed.
    :returns: the choice, and bytes as ``sizes.nbytes`` or ``sizes.own_bytes`` counts them.
    """
    moved = _understood(state.groups.size, spec, arguments, root, op)
    if state.only and moved is not None:
        return state.only, moved
    if not (young or state.only or state.common.leaves(spec.name)):  # collective: whatever this rank's arguments are
        state.groups.connect()
    if moved is None:
        if any(map(on_device, arguments)):  # on all ranks
            return ON_DEVICE, 0
        if state.groups.connected:
            state.roll_call.abstain(state.calls.made)
        return NOT_UNDERSTOOD, 0
    needs = needs_of(op)
    if young and _repays_no_plan(state, spec, moved, needs):
        return YOUNG, moved
    if spec.uneven:  # a rank knows its own blocks only
        moved = state.selector.typical(spec.name, moved)
    if not state.is_heard((spec.name, size_class(moved), needs)):
        return ABSENT, moved
    choice = state.selector.choose(spec.name, moved, needs, root=root, measurable=measurable)
    return choice, moved


def _understood(
    size: int, spec: CallSpec, arguments: tuple[Any, ...], root: int | None, op: MPI.Op | None
) -> int | None:
    """The bytes that a call moves; None for one that is the MPI library's to run or to refuse."""
    if (root is not None and not 0 <= root < size) or (spec.reduces and not isinstance(op, MPI.Op)):
        return None
    try:
        return (own_bytes if spec.uneven else nbytes)(spec, arguments, size)
    except Exception:  # whatever our look at a message raises
        return None


def _repays_no_plan(state: Parts, spec: CallSpec, moved: int, needs: Needs) -> bool:
    """Whether a call is one of few bytes for which there may be something to choose; the same on all ranks.

    What every such communicator leaves to the MPI library goes on to the table of its calls.
    """
    if spec.uneven:  # no rank knows what the others send
        return True
    if state.common.leaves(spec.name):
        return False
    known = state.selector.known((spec.name, size_class(moved), needs))
    return moved <= PAYS or (known is not None and known.algorithm == NATIVE)


def run_and_remember(
    state: Parts,
    spec: CallSpec,
    choice: Choice,
    arguments: tuple[Any, ...],
    again: Callable[..., None] | None,
) -> Run:
    """What runs a call by a choice; it is put into the table, so that calls like this one find it there.

    :param state: of the communicator.
    :param spec: the call.
    :param choice: what was chosen for it.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param again: called with the communicator and the arguments to choose anew, when a trial goes on to another
        algorithm; None to leave the table as it is.
    """
    run = _runner(state, spec.name, choice.algorithm)
    if choice.trial is not None:
        run = _timed(state, choice.trial, run)
    if again is not None and choice not in (NOT_UNDERSTOOD, ON_DEVICE, ABSENT):
        further = run if choice.trial is None else _tried(state, spec, choice, run, again)
        remember(_table(state, spec, choice), spec, arguments, further)
    return run


def _table(state: Parts, spec: CallSpec, choice: Choice) -> Calls:
    """The table of the communicators for which a choice is made."""
    if choice is YOUNG:
        return state.common.early
    return state.common.natives if state.common.leaves(spec.name) else state.calls


def remember(calls: Calls, spec: CallSpec, arguments: tuple[Any, ...], run: Run) -> None:
    """Put what runs a call into a table, if it has no message or an array, and its operation is predefined.

    :param calls: the table.
    :param spec: the call.
    :param arguments: all arguments of mpi4py's method; their root, operation and bytes are the key.
    :param run: called with the communicator and the arguments of each such call.
    """
    from ..execution.keys import lasting

    given = dict(zip(spec.parameters, arguments, strict=True))
    root, op = given.get("root", 0), given.get("op")
    message = None if spec.sized_by is None else arguments[spec.sized_by]
    if spec.form is Form.NOTHING:
        calls.add(spec.number, 0, None, 0, run)
    elif type(message) is ndarray and lasting(op):
        calls.add(spec.number, int(root), op, message.nbytes, run)  # mpi4py takes any number for a root


def _runner(state: Parts, method: str, algorithm: str) -> Run:
    """The function that runs a call by an algorithm, given the communicator and the arguments."""
    if algorithm == "native":
        native: Run = getattr(NativeIntracomm, method)
        return native
    from ..execution import running

    run = partial(running.run, state.executor, method, algorithm)
    return lambda handle, *arguments: run(arguments)


def _timed(state: Parts, trial: Trial, run: Run) -> Run:
    """The function that runs a call of a trial: when all ranks have met, each notes the seconds of its call."""

    def call(handle: MPI.Intracomm, *arguments: Any) -> None:
        trial.note(timed(state.groups.talks.meet, lambda: run(handle, *arguments)))

    return call


def _tried(state: Parts, spec: CallSpec, choice: Choice, run: Run, again: Callable[..., None]) -> Run:
    """The function that runs further calls of a trial while the trial stays with one algorithm, and then chooses anew.

    Calls of a trial have to follow one another as quickly as later ones will: with more work between two of them the
    network would drain, and then accept at once what it does not accept from many ranks call after call.
    """
    trial, algorithm = choice.trial, choice.algorithm

    def call(handle: MPI.Intracomm, *arguments: Any) -> None:
        if trial is None or trial.upcoming != algorithm:
            again(handle, *arguments)
        elif state.roll_call.hold(state.calls.made):
            trial.next()
            run(handle, *arguments)
        else:
            getattr(NativeIntracomm, spec.name)(handle, *arguments)

    return call


def execute(state: Parts, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a call by the algorithm of this name; collective.

    :param state: of the communicator.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: as ``running.run`` takes it, the same on all ranks.
    :param arguments: all arguments of mpi4py's method, in their order.
    :returns: the algorithm that ran: ``native`` if the given one could not.
    """
    if algorithm != "native":
        from ..execution import running

        return running.run(state.executor, method, algorithm, arguments)
    getattr(NativeIntracomm, method)(state.comm, *arguments)
    return algorithm
