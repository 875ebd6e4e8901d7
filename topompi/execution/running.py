"""Runs of a collective by a named algorithm, once or as a persistent request."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from mpi4py import MPI

from ..schedules.segments import cut, divides, segments_of
from .binding import Binding, bind, bind_persistent
from .buffers import Block, DeviceMemoryError, ShortMemoryError
from .eligibility import why_not
from .executor import Executor
from .groups import Groups
from .keys import quick_key
from .leaders import LEADERS, take_part_over_leaders
from .native import NativeIntracomm
from .operand_checks import check_operands
from .operands import MismatchError, Operands, read
from .parts import is_shared, part_of, share_costly
from .persistent import PersistentPlan
from .plan import Plan, compile_part
from .program import finish, is_revoked
from .specs import CALLS, NO_NEEDS, CallSpec, Form, Needs
from .taking_part import gathers_sizes, unread, with_own_blocks, with_own_memory, with_what_arrives

__all__ = ["can_run", "is_ready", "prepare", "ready", "run"]

ROOTED = frozenset(name for name, spec in CALLS.items() if spec.rooted)
NOTHING_BOUND = Binding([])  # cached for a call over leaders whose arguments were checked
UNPLANNED = "no plan takes messages in a device's memory, or of so many blocks"


def can_run(method: str, algorithm: str, needs: Needs = NO_NEEDS) -> bool:
    """Whether an algorithm can run a call, decided from facts that all ranks know, without the network.

    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, ``levels``, or a name of ``schedules.ALGORITHMS``, with or without a segment size
        (``ring/32K``).
    :param needs: the demands of a reduction's operation.
    """
    return not why_not(method, algorithm, needs)


def run(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a collective by an algorithm; collective.

    :param executor: the communicator's executor.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: an algorithm that ``can_run`` allows, the same on all ranks.
    :param arguments: all arguments of mpi4py's method, in their order, defaults filled in.
    :returns: name of the algorithm that ran. It is ``native`` if the given one cannot run: because of the network or
        the sizes, which are the same on all ranks, or because messages are in a device's memory, on all ranks or on
        none.
    :raises ValueError: if ``can_run`` does not allow the algorithm.
    :raises Exception: the errors of the method itself.

    Cost: the messages of the algorithm; a first call also makes this rank's plan.
    """
    if method in ROOTED:
        arguments = _with_whole_root(arguments)
    if algorithm == "levels":
        if method not in LEADERS:
            raise ValueError(f"expecting a call of {', '.join(LEADERS)}, got {method!r}")
        levels = executor.groups.levels(CALLS[method].kind)  # collective: before arguments are looked at
        if (error := _unsuited(executor, method, arguments)) is not None:
            return _refused(executor, method, algorithm, arguments, error)
        try:
            LEADERS[method](levels, *arguments)
        except DeviceMemoryError:  # raised before anything is sent
            executor.unplanned[method, algorithm] = UNPLANNED
            return _native(executor, method, arguments)
        except MPI.Exception as revoked:
            _pass_on(executor, revoked)
            raise
        return algorithm
    key = quick_key(method, algorithm, arguments)
    binding: Binding | Exception | None = None if key is None else executor.bindings.get(key)
    if binding is None:
        binding = _bound(executor, method, algorithm, arguments, key)
    if binding is None:
        return _native(executor, method, arguments)
    if isinstance(binding, Exception):
        return _refused(executor, method, algorithm, arguments, binding)
    rest = iter(binding.calls)
    try:
        for call, some in rest:
            call(*some)
    except BaseException as error:  # also from a signal handler
        finish(rest, error)
        _pass_on(executor, error)
        raise
    if executor.watched:
        executor.ran = binding
    return algorithm


def _pass_on(executor: Executor, error: BaseException) -> None:
    """If an error is a revocation, revoke topompi's communicators of these ranks, too, because ranks wait in them."""
    if is_revoked(error):
        executor.groups.revoke()


