"""The choice of an algorithm for a call that is not in the table of calls, and the function that runs the call."""

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
from ..selection.policy import UNRULED
from .calls import Calls, Run
from .state import State

if TYPE_CHECKING:
    from ..selection.trial import Trial

__all__ = ["NOT_UNDERSTOOD", "ON_DEVICE", "UNPLANNED", "YOUNG", "choose", "remember", "run_chosen", "runner"]

# Importing ``running``, with all generators of schedules, takes a third of the time of importing all of topompi: it is
# imported at the first call that the MPI library does not run.
NOT_UNDERSTOOD = Choice("native", "the MPI library's to run or to refuse")
YOUNG = Choice("native", "native: one of the first calls of a new communicator")
UNPLANNED = Choice("native", "native: no blocking call of neighbours and no request has made a plan before")
ON_DEVICE = Choice("native", "the MPI library's: messages in a device's memory")
ABSENT = Choice("native", "the MPI library's: another rank's arguments cannot be read")
# Bytes of a call that takes as long as making its plan. Among a new communicator's first calls, the MPI library runs
# the calls up to this size, because the communicator may be freed before a plan pays off.
PAYS = 1 << 16


def choose(
    state: State,
    spec: CallSpec,
    arguments: tuple[object, ...],
    root: int | None,
    op: MPI.Op | None,
    persistent: bool = False,
    young: bool = False,
) -> tuple[Choice, int]:
    """Choose the algorithm of a call by its size in bytes; the choice is the same on all ranks.

    If topompi cannot read a call (root out of range, message of unknown form), the MPI library runs it.

    :param state: topompi's state of the communicator.
    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param root: the root; None in a call without one.
    :param op: the operation of a reduction; None in other calls.
    :param persistent: True for a persistent call, which only a rule takes from the MPI library.
    :param young: True for one of the first calls of a new communicator, which may be freed before a plan pays off.
    :returns: the choice, and the bytes as counted by ``sizes.nbytes`` or ``sizes.own_bytes``.
    """
    moved = _understood(state.groups.size, spec, arguments, root, op)
    if state.only and moved is not None:
        return state.only, moved
    if persistent and not state.common.policy.asks(spec.name):
        return UNRULED, moved or 0
    # Connecting is collective, so that the condition must not depend on this rank's arguments.
    if not (young or state.only or state.common.leaves(spec.name)):
        state.groups.connect()
    if moved is None:
        if any(map(on_device, arguments)):  # all ranks have device memory or none has, so they need not ask each other
            return ON_DEVICE, 0
        if state.groups.connected:
            state.roll_call.abstain(state.calls.made)
        return NOT_UNDERSTOOD, 0
    needs = needs_of(op)
    if young and _repays_no_plan(state, spec, moved, needs):
        return YOUNG, moved
    if spec.uneven:  # each rank knows the bytes of its own blocks only
        moved = state.selector.typical(spec.name, moved)
    if not state.is_heard((spec.name, size_class(moved), needs)):
        return ABSENT, moved
    if persistent:
        return state.selector.request(spec.name, moved, needs), moved
    return state.selector.choose(spec.name, moved, needs, root=root), moved


def _understood(
    size: int, spec: CallSpec, arguments: tuple[object, ...], root: int | None, op: MPI.Op | None
) -> int | None:
    """The bytes that a call moves; None if topompi cannot read the call, and leaves it to the MPI library."""
    if (root is not None and not 0 <= root < size) or (spec.reduces and not isinstance(op, MPI.Op)):
        return None
    try:
        return (own_bytes if spec.uneven else nbytes)(spec, arguments, size)
    except Exception:  # reading a foreign message object may raise anything
        return None


def _repays_no_plan(state: State, spec: CallSpec, moved: int, needs: Needs) -> bool:
    """Whether a call moves too few bytes to repay the making of a plan; the same on all ranks.

    The result is False if the MPI library always runs the method, because its calls need no plan.
    """
    if spec.uneven:  # no rank knows the bytes that the others send
        return True
    if state.common.leaves(spec.name):
        return False
    known = state.selector.known((spec.name, size_class(moved), needs))
    return moved <= PAYS or (known is not None and known.algorithm == NATIVE)


