"""The state of a communicator: how a handle finds it, makes it, shares it, and takes it over from a parent."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

from mpi4py import MPI

from ..dispatch.calls import Calls
from ..dispatch.common import Bequest, Common
from ..dispatch.counters import counters
from ..dispatch.origin import Origin
from ..dispatch.parts import Parts, attach, attached
from ..execution.native import NativeIntracomm
from ..selection.policy import Policy
from .discovery import find_topology
from .handle import CALLS_SLOT, Handle, calls_of, kept_of, launched
from .starting import settings_of

__all__ = [
    "ALL",
    "begin",
    "inherit",
    "knows_natives",
    "leave_all",
    "leave_to_library",
    "meet_once",
    "share",
    "state_of",
    "working",
]

ALL = Calls()  # table of calls for all communicators whose every call the MPI library runs
ALL.all = True

_keyval_lock = Lock()


def share(comm: Handle, other: Any) -> None:
    """Take over settings, topology and state from another handle of the same communicator. Local.

    :param comm: the new handle.
    :param other: the other handle; if it is of mpi4py's class, there is nothing to take over.
    """
    if not isinstance(other, Handle):
        return
    ours, theirs = kept_of(comm), kept_of(other)
    ours.checks, ours.policy, ours.lasts = theirs.checks, theirs.policy, theirs.lasts
    ours.origin, ours.cut, ours.inherited = theirs.origin, theirs.cut, theirs.inherited
    if theirs.held is not None and theirs.held.usable:
        _hold(comm, theirs.held)


def begin(comm: Handle, topology: Any = None, hosts: Any = None) -> None:
    """Get the settings from rank 0, and find the topology; collective.

    :param comm: the handle.
    :param topology: a source, or a ``TopologyInterface`` over the ranks of ``comm``; None to search for one.
    :param hosts: virtual placement; None to search for one.
    """
    kept, plain = kept_of(comm), NativeIntracomm(comm)
    checks, policy = settings_of(plain)
    kept.checks, kept.policy = checks, policy
    if topology is not None and not isinstance(topology, str | os.PathLike):
        if topology.num_ranks != plain.Get_size():
            raise ValueError(f"expecting a topology over {plain.Get_size()} ranks, got {topology.num_ranks}")
        _attach(comm, Common(topology, policy))
    elif topology is not None or hosts is not None:
        _attach(comm, Common(find_topology(plain, topology, hosts), policy))
    state = state_of(comm)
    _hold(comm, state)
    if counters.enabled and MPI.COMM_WORLD.Get_rank() == 0:
        what = "collective calls, median times (calls between two ranks: the MPI library's, not counted)"
        counters.report_at_exit(f"topompi: {state.interface.describe()}; rank 0's {what}")


def _attach(comm: Handle, common: Common, bequest: Bequest | None = None) -> Parts:
    kept, table = kept_of(comm), calls_of(comm)
    native_calls = 0 if kept.origin is None else common.policy.native_calls
    calls = table if kept.held is None and table is not ALL else None
    state = Parts(NativeIntracomm(comm), common, bequest, native_calls, calls, quick=kept.is_quick)
    attach(comm, state)
    return state


def inherit(comm: Handle, bequest: Bequest | None) -> None:
    """Take over a parent's state in a new communicator. Local: no communication."""
    kept = kept_of(comm)
    kept.inherited = bequest
    if bequest is None or not kept.is_quick:
        return
    if bequest.only:
        CALLS_SLOT.__set__(comm, ALL)
    elif (common := bequest.common) is not None:
        calls = calls_of(comm)
        calls.passes = True
        calls.others = common.early if common.policy.native_calls else common.natives


def knows_natives(comm: Handle) -> bool:
    """Give a new handle, if it lacks one, the table of calls that communicators over its ranks share. Local.

    The table has calls that the MPI library runs. The result is True if the handle got a table with entries.
    """
    kept = kept_of(comm)
    if kept.held is not None or kept.origin is None or calls_of(comm).others is not None or kept.checks:
        return False
    common = kept.origin.common_of(comm, kept.cut)
    inherit(comm, common.bequest)
    return calls_of(comm).all or (kept.is_quick and len(common.natives) + len(common.early) > 0)


def leave_to_library(comm: Handle) -> None:
    """Let the MPI library run every call on a communicator of one rank and on communicators made from it."""
    policy = kept_of(comm).policy = Policy()
    inherit(comm, Bequest(None, policy.alone, {}, {}))


def _hold(comm: Handle, state: Parts) -> None:
    kept_of(comm).held = state
    CALLS_SLOT.__set__(comm, state.calls)
    leave_all(comm, state)


def leave_all(comm: Handle, state: Parts) -> None:
    """Leave every call to the MPI library until the state is freed, if the choice is the same for all calls."""
    if state.usable and state.only and kept_of(comm).is_quick:
        state.calls.all = True


def state_of(comm: Handle) -> Parts:
    """The state attached to a communicator, which may be freed; made here, collectively, if there is none."""
    kept = kept_of(comm)
    state = kept.held
    if state is None or not state.usable:
        with _keyval_lock:  # cannot deadlock, because no MPI call in here waits for another rank
            found = attached(comm)
        state = _attach(comm, _common_of(comm), kept.inherited) if found is None else found
        _hold(comm, state)
    return state


def _common_of(comm: Handle) -> Common:
    """The state that all communicators over these ranks share.

    It is taken or computed from the parent's state. If there is no parent, the ranks find the topology collectively.
    """
    kept = kept_of(comm)
    if kept.inherited is not None and kept.inherited.common is not None:
        return kept.inherited.common
    if kept.origin is None and (world := launched()) is not None and world is not comm:
        kept.origin = _origin_for(comm, world)
    if kept.origin is not None:
        return kept.origin.common_of(comm, kept.cut)
    if kept.policy is None:
        kept.checks, kept.policy = settings_of(NativeIntracomm(comm))
    return Common(find_topology(comm), kept.policy)


def _origin_for(comm: Handle, world: Handle) -> Origin | None:
    """The topology from which a communicator made by compiled code takes its own. Local.

    The result is None if the topology of ``world`` is not found yet, or lacks a rank of ``comm``.
    """
    family = kept_of(world).family
    return family if family is not None and family.covers(comm) else None


def meet_once(comm: Any) -> None:
    """Let all ranks of a communicator meet, if its first reduction of objects needs that; see ``Parts.meet_once``."""
    if not isinstance(comm, Handle):
        return
    kept = kept_of(comm)
    known = kept.origin if kept.held is None else kept.held.common
    policy = kept.policy if known is None else known.policy
    if policy is not None and policy.asks_for_requests:
        working(comm).meet_once()


def working(comm: Handle) -> Parts:
    """The state attached to a communicator, checked before a collective call.

    :raises RuntimeError: if the state is freed; the same on all ranks, because freeing is collective.
    """
    state = state_of(comm)
    if not state.usable:
        raise RuntimeError("communicator already freed")
    return state
