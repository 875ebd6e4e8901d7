"""Which algorithm runs a call, and what runs it: asked where the table of calls has no answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mpi4py import MPI
from numpy import ndarray

from ..execution.sizes import nbytes, own_bytes
from ..execution.specs import CallSpec
from ..execution.timing import timed
from ..selection.choice import Choice
from .calls import Run
from .state import State

if TYPE_CHECKING:
    from ..selection.trial import Trial

__all__ = ["NOT_UNDERSTOOD", "choose", "execute", "remember", "run_and_remember"]

# ``running``, with all generators of schedules, takes a third of the time to import that all of topompi does: it is
# imported where the first call is not the library's.
_Native = MPI.Intracomm
NOT_UNDERSTOOD = Choice("native", "the MPI library's to run or to refuse")


def choose(
    state: State,
    spec: CallSpec,
    arguments: tuple[Any, ...],
    root: int | None,
    op: MPI.Op | None,
    measurable: bool = True,
) -> tuple[Choice, int]:
    """The algorithm of a call, and the bytes by which it was chosen; alike on all ranks.

    What makes no sense to us (a root out of range, a message of a kind we do not know) is the MPI library's.

    :param state: of the communicator.
    :param spec: of the call.
    :param arguments: those of mpi4py's method, all of them.
    :param root: of a rooted call.
    :param op: of a reduction.
    :param measurable: whether the call can be timed.
    """
    size = state.groups.size
    if (root is not None and not 0 <= root < size) or (spec.reduces and not isinstance(op, MPI.Op)):
        return NOT_UNDERSTOOD, 0
    try:
        moved = (own_bytes if spec.uneven else nbytes)(spec, arguments, size)
    except Exception:  # whatever our look at a message raises, the call is the library's to run or to refuse
        return NOT_UNDERSTOOD, 0
    if state.only:
        return state.only, moved
    if spec.uneven:  # a rank knows its own blocks only
        moved = state.selector.typical(spec.name, moved)
    commutes = op is None or op.Is_commutative()
    choice = state.selector.choose(spec.name, moved, root=root, commutative=commutes, measurable=measurable)
    return choice, moved


def run_and_remember(
    state: State, spec: CallSpec, choice: Choice, arguments: tuple[Any, ...], again: Callable[..., None] | None
) -> Run:
    """What runs a call by a choice; calls like it are run so from here on.

    :param state: of the communicator.
    :param spec: of the call.
    :param choice: what was chosen for it.
    :param arguments: those of mpi4py's method, all of them.
    :param again: chooses for a call anew, of the communicator and the arguments; None where calls are not remembered.
    """
    run = _runner(state, spec.name, choice.algorithm)
    if choice.trial is not None:
        run = _timed(state.comm, choice.trial, run)
    if again is not None and choice is not NOT_UNDERSTOOD:
        remember(state, spec, arguments, run if choice.trial is None else _tried(choice, run, again))
    return run


def remember(state: State, spec: CallSpec, arguments: tuple[Any, ...], run: Run) -> None:
    """Run calls like this one in this way from here on, where an array tells its size and its operation lasts."""
    from ..execution.keys import lasting

    given = dict(zip(spec.parameters, arguments, strict=True))
    root, op = given.get("root", 0), given.get("op")
    if spec.sized_by is not None and type(message := arguments[spec.sized_by]) is ndarray and lasting(op):
        state.calls.add(spec.number, int(root), op, message.nbytes, run)  # mpi4py takes any number for a root


def _runner(state: State, method: str, algorithm: str) -> Run:
    """What runs a call by an algorithm, of a communicator and the arguments."""
    if algorithm == "native":
        native: Run = getattr(_Native, method)
        return native
    from ..execution import running

    run = partial(running.run, state.executor, method, algorithm)
    return lambda handle, *arguments: run(arguments)


def _timed(comm: MPI.Intracomm, trial: Trial, run: Run) -> Run:
    """What runs a call of a trial: all ranks begin together, and each notes what the call took there."""

    def call(handle: MPI.Intracomm, *arguments: Any) -> None:
        trial.note(timed(comm.Barrier, lambda: run(handle, *arguments)))

    return call


def _tried(choice: Choice, run: Run, again: Callable[..., None]) -> Run:
    """What runs calls like one of a trial as long as the trial stays with its algorithm; the next one is chosen for.

    In a trial a call is to meet what calls will meet after it: with more work between two of them the network would
    come to rest, and take from many ranks at once what it does not take from them call after call.
    """
    trial, algorithm = choice.trial, choice.algorithm

    def call(handle: MPI.Intracomm, *arguments: Any) -> None:
        if trial is not None and trial.upcoming == algorithm:
            trial.next()
            run(handle, *arguments)
        else:
            again(handle, *arguments)

    return call


def execute(state: State, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a call by the algorithm of this name.

    :param state: of the communicator.
    :param method: the call, a key of ``specs.CALLS``.
    :param algorithm: as ``running.run`` takes it.
    :param arguments: those of mpi4py's method, all of them.
    :returns: the name of what ran.
    """
    if algorithm != "native":
        from ..execution import running

        return running.run(state.executor, method, algorithm, arguments)
    getattr(_Native, method)(state.comm, *arguments)
    return algorithm