def _with_whole_root(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with the root, which comes last, as an int; mpi4py accepts any integer type."""
    return arguments if type(arguments[-1]) is int else (*arguments[:-1], int(arguments[-1]))


def _unsuited(executor: Executor, method: str, arguments: tuple[Any, ...]) -> Exception | None:
    """The error of this rank in a call over leaders, or None. Cached calls are not checked again."""
    spec, key = CALLS[method], quick_key(method, "levels", arguments)
    if spec.form is Form.NOTHING or (key is not None and executor.bindings.get(key) is not None):
        return None
    operands, error = _looked_at(executor.groups, spec, arguments)
    if error is None and key is not None and (operands is None or operands.by_address):
        executor.bindings.put(key, NOTHING_BOUND)
    return error


def _refused(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...], error: Exception) -> str:
    """Finish a call that has an error on this rank: raise the error, or let the MPI library find it and raise its own.

    If only this rank's receive buffer is wrong, the other ranks do not know of the error, so this rank takes its part
    in the call before it raises.
    """
    spec = CALLS[method]
    takes_part = _takes_part(executor, spec, algorithm, arguments, error)
    # Not in the library: the other ranks have finished the call, so that it would wait for ever.
    if isinstance(error, ShortMemoryError) or (takes_part and isinstance(error, MPI.Exception)):
        raise error
    if spec.rooted and isinstance(error, MismatchError):
        raise MPI.Exception(error.code)
    return _native(executor, method, arguments)


def _takes_part(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[Any, ...], error: Exception
) -> bool:
    """Take this rank's part in a call that has an error on this rank; False if it cannot."""
    if algorithm == "levels" and spec.local:  # a rank can announce its refusal with the sizes, which precede the blocks
        if 0 <= arguments[-1] < executor.groups.size:
            take_part_over_leaders(executor.groups.levels(spec.kind), spec.form, arguments[-1])
            return True
        return False
    instead = _instead(executor, spec, algorithm, arguments, error)
    if instead is not None:
        run(executor, spec.name, algorithm, instead)
    return instead is not None


def _instead(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[Any, ...], error: Exception
) -> tuple[Any, ...] | None:
    """The call with memory of topompi in place of a message that is wrong on this rank; None if that is impossible."""
    groups, root = executor.groups, arguments[-1]
    try:
        if spec.rooted and gathers_sizes(spec, arguments, groups):
            plan = _plan(executor, spec, algorithm, unread(groups.size, root))
            return None if plan is None else with_what_arrives(spec, plan, groups, root)
        if isinstance(error, MismatchError) and not spec.rooted:  # the send buffer may be the wrong one
            return None
        ways = [with_own_memory, *([with_own_blocks] if isinstance(error, MPI.Exception) else [])]
        for way in ways:
            with suppress(Exception):  # another argument is wrong, too
                instead = way(spec, arguments, groups)
                if instead is not None and _looked_at(groups, spec, instead)[1] is None:
                    return instead
        return None
    except Exception:  # another argument is wrong, too
        return None


def _native(executor: Executor, method: str, arguments: tuple[Any, ...]) -> str:
    getattr(NativeIntracomm, method)(executor.groups.comm, *arguments)
    return "native"


def is_ready(executor: Executor, method: str, algorithm: str) -> bool:
    """Whether a call can send its messages without a collective step before; the same on all ranks.

    :param executor: the communicator's executor, with a communicator for messages of plans.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: name of an algorithm that ``can_run`` allows.
    """
    if algorithm == "levels":
        return executor.groups.has_levels(CALLS[method].kind)
    return is_shared(executor, CALLS[method].collective, cut(algorithm)[0])


def ready(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> None:
    """Make the plan of a call in advance, so that its first run takes as long as later ones; collective.

    For ``levels`` nothing is done: its communicators are made by the first run.

    :param executor: the communicator's executor.
    :param method: name of the call, a key of ``specs.CALLS``.
    :param algorithm: an algorithm that ``can_run`` allows, the same on all ranks.
    :param arguments: all arguments of mpi4py's method, in their order, defaults filled in.
    """
    if algorithm not in ("native", "levels"):
        key = quick_key(method, algorithm, arguments)
        if key is None or executor.bindings.get(key) is None:
            _bound(executor, method, algorithm, arguments, key)


def prepare(
    executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]
) -> MPI.Prequest | PersistentPlan:
    """A request for a collective on given buffers, to be started many times; collective.

    :param executor: the communicator's executor.
    :param method: name of the call without ``_init``: ``Bcast`` for ``Bcast_init``.
    :param algorithm: an algorithm that ``can_run`` allows, the same on all ranks.
    :param arguments: all arguments of mpi4py's method without ``info``, in their order, defaults filled in.
    :returns: a request; the MPI library's own if no plan can run the call.
    :raises ValueError: if ``can_run`` does not allow the algorithm.
    """
    if method in ROOTED:
        arguments = _with_whole_root(arguments)
    channel = executor.groups.new_channel()
    operands = None if algorithm in ("native", "levels") else _read(executor, method, algorithm, arguments)[0]
    if operands is None:
        executor.unplanned[method, algorithm] = UNPLANNED
    plan = None if operands is None else _plan(executor, CALLS[method], algorithm, operands)
    if operands is None or plan is None:
        native: MPI.Prequest = getattr(NativeIntracomm, method + "_init")(executor.groups.comm, *arguments)
        return native
    calls, flights, sent = bind_persistent(plan, operands, executor.groups, channel)
    return PersistentPlan(calls, flights, arguments, sent)


def _bound(
    executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...], key: Hashable | None
) -> Binding | Exception | None:
    """A plan bound to the arguments; None to run natively; or the error of this rank's arguments.

    The binding is cached under the key if addresses alone identify the arguments.
    """
    operands, error = (None, None) if algorithm == "native" else _read(executor, method, algorithm, arguments)
    if error is not None:
        return error
    if operands is None:
        executor.unplanned[method, algorithm] = UNPLANNED
    plan = None if operands is None else _plan(executor, CALLS[method], algorithm, operands)
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
    if not can_run(method, algorithm):
        raise ValueError(f"expecting an algorithm that can run {method}, got {algorithm!r}")
    spec = CALLS[method]
    # Collective steps come first, whatever this rank's arguments are.
    share_costly(executor, spec.collective, cut(algorithm)[0])
    executor.groups.connect()
    operands, error = _looked_at(executor.groups, spec, arguments)
    return operands.in_bytes if operands is not None and "/" in algorithm else operands, error


