"""Running a collective by a named algorithm, once or as a persistent request."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from mpi4py import MPI

from ..schedules.segments import cut, divides, segments_of
from .binding import Binding, bind, bind_persistent
from .buffers import Block, DeviceMemoryError, ShortMemoryError, is_in_place
from .eligibility import is_in_stages, why_not
from .executor import Executor
from .groups import Groups
from .keys import quick_key
from .native import NativeIntracomm
from .operand_checks import check_operands
from .operands import MismatchError, Operands, read
from .parts import is_shared, part_of, share_costly
from .persistent import PersistentPlan
from .plan import Plan, compile_part
from .program import finish, is_revoked
from .specs import CALLS, NO_NEEDS, CallSpec, Form, Needs
from .staged import has_stages, stages_of, take_part
from .taking_part import gathers_sizes, unread, with_own_blocks, with_own_memory, with_what_arrives

__all__ = ["can_run", "is_ready", "prepare", "ready", "run"]

ROOTED = frozenset(name for name, spec in CALLS.items() if spec.rooted)
NOTHING_BOUND = Binding([])  # of calls over leaders that have been looked at
UNPLANNED = "no plan takes messages in a device's memory, or of so many blocks"


def can_run(method: str, algorithm: str, needs: Needs = NO_NEEDS) -> bool:
    """Whether an algorithm can run a call, decided from what all ranks know, without the network.

    :param method: the call, a key of ``specs.CALLS``.
    :param algorithm: ``native``, ``levels``, or a name of ``schedules.ALGORITHMS``, perhaps cut (``ring/32K``).
    :param needs: the demands of a reduction's operation.
    """
    return not why_not(method, algorithm, needs)


def run(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a collective by an algorithm; collective.

    :param executor: the communicator's executor.
    :param method: the call, a key of ``specs.CALLS``.
    :param algorithm: one that ``can_run`` allows, the same on all ranks.
    :param arguments: those of mpi4py's method, in their order, defaults filled in.
    :returns: the algorithm that ran. It is ``native`` where the given one cannot run: for the network or the sizes,
        which is the same on all ranks, or for messages in a device's memory, where either all ranks have them or none.
    :raises ValueError: for an algorithm that ``can_run`` does not allow; and as the method itself.
    Cost: the messages of the algorithm; the first call of its kind makes this rank's plan too.
    """
    if method in ROOTED:
        arguments = _with_whole_root(arguments)
    if is_in_stages(method, algorithm):
        return _in_stages(executor, method, algorithm, arguments)
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
    except BaseException as error:  # a signal's handler may have raised it
        finish(rest, error)
        _pass_on(executor, error)
        raise
    if executor.watched:
        executor.ran = binding
    return algorithm


def _in_stages(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a call in stages; as ``run``."""
    call = stages_of(executor, method, algorithm)  # what is collective comes first
    if (error := _unsuited(executor, method, algorithm, arguments)) is not None:
        return _refused(executor, method, algorithm, arguments, error)
    try:
        call(*arguments)
    except DeviceMemoryError:  # messages are read before any is sent
        executor.unplanned[method, algorithm] = UNPLANNED
        return _native(executor, method, arguments)
    except MPI.Exception as revoked:
        _pass_on(executor, revoked)
        raise
    return algorithm


def _pass_on(executor: Executor, error: BaseException) -> None:
    """Revoke what this rank shares with ranks that are not in the communicator in which it met a revocation."""
    if is_revoked(error):
        executor.groups.revoke()


def _with_whole_root(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments; mpi4py takes any number for the root, which comes last."""
    return arguments if type(arguments[-1]) is int else (*arguments[:-1], int(arguments[-1]))


def _unsuited(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> Exception | None:
    """The rank's error in a call that runs in stages. Calls like an earlier one are not looked at again."""
    spec, key = CALLS[method], quick_key(method, algorithm, arguments)
    if spec.form is Form.NOTHING or (key is not None and executor.bindings.get(key) is not None):
        return None
    if spec.uneven and is_in_place(arguments[0]):  # no plan runs these, so nobody else reads them
        arguments = ([b"", 0, MPI.BYTE], *arguments[1:])
    operands, error = _looked_at(executor.groups, spec, arguments)
    if error is None and key is not None and (operands is None or operands.by_address):
        executor.bindings.put(key, NOTHING_BOUND)
    return error


def _refused(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...], error: Exception) -> str:
    """What a call comes to that something is wrong with on this rank: the library says what, in its own words.

    Where only this rank's receive buffer is wrong the others know nothing of it: it takes its part in what they do.
    """
    spec = CALLS[method]
    takes_part = _takes_part(executor, spec, algorithm, arguments, error)
    # The library would wait for the others, who are done.
    if isinstance(error, ShortMemoryError) or (takes_part and isinstance(error, MPI.Exception)):
        raise error
    if spec.rooted and isinstance(error, MismatchError):
        raise MPI.Exception(error.code)
    return _native(executor, method, arguments)


def _takes_part(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[Any, ...], error: Exception
) -> bool:
    """Take this rank's part in a call that it refuses, if it can."""
    if is_in_stages(spec.name, algorithm) and spec.local:  # where sizes go ahead of blocks
        return take_part(executor, spec, algorithm, arguments)
    instead = _instead(executor, spec, algorithm, arguments, error)
    if instead is not None:
        run(executor, spec.name, algorithm, instead)
    return instead is not None


def _instead(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[Any, ...], error: Exception
) -> tuple[Any, ...] | None:
    """The call with memory of ours for a message that is wrong on this rank; None if it can take no part."""
    groups, root = executor.groups, arguments[-1]
    try:
        if spec.rooted and gathers_sizes(spec, arguments, groups):
            plan = _plan(executor, spec, algorithm, unread(groups.size, root))
            return None if plan is None else with_what_arrives(spec, plan, groups, root)
        if isinstance(error, MismatchError) and not spec.rooted:  # what it sends is as likely to be wrong
            return None
        ways = [with_own_memory, *([with_own_blocks] if isinstance(error, MPI.Exception) else [])]
        for way in ways:
            with suppress(Exception):  # more is wrong than that
                instead = way(spec, arguments, groups)
                if instead is not None and _looked_at(groups, spec, instead)[1] is None:
                    return instead
        return None
    except Exception:  # more is wrong than that
        return None


def _native(executor: Executor, method: str, arguments: tuple[Any, ...]) -> str:
    getattr(NativeIntracomm, method)(executor.groups.comm, *arguments)
    return "native"


def is_ready(executor: Executor, method: str, algorithm: str) -> bool:
    """Whether nothing collective comes before the messages of a call; the same on all ranks.

    :param executor: as for ``run``, with a context for messages.
    :param method: as for ``run``.
    :param algorithm: as for ``run``.
    """
    if is_in_stages(method, algorithm):
        return has_stages(executor, method, algorithm)
    return is_shared(executor, CALLS[method].collective, cut(algorithm)[0])


def ready(executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]) -> None:
    """Make the plan of a call beforehand, so that its first run takes as long as later ones; collective.

    Nothing is done for what runs in stages, whose communicators are made when it runs.

    :param executor: as for ``run``; likewise ``method``, ``algorithm`` and ``arguments``.
    """
    if algorithm != "native" and not is_in_stages(method, algorithm):
        key = quick_key(method, algorithm, arguments)
        if key is None or executor.bindings.get(key) is None:
            _bound(executor, method, algorithm, arguments, key)


