"""The state of a communicator: how a handle finds it, makes it, shares it, and takes it over from a parent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from mpi4py import MPI

from ..dispatch.calls import Calls
from ..dispatch.common import Common
from ..dispatch.counters import counters
from ..dispatch.state import Lineage, State, attach, attached
from ..execution.native import NativeIntracomm
from ..selection.policy import Policy
from .discovery import find_topology
from .handle import CALLS_SLOT, Handle, calls_of, keep, launched, lineage_of, origin_of, state_seen
from .starting import settings_of

if TYPE_CHECKING:
    from ...topology import TopologyInterface

__all__ = ["begin", "is_the_librarys", "leave_to_library", "meet_once", "set_lineage", "share", "state_of", "working"]

ALL = Calls()  # table of calls for all communicators whose every call the MPI library runs
ALL.all = True

_keyval_lock = Lock()


def share(comm: Handle, other: object) -> None:
    """Take over settings, topology and state from another handle of the same communicator. Local.

    :param comm: the new handle.
    :param other: the other handle; if it is of mpi4py's class, there is nothing to take over.
    """
    if not isinstance(other, Handle):
        return
    lineage, state = replace(lineage_of(other), owned=False), state_seen(other)
    if state is None:
        set_lineage(comm, lineage)
        return
    keep(comm, "_topompi_lineage", lineage)
    _hold(comm, state)


def set_lineage(comm: Handle, lineage: Lineage) -> None:
    """Give a new handle its lineage, and the table of calls that communicators over its ranks share. Local.

    The table has calls that the MPI library runs, so that the first call may need no state of the communicator.
    """
    keep(comm, "_topompi_lineage", lineage)
    common = lineage.common
    if not lineage.is_quick:
        return
    if lineage.only or (common is not None and common.begun and common.only):
        CALLS_SLOT.__set__(comm, ALL)
    elif common is not None and lineage.origin is not None:
        calls = calls_of(comm)
        calls.passes, calls.others = True, common.early if common.policy.native_calls else common.natives


def begin(
    comm: Handle,
    topology: TopologyInterface | str | os.PathLike[str] | None = None,
    hosts: Sequence[str] | str | None = None,
) -> None:
    """Get the settings from rank 0, and find the topology; collective.

    :param comm: the handle.
    :param topology: a source, or a ``TopologyInterface`` over the ranks of ``comm``; None to search for one.
    :param hosts: virtual placement; None to search for one.
    """
    plain, lineage = NativeIntracomm(comm), lineage_of(comm)
    policy = lineage.policy = settings_of(plain)
    if topology is None and hosts is None:
        state = state_of(comm)
    else:
        if topology is None or isinstance(topology, str | os.PathLike):
            interface = find_topology(plain, topology, hosts)
        elif topology.num_ranks != plain.Get_size():
            raise ValueError(f"expecting a topology over {plain.Get_size()} ranks, got {topology.num_ranks}")
        else:
            interface = topology
        lineage.common = _origin(plain, interface, policy)
        state = _made(comm)  # in place of a state that another handle may have attached
    if counters.enabled and MPI.COMM_WORLD.Get_rank() == 0:
        what = "collective calls, median times (calls between two ranks: the MPI library's, not counted)"
        counters.report_at_exit(f"topompi: {state.interface.describe()}; rank 0's {what}")


def _origin(plain: MPI.Intracomm, interface: TopologyInterface, policy: Policy) -> Common:
    return Common(lambda: interface, policy, group=plain.Get_group())


def _made(comm: Handle) -> State:
    """The new state of a communicator, attached to it, from its lineage and its table of calls."""
    lineage, table = lineage_of(comm), calls_of(comm)
    calls = table if state_seen(comm) is None and table is not ALL else None
    state = State(NativeIntracomm(comm), _common_of(comm), lineage, calls)
    attach(comm, state)
    _hold(comm, state)
    return state


def _hold(comm: Handle, state: State) -> None:
    keep(comm, "_topompi_state", state)
    CALLS_SLOT.__set__(comm, state.calls)
    state.leave_all()


def is_the_librarys(comm: Handle) -> bool:
    """Whether the MPI library runs every call on a communicator, which then needs no state. Local."""
    lineage = lineage_of(comm)
    if state_seen(comm) is None and lineage.is_quick and lineage.common is not None and lineage.common.only:
        CALLS_SLOT.__set__(comm, ALL)
    return calls_of(comm).all


def leave_to_library(comm: Handle) -> None:
    """Let the MPI library run every call on a communicator of one rank and on communicators made from it."""
    set_lineage(comm, Lineage(policy=Policy(), only=Policy.alone))


def state_of(comm: Handle) -> State:
    """The state attached to a communicator, which may be freed; made here, collectively, if there is none."""
    state = state_seen(comm)
    if state is None or not state.usable:
        with _keyval_lock:  # cannot deadlock, because no MPI call in here waits for another rank
            found = attached(comm)
        if found is None:
            return _made(comm)
        state = found
        _hold(comm, state)
    return state


def _common_of(comm: Handle) -> Common:
    """The state that all communicators over these ranks share.

    It is taken from the origin. If there is none, the ranks find the topology collectively.
    """
    lineage = lineage_of(comm)
    if lineage.common is None:
        if lineage.origin is None and (world := launched()) is not None and world is not comm:
            lineage.origin = _origin_for(comm, world)
        if lineage.origin is not None:
            lineage.common = lineage.origin.over(comm)
        else:
            plain = NativeIntracomm(comm)
            lineage.policy = lineage.policy or settings_of(plain)
            lineage.common = _origin(plain, find_topology(plain), lineage.policy)
    return lineage.common


def _origin_for(comm: Handle, world: Handle) -> Common | None:
    """The topology from which a communicator made by compiled code takes its own. Local.

    The result is None if the topology of ``world`` is not found yet, or lacks a rank of ``comm``.
    """
    origin = origin_of(world)
    return origin if origin is not None and origin.covers(comm) else None


def meet_once(comm: object) -> None:
    """Let all ranks of a communicator meet, if its first reduction of objects needs that; see ``State.meet_once``."""
    if not isinstance(comm, Handle):
        return
    state = state_seen(comm)
    known = origin_of(comm) if state is None else state.common
    policy = lineage_of(comm).policy if known is None else known.policy
    if policy is not None and policy.asks_for_requests:
        working(comm).meet_once()


def working(comm: Handle) -> State:
    """The state attached to a communicator, checked before a collective call.

    :raises RuntimeError: if the state is freed; the same on all ranks, because freeing is collective.
    """
    state = state_of(comm)
    if not state.usable:
        raise RuntimeError("communicator already freed")
    return state