def _looked_at(groups: Groups, spec: CallSpec, arguments: tuple[Any, ...]) -> tuple[Operands | None, Exception | None]:
    """The operands of a call, None if the MPI library shall run it; and this rank's error, None if there is none."""
    try:
        operands = read(groups, spec, arguments)
        if operands is not None:
            check_operands(spec, operands, groups.alone)
            for side in (operands.input, operands.output):
                if isinstance(side, Block):
                    side.require_memory()
    except DeviceMemoryError:  # the library can send it; a plan cannot
        return None, None
    except Exception as error:  # any error: the other ranks do not know of it
        return None, error
    return operands, None


def _pieces(collective: str, name: str, segment: int, operands: Operands, ranks: int) -> tuple[int | None, int]:
    """Number of blocks of a message that is cut, and number of lanes of its transfers; the same on all ranks."""
    if divides(collective, name):
        return segments_of((operands.length or 0) * operands.extent, segment), 1
    if operands.length is not None:
        longest = -(-operands.length // ranks)
    else:
        longest = operands.scale * (1 if operands.counts is None else int(operands.counts.max()))
    return None, segments_of(longest * operands.extent, segment)


def _plan(executor: Executor, spec: CallSpec, algorithm: str, operands: Operands) -> Plan | None:
    """The plan of this rank; None, on all ranks, if no plan can be made."""
    ordered = operands.op is not None and not operands.op.Is_commutative()
    if operands.empty:
        return Plan((), 1, 0, 0, False)
    counts = operands.counts
    name, segment = cut(algorithm)
    blocks, lanes = (
        (None, 1) if segment is None else _pieces(spec.collective, name, segment, operands, executor.groups.size)
    )
    sizes = operands.length, operands.shift, operands.scale, None if counts is None else counts.tobytes()
    refusal = executor.shared.get((spec.collective, name))
    if isinstance(refusal, str):  # the cache of plans is shared with other communicators, where the schedule may exist
        executor.unplanned[spec.name, algorithm] = refusal
        return None
    key = ("plan", spec.collective, name, blocks, lanes, operands.root, *sizes, ordered)

    def make() -> Plan | str:
        part = part_of(executor, spec.collective, name, operands.root, counts, ordered, blocks)
        if isinstance(part, str):
            return part
        try:
            return compile_part(part, operands.length, operands.shift, lanes, operands.scale)
        except ValueError as error:
            return str(error)

    made = executor.plans.made(key, make)
    if isinstance(made, Plan):
        return made
    executor.unplanned[spec.name, algorithm] = str(made)
    return None