def prepare(
    executor: Executor, method: str, algorithm: str, arguments: tuple[Any, ...]
) -> MPI.Prequest | PersistentPlan:
    """A collective bound to its buffers, to be started many times; collective.

    :param executor: as for ``run``; likewise ``algorithm`` and ``arguments``.
    :param method: the call without its ending, ``Bcast`` for ``Bcast_init``.
    :returns: a request; the MPI library's own where no plan can run.
    :raises ValueError: as ``run``.
    """
    if method in ROOTED:
        arguments = _with_whole_root(arguments)
    channel = executor.groups.new_channel()
    unplanned = algorithm == "native" or is_in_stages(method, algorithm)
    operands = None if unplanned else _read(executor, method, algorithm, arguments)[0]
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
    """The calls of a plan on these arguments, None for native, or what is wrong with the arguments on this rank.

    The calls are held under the key where addresses suffice.
    """
    operands, error = (None, None) if algorithm == "native" else _read(executor, method, algorithm, arguments)
    if error is not None:
        return error
    if operands is None:
        executor.unplanned[method, algorithm] = UNPLANNED
    plan = None if operands is None else _plan(executor, CALLS[method], algorithm, operands)
    if operands is None or plan is None:
        return None
    # What a refused call leaves behind, as where a root alone has no room, does not meet calls of other methods.
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
    # What is collective comes first, whatever this rank's arguments are.
    share_costly(executor, spec.collective, cut(algorithm)[0])
    executor.groups.connect()
    operands, error = _looked_at(executor.groups, spec, arguments)
    return operands.in_bytes if operands is not None and "/" in algorithm else operands, error


def _looked_at(groups: Groups, spec: CallSpec, arguments: tuple[Any, ...]) -> tuple[Operands | None, Exception | None]:
    """The operands of a call, None for the MPI library's to run or to refuse; and what is wrong with it."""
    try:
        operands = read(groups, spec, arguments)
        if operands is not None:
            check_operands(spec, operands, groups.alone)
            for side in (operands.input, operands.output):
                if isinstance(side, Block):
                    side.require_memory()
    except DeviceMemoryError:  # the library can do what we cannot
        return None, None
    except Exception as error:  # whatever it is, the others know nothing of it
        return None, error
    return operands, None


def _pieces(collective: str, name: str, segment: int, operands: Operands, ranks: int) -> tuple[int | None, int]:
    """The number of blocks of a message that is cut, and of lanes of its transfers; the same on all ranks."""
    if divides(collective, name):
        return segments_of((operands.length or 0) * operands.extent, segment), 1
    if operands.length is not None:
        longest = -(-operands.length // ranks)
    else:
        longest = operands.scale * (1 if operands.counts is None else int(operands.counts.max()))
    return None, segments_of(longest * operands.extent, segment)


def _plan(executor: Executor, spec: CallSpec, algorithm: str, operands: Operands) -> Plan | None:
    """The plan of this rank; None, on all ranks, where none can be made."""
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
    if isinstance(refusal, str):  # other communicators' plans are held here too
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
