"""Runs of a collective by a named algorithm, once or as a persistent request."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from .binding import Binding, bind_persistent
from .buffers import ShortMemoryError
from .eligibility import is_carried
from .executor import Executor
from .keys import quick_key
from .native import NativeIntracomm
from .operands import MismatchError
from .preparation import bound, planned
from .program import finish, is_revoked
from .requests import PersistentRequest
from .resumable import ResumableRun
from .specs import CALLS, NATIVE, CallSpec
from .taking_part import instead

__all__ = ["prepare", "ready", "run"]

ROOTED = frozenset(name for name, spec in CALLS.items() if spec.rooted)
NO_REQUEST = "calls by carriers have no persistent form"
ONE_THREAD = "MPI runs with less than MPI.THREAD_MULTIPLE, which requests by schedules need"


def run(executor: Executor, method: str, algorithm: str, arguments: tuple[object, ...]) -> str:
    """Run a collective by an algorithm; collective.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: an algorithm that ``eligibility.can_run`` allows, the same on all ranks.
    :param arguments: all arguments of mpi4py's method, in their order, defaults filled in.
    :returns: name of the algorithm that ran, the same on all ranks. It is ``native`` if the given algorithm cannot run
        because of the network or the sizes, or because messages are in a device's memory (on all ranks or on none).
    :raises ValueError: if ``can_run`` does not allow the algorithm.
    :raises Exception: the errors of the method itself.

    Cost: the messages of the algorithm; a first call also makes this rank's plan.
    """
    if method in ROOTED:
        arguments = _with_whole_root(arguments)
    key = quick_key(method, algorithm, arguments)
    binding: Binding | Exception | None = None if key is None else executor.bindings.get(key)
    spec, wrong = CALLS[method], None
    if binding is None and algorithm != NATIVE:
        binding = bound(executor, spec, algorithm, arguments, key)
    if isinstance(binding, Exception):
        # The other ranks do not know of the error, so that this rank must receive their messages.
        wrong, binding = binding, instead(executor, spec, algorithm, arguments, binding)
    if binding is None:
        return _native(executor, spec, arguments) if wrong is None else _settled(executor, spec, arguments, wrong)
    rest = iter(binding.calls)
    try:
        for call, some in rest:
            call(*some)
    except BaseException as error:  # also from a signal handler
        finish(rest, error)
        _pass_on(executor, error)
        raise
    if wrong is not None:
        return _settled(executor, spec, arguments, wrong, took_part=True)
    if executor.watched and binding.plan is not None:
        executor.ran = binding
    return algorithm


def ready(executor: Executor, method: str, algorithm: str, arguments: tuple[object, ...]) -> None:
    """Make the plan of a call in advance, so that its first run takes as long as later ones; collective.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: an algorithm that ``can_run`` allows, the same on all ranks.
    :param arguments: all arguments of mpi4py's method, in their order, defaults filled in.
    """
    if algorithm != NATIVE:
        bound(executor, CALLS[method], algorithm, arguments, quick_key(method, algorithm, arguments))


def _pass_on(executor: Executor, error: BaseException) -> None:
    """If an error is a revocation, revoke topompi's communicators of the same ranks, because ranks wait in them."""
    if is_revoked(error):
        executor.groups.revoke()


def _with_whole_root(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with the root, which comes last, as an int; mpi4py accepts any integer type."""
    return arguments if type(arguments[-1]) is int else (*arguments[:-1], int(arguments[-1]))


def _settled(
    executor: Executor, spec: CallSpec, arguments: tuple[object, ...], error: Exception, *, took_part: bool = False
) -> str:
    """End a call whose arguments are wrong on this rank, by an error.

    The error is raised here if the MPI library would not find it, or would wait for the other ranks, which have ended
    the call already. Else the MPI library gets the call, and raises its own error.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param error: the error that topompi has found.
    :param took_part: True if this rank has sent and received its messages, so that the other ranks wait no more.
    """
    if isinstance(error, ShortMemoryError) or (took_part and isinstance(error, MPI.Exception)):
        raise error
    if spec.rooted and isinstance(error, MismatchError):
        raise MPI.Exception(error.code)
    return _native(executor, spec, arguments)


def _native(executor: Executor, spec: CallSpec, arguments: tuple[object, ...]) -> str:
    getattr(NativeIntracomm, spec.name)(executor.groups.comm, *arguments)
    return "native"


def prepare(executor: Executor, method: str, algorithm: str, arguments: tuple[object, ...]) -> PersistentRequest | None:
    """A request for a collective on given buffers, to be started many times; collective.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param method: name of the call without ``_init``: ``Bcast`` for ``Bcast_init``.
    :param algorithm: an algorithm that ``can_run`` allows, not ``native``, the same on all ranks.
    :param arguments: all arguments of mpi4py's method without ``info``, in their order, defaults filled in.
    :returns: a request; None if no plan can run the call, so that the MPI library makes the request.
    :raises ValueError: if ``can_run`` does not allow the algorithm.
    """
    spec = CALLS[method]
    if method in ROOTED:
        arguments = _with_whole_root(arguments)
    if is_carried(method, algorithm):
        executor.unplanned[method, algorithm] = NO_REQUEST
        return None
    groups = executor.groups
    channel = groups.new_channel()
    if not groups.threaded:
        executor.unplanned[method, algorithm] = ONE_THREAD
        return None
    found = planned(executor, spec, algorithm, arguments)
    if not isinstance(found, tuple):
        return None
    plan, operands = found
    calls, flights, sent = bind_persistent(plan, operands, groups, channel)
    return PersistentRequest.of(ResumableRun(calls, [*flights, groups.held()], arguments, sent))
