"""The preparation of a call: its arguments are read and checked, and a binding is made."""

from __future__ import annotations

from collections.abc import Hashable

from mpi4py import MPI

from ...schedules.registry import ALGORITHMS
from ...schedules.segments import cut
from .binding import Binding, bind
from .buffers import DeviceMemoryError, is_in_place
from .carriers import alltoallv, carriers_of
from .eligibility import is_carried, is_ready, why_not
from .executor import Executor
from .groups import Groups
from .operand_checks import check
from .operands import Operands, read
from .plan import Plan
from .planning import UNPLANNED, plan_of, share_costly
from .specs import CallSpec

__all__ = ["bound", "checked", "planned"]


def bound(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[object, ...], key: Hashable | None = None
) -> Binding | Exception | None:
    """Make the binding by which an algorithm runs a call; collective at an algorithm's first call on a communicator.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param spec: the description of the call.
    :param algorithm: an algorithm that ``eligibility.can_run`` allows, not ``native``, the same on all ranks.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param key: key of the call in the cache of bindings; None if its binding is not kept.
    :returns: the binding; the error of this rank's arguments; None, on all ranks, if the MPI library must run the call.
    :raises ValueError: if ``can_run`` does not allow the algorithm.
    """
    if is_carried(spec.name, algorithm):
        return _carried(executor, spec, algorithm, arguments)
    found = planned(executor, spec, algorithm, arguments)
    if not isinstance(found, tuple):
        return found
    # Each method has a channel of its own. Messages left over by a call that failed on one rank, for example on a
    # root that lacks memory, then match no call of another method.
    plan, operands = found
    made = bind(plan, operands, executor.groups, executor.groups.channel(spec.number))
    if key is not None and operands.by_address:
        executor.bindings.put(key, made, made.weight)
    return made


def planned(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[object, ...]
) -> tuple[Plan, Operands] | Exception | None:
    """The plan of a call and its operands; the error of this rank's arguments; None if no plan can run the call.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param spec: the description of the call.
    :param algorithm: name of a schedule that ``can_run`` allows, the same on all ranks; not one that runs by carriers.
    :param arguments: all arguments of mpi4py's method, in their order.
    :raises ValueError: if ``can_run`` does not allow the algorithm.
    """
    if why_not(spec.name, algorithm):
        raise ValueError(f"expecting an algorithm that can run {spec.name}, got {algorithm!r}")
    # Collective steps come before the reading of arguments, because the other ranks wait in them even if it fails here.
    if not is_ready(executor, spec.name, algorithm):
        share_costly(executor, spec.collective, cut(algorithm)[0])
    executor.groups.connect()
    operands, error = checked(executor.groups, spec, arguments)
    if error is not None:
        return error
    if operands is None:
        executor.unplanned[spec.name, algorithm] = UNPLANNED
        return None
    if "/" in algorithm:
        operands = operands.in_bytes
    elif (entry := ALGORITHMS[spec.collective].get(algorithm)) is not None and entry.divides_shares:
        operands = operands.with_counts(executor.groups.size) if executor.network.ports > 1 else operands
    plan = plan_of(executor, spec, algorithm, operands)
    return None if plan is None else (plan, operands)


def checked(groups: Groups, spec: CallSpec, arguments: tuple[object, ...]) -> tuple[Operands | None, Exception | None]:
    """The operands of a call (None if the MPI library must run it), and the error of this rank's arguments, or None.

    :param groups: the communicator and its sub-communicators.
    :param spec: the description of the call.
    :param arguments: all arguments of mpi4py's method, in their order.
    """
    try:
        operands = read(groups, spec, arguments)
        if operands is not None:
            check(spec, operands, groups.alone)
    except DeviceMemoryError:  # the library can send it; a plan cannot
        return None, None
    except Exception as error:  # any error, because the other ranks do not know of it and wait for this rank
        return None, error
    return operands, None


def _carried(
    executor: Executor, spec: CallSpec, algorithm: str, arguments: tuple[object, ...]
) -> Binding | Exception | None:
    """The binding of a call by carriers, which has the call's arguments and therefore serves this call alone.

    :returns: the binding; the error of this rank's arguments; None, on all ranks, if messages are in a device's memory.
    """
    # Collective, and therefore before the check of arguments, which may fail on this rank alone.
    carriers = carriers_of(executor, spec)
    for look in _each_message(arguments):
        operands, error = checked(executor.groups, spec, look)
        if error is not None:
            return error
        if operands is None:
            executor.unplanned[spec.name, algorithm] = UNPLANNED
            return None
    return Binding([(alltoallv, (*carriers, executor.groups.alone, *arguments))])


def _each_message(arguments: tuple[object, ...]) -> list[tuple[object, ...]]:
    """Arguments for two checks of an alltoallv: with the receive message alone, and with the send message alone.

    The messages are checked apart, because they may share memory if carriers, which send packed blocks, run the call.
    """
    nothing, (sent, received) = [bytearray(), 0, MPI.BYTE], arguments
    return [(nothing, received)] if is_in_place(sent) else [(nothing, received), (sent, nothing)]