def run_chosen(
    handle: MPI.Intracomm,
    state: State,
    spec: CallSpec,
    choice: Choice,
    arguments: tuple[object, ...],
    again: Callable[..., None] | None,
) -> str:
    """Run a call by the chosen algorithm, and put the function that runs it into a table, to serve identical calls.

    :param handle: the user's communicator.
    :param state: topompi's state of the communicator.
    :param spec: the description of the call.
    :param choice: the choice for the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param again: function that chooses again, called with the communicator and the arguments when a trial goes on to
        another algorithm; if it is None, the table stays as it is.
    :returns: name of the algorithm that ran: ``native`` if the chosen one cannot run the call.
    """
    run = runner(state, spec.name, choice.algorithm)
    if choice.trial is not None:
        if choice.algorithm != NATIVE:  # the plan is made before, so that the trial does not time its making
            from ..execution import running

            running.ready(state.executor, spec.name, choice.algorithm, arguments)
        run = _timed(state, choice.trial, run)
    if again is not None and choice not in (NOT_UNDERSTOOD, ON_DEVICE, ABSENT):
        further = run if choice.trial is None else _tried(state, spec, choice, run, again)
        table = _table(state, spec, choice)
        remember(table, spec, arguments, further)
    return run(handle, *arguments) or NATIVE


def _table(state: State, spec: CallSpec, choice: Choice) -> Calls:
    """The table of calls into which the function for a choice is put.

    If the MPI library runs all calls of the method, or this call because the communicator is new, it is a table that
    all communicators over the same ranks share; else it is the communicator's own.
    """
    if choice is YOUNG:
        return state.common.early
    return state.common.natives if state.common.leaves(spec.name) else state.calls


def remember(calls: Calls, spec: CallSpec, arguments: tuple[Any, ...], run: Run) -> None:
    """Put the function that runs a call into a table of calls, if later identical calls can be recognised.

    Calls can be recognised if they are barriers, or if the message from which the size is read is a numpy array and the
    operation, if there is one, is predefined.

    :param calls: the table.
    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method; root, operation and bytes are the key.
    :param run: the function, called with the communicator and the arguments of each later identical call.
    """
    from ..execution.keys import lasting

    given = dict(zip(spec.parameters, arguments, strict=True))
    root, op = given.get("root", 0), given.get("op")
    message = None if spec.sized_by is None else arguments[spec.sized_by]
    if spec.form is Form.NOTHING:
        calls.add(spec.number, 0, None, 0, run)
    elif type(message) is ndarray and lasting(op):
        calls.add(spec.number, int(root), op, message.nbytes, run)  # mpi4py accepts any integer type as root


def runner(state: State, method: str, algorithm: str) -> Run:
    """The function that runs a call by an algorithm, the same on all ranks.

    The function takes the communicator and the arguments of the call. It returns the name of the algorithm that ran, or
    None if the MPI library ran the call.

    :param state: topompi's state of the communicator.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: name of the algorithm: ``native`` or a schedule's name.
    """
    if algorithm == NATIVE:
        native: Run = getattr(NativeIntracomm, method)
        return native
    from ..execution import running

    run = partial(running.run, state.executor, method, algorithm)
    return lambda handle, *arguments: run(arguments)


def _timed(state: State, trial: Trial, run: Run) -> Run:
    """The function that runs a call of a trial after a barrier, and records its seconds on this rank."""

    def call(handle: MPI.Intracomm, *arguments: object) -> str | None:
        ran: list[str | None] = []
        trial.note(timed(state.groups.talks.meet, lambda: ran.append(run(handle, *arguments))))
        return ran[0]

    return call


def _tried(state: State, spec: CallSpec, choice: Choice, run: Run, again: Callable[..., None]) -> Run:
    """The function for the next calls of a trial: it keeps the algorithm until the trial moves on, then chooses anew.

    Calls of a trial must follow each other as fast as later calls will: with more work between two calls the network's
    queues would empty, and the calls would be faster than back-to-back calls of many ranks.
    """
    trial, algorithm = choice.trial, choice.algorithm

    def call(handle: MPI.Intracomm, *arguments: object) -> None:
        if trial is None or trial.upcoming != algorithm:
            again(handle, *arguments)
        elif state.roll_call.hold(state.calls.made):
            trial.next()
            run(handle, *arguments)
        else:
            getattr(NativeIntracomm, spec.name)(handle, *arguments)

    return call
