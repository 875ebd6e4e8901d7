"""Runs of a collective by a named algorithm, once or as a persistent request."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mpi4py import MPI

from ..schedules.segments import cut
from .binding import Binding, bind, bind_persistent
from .buffers import DeviceMemoryError, ShortMemoryError, is_in_place
from .eligibility import is_in_stages, why_not
from .executor import Executor
from .keys import quick_key
from .native import NativeIntracomm
from .operand_checks import checked
from .operands import MismatchError, Operands
from .persistent import PersistentPlan
from .planning import UNPLANNED, plan_of, share_costly
from .program import finish, is_revoked
from .specs import CALLS, LEVELS, NATIVE, Form
from .staged import stages_of, take_part
from .taking_part import instead_of

__all__ = ["prepare", "ready", "run"]

ROOTED = frozenset(name for name, spec in CALLS.items() if spec.rooted)
NO_REQUEST = "calls over the leaders of levels, or by carriers, have no persistent form"
NOTHING_BOUND = Binding([])  # cached for a call in stages, to record that its arguments were checked


def run(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
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
    if algorithm == LEVELS:
        return _run_in_stages(executor, method, algorithm, arguments)
    key = quick_key(method, algorithm, arguments)
    binding: Binding | Exception | None = None if key is None else executor.bindings.get(key)
    if (binding is None or binding is NOTHING_BOUND) and is_in_stages(method, algorithm):
        return _run_in_stages(executor, method, algorithm, arguments)
    if binding is None:
        binding = _bound(executor, method, algorithm, arguments, key)
    if binding is None:
        return _native(executor, method, arguments)
    wrong = None
    if isinstance(binding, Exception):
        # The others know nothing of the error: what they send has to be received. ``instead`` holds the memory for it.
        wrong, instead = binding, instead_of(executor, CALLS[method], algorithm, arguments, binding)
        binding = None if instead is None else _bound(executor, method, algorithm, instead, None)
        if not isinstance(binding, Binding):
            return _settled(executor, method, arguments, wrong)
    rest = iter(binding.calls)
    try:
        for call, some in rest:
            call(*some)
    except BaseException as error:  # also from a signal handler
        finish(rest, error)
        _pass_on(executor, error)
        raise
    if wrong is not None:
        return _settled(executor, method, arguments, wrong, took_part=True)
    if executor.watched:
        executor.ran = binding
    return algorithm


def _run_in_stages(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    spec = CALLS[method]
    call = stages_of(executor, method, algorithm)  # collective: before arguments are looked at
    wrong, given = _unsuited(executor, method, algorithm, arguments), arguments
    if wrong is not None and spec.local:  # the sizes, sent before the blocks, tell the other ranks of the error
        took_part = take_part(executor, spec, algorithm, arguments)
        return _settled(executor, method, arguments, wrong, took_part=took_part)
    if wrong is not None:
        instead = instead_of(executor, spec, algorithm, arguments, wrong)
        if instead is None:
            return _settled(executor, method, arguments, wrong)
        given = instead
    try:
        call(*given)
    except DeviceMemoryError:  # raised before anything is sent
        executor.unplanned[method, algorithm] = UNPLANNED
        return _native(executor, method, arguments)
    except MPI.Exception as revoked:
        _pass_on(executor, revoked)
        raise
    return algorithm if wrong is None else _settled(executor, method, arguments, wrong, took_part=True)


def _pass_on(executor: Executor, error: BaseException) -> None:
    """If an error is a revocation, revoke topompi's communicators of the same ranks, because ranks wait in them."""
    if is_revoked(error):
        executor.groups.revoke()


