"""The parts of topompi's communicators on which a compiled program's calls stand."""

from __future__ import annotations

from enum import Enum, auto

from mpi4py import MPI

from ..communicator.derived import adopt
from ..communicator.handle import Handle, bare, calls_of, launched, lineage_of, origin_of, state_seen
from ..communicator.kinds import Intracomm
from ..communicator.state import begin, working
from ..dispatch.choosing import choose
from ..dispatch.counters import counters
from ..execution.contexts import alone
from ..execution.native import NativeIntracomm
from ..execution.specs import CALLS, NATIVE

__all__ = ["Extent", "abstain", "begin_world", "communicator_of", "native_for_good", "returning_errors"]


class Extent(Enum):
    """The calls that the MPI library runs: none, those of one method and class of sizes, of one method, or all."""

    NONE = auto()
    CLASS = auto()
    METHOD = auto()
    COMMUNICATOR = auto()


_watched: list[bool] = []  # whether a rank counts calls, and all have to go through topompi


def begin_world() -> Handle:
    """Find the topology of MPI.COMM_WORLD; collective. Other communicators take theirs from it without messages.

    :raises TopompiError: if the settings are wrong or the topology cannot be read; the same on all ranks.
    """
    world: Handle = bare(Intracomm, MPI.COMM_WORLD)
    begin(world)
    lineage_of(world).lasts = True
    _watched[:] = [NativeIntracomm(world).allreduce(counters.enabled, MPI.LOR)]  # variables may reach one host alone
    MPI.COMM_WORLD = world  # type: ignore[misc]  # as the launcher does for Python programs
    return world


def returning_errors() -> None:
    """Let the questions that topompi asks the library about operands return errors, whatever the program's handler is.

    The communicator for these questions inherits the error handler of MPI.COMM_SELF, which must return errors now.
    """
    alone()


def communicator_of(handle: int) -> Handle | None:
    """Topompi's communicator for a handle of the program's, with its ranks' part of the world's topology. Local.

    The result is None if a rank is not in MPI.COMM_WORLD: its process may run without topompi.

    :param handle: an intracommunicator.
    """
    native, world = MPI.Intracomm.fromhandle(handle), launched()
    if world is None or not isinstance(native, MPI.Intracomm):
        return None
    origin = origin_of(world)
    if origin is None or not origin.covers(native):
        return None
    comm: Handle = adopt(native, world)
    return comm


def native_for_good(comm: Handle, name: str, nbytes: int | None) -> Extent:
    """The calls like the latest one that the MPI library runs until the communicator is freed; the same on all ranks.

    A final choice never changes. Calls that are counted or checked all have to go through topompi.

    :param comm: the communicator, on which the latest call was.
    :param name: name of mpi4py's method.
    :param nbytes: size of the call in bytes; None if it has no class of sizes, or an operation of the program's.
    """
    lineage, state = lineage_of(comm), state_seen(comm)
    if lineage.checks or any(_watched):
        return Extent.NONE
    if calls_of(comm).all:
        return Extent.COMMUNICATOR
    common = state.common if state is not None and state.usable else lineage.common
    if common is not None and common.leaves(name):
        return Extent.METHOD
    choice = None if nbytes is None or state is None else state.choice_of(name, nbytes)
    return Extent.NONE if choice is None or choice.algorithm != NATIVE or choice.trial is not None else Extent.CLASS


def abstain(comm: Handle, name: str, root: int | None) -> None:
    """Tell the other ranks, which may wait for this one, that the MPI library has to run a call.

    :param comm: the communicator.
    :param name: name of mpi4py's method.
    :param root: the root; None in a call without one.
    """
    state, calls, spec = working(comm), calls_of(comm), CALLS[name]
    calls.made += 1
    unreadable = (None,) * len(spec.parameters)
    choose(state, spec, unreadable, root, None, young=calls.made <= state.native_calls)