def _with_whole_root(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with the root, which comes last, as an int; mpi4py accepts any integer type."""
    return arguments if type(arguments[-1]) is int else (*arguments[:-1], int(arguments[-1]))


def _unsuited(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> Exception | None:
    """The error of this rank in a call that runs in stages, or None. Cached calls are not checked again."""
    spec, key = CALLS[method], quick_key(method, algorithm, arguments)
    if spec.form is Form.NOTHING or (key is not None and executor.bindings.get(key) is not None):
        return None
    for look in _each_message(arguments) if spec.uneven else [arguments]:
        operands, error = checked(executor.groups, spec, look)
        if error is not None:
            return error
        if operands is not None and not operands.by_address:
            key = None
    if key is not None:
        executor.bindings.put(key, NOTHING_BOUND)
    return None


def _each_message(arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Calls with one of the two messages each: carriers send packed blocks, so the messages may share memory."""
    nothing, (sent, received) = [bytearray(), 0, MPI.BYTE], arguments
    return [(nothing, received)] if is_in_place(sent) else [(nothing, received), (sent, nothing)]


def _settled(
    executor: Executor, method: str, arguments: tuple[Any, ...], error: Exception, *, took_part: bool = False
) -> str:
    """End a call whose arguments are wrong on this rank.

    The error is raised here if the MPI library would miss it, or would wait for ranks that have done their part; else
    the library gets the call and raises its own error.

    :param took_part: True if this rank has sent and received its messages, so that the other ranks wait no more.
    """
    if isinstance(error, ShortMemoryError) or (took_part and isinstance(error, MPI.Exception)):
        raise error
    if CALLS[method].rooted and isinstance(error, MismatchError):
        raise MPI.Exception(error.code)
    return _native(executor, method, arguments)


def _native(executor: Executor, method: str, arguments: tuple[Any, ...]) -> str:
    getattr(NativeIntracomm, method)(executor.groups.comm, *arguments)
    return "native"


def ready(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> None:
    """Make the plan of a call in advance, so that its first run takes as long as later ones; collective.

    For algorithms that run in stages nothing is done: their communicators are made by the first run.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: an algorithm that ``can_run`` allows, the same on all ranks.
    :param arguments: all arguments of mpi4py's method, in their order, defaults filled in.
    """
    if algorithm != "native" and not is_in_stages(method, algorithm):
        key = quick_key(method, algorithm, arguments)
        if key is None or executor.bindings.get(key) is None:
            _bound(executor, method, algorithm, arguments, key)


def prepare(
    executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...], info: MPI.Info = MPI.INFO_NULL
) -> MPI.Prequest | PersistentPlan:
    """A request for a collective on given buffers, to be started many times; collective.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param method: name of the call without ``_init``: ``Bcast`` for ``Bcast_init``.
    :param algorithm: an algorithm that ``can_run`` allows, the same on all ranks.
    :param arguments: all arguments of mpi4py's method without ``info``, in their order, defaults filled in.
    :param info: hints for the MPI library, if it makes the request.
    :returns: a request; the MPI library's own if no plan can run the call.
    :raises ValueError: if ``can_run`` does not allow the algorithm.
    """
    if method in ROOTED:
        arguments = _with_whole_root(arguments)
    native: Callable[..., MPI.Prequest] = getattr(NativeIntracomm, method + "_init")
    if is_in_stages(method, algorithm):
        executor.unplanned[method, algorithm] = NO_REQUEST
        return native(executor.groups.comm, *arguments, info)
    channel = executor.groups.new_channel()
    operands = None if algorithm == NATIVE else _read(executor, method, algorithm, arguments)[0]
    if operands is None:
        executor.unplanned[method, algorithm] = UNPLANNED
    plan = None if operands is None else plan_of(executor, CALLS[method], algorithm, operands)
    if operands is None or plan is None:
        return native(executor.groups.comm, *arguments, info)
    calls, flights, sent = bind_persistent(plan, operands, executor.groups, channel)
    return PersistentPlan(calls, flights, arguments, sent)


def _bound(
    executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...], key: Hashable | None
) -> Binding | Exception | None:
    """Bind a plan to a call's arguments: the result is the binding, the error of this rank's arguments, or None.

    None means that the MPI library must run the call.

    The binding is cached under the key if addresses alone identify the arguments.
    """
    operands, error = (None, None) if algorithm == "native" else _read(executor, method, algorithm, arguments)
    if error is not None:
        return error
    if operands is None:
        executor.unplanned[method, algorithm] = UNPLANNED
    plan = None if operands is None else plan_of(executor, CALLS[method], algorithm, operands)
    if operands is None or plan is None:
        return None
    # A channel per method: messages left over by a refused call, for example one whose root alone lacks memory, then
    # match no call of another method.
    binding = bind(plan, operands, executor.groups, executor.groups.channel(CALLS[method].number))
    if key is not None and operands.by_address:
        executor.bindings.put(key, binding, binding.weight)
    return binding


def _read(
    executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]
) -> tuple[Operands | None, Exception | None]:
    if why_not(method, algorithm):
        raise ValueError(f"expecting an algorithm that can run {method}, got {algorithm!r}")
    spec = CALLS[method]
    # Collective steps come before the reading of arguments, because the other ranks take part even if it fails here.
    share_costly(executor, spec.collective, cut(algorithm)[0])
    executor.groups.connect()
    operands, error = checked(executor.groups, spec, arguments)
    return operands.in_bytes if operands is not None and "/" in algorithm else operands, error
