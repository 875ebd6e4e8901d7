"""The public functions that say what topompi knows of a communicator; its classes have MPI's names alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mpi4py import MPI

from ..dispatch.state import attached
from ..execution.executor import FORMER, ORDER
from .handle import Handle, bare, lineage_of, plain
from .kinds import handle_of
from .state import begin, state_of, working

if TYPE_CHECKING:
    from ...topology import TopologyInterface
    from ..selection.choice import Choice
    from .remap.order import MappingReport

__all__ = ["choice_of", "interface", "mapping_report", "refreshed", "sub_communicators"]


def interface(comm: MPI.Intracomm) -> TopologyInterface:
    """The placement of a communicator's ranks on the network.

    The first use may be collective, because it makes the communicator's state.

    :param comm: a communicator, of topompi's class or mpi4py's.
    """
    return state_of(handle_of(comm)).interface


def refreshed(comm: MPI.Intracomm) -> MPI.Intracomm:
    """A communicator of the same ranks that follows the routes of today; collective.

    It is ``comm`` if its topology did not come from a topology service, or if the service still has the same routes.
    Else it is a duplicate with the new routes and rates, and nothing that was made from the old ones; only the search
    for the order of rings begins with the former one. ``comm``, its persistent requests and its children keep the old
    routes, and the caller frees whichever he needs no longer.

    :param comm: a communicator, of topompi's class or mpi4py's.
    :raises ServiceError: if the service does not answer in time; the same on all ranks.
    :raises HostError: if the service's fabric no longer has one of the hosts; the same on all ranks.
    Cost: one short question of rank 0 to the service, and log2(p) messages; if routes have changed, also a view of
    the job's part of the fabric, and one more broadcast.
    """
    handle = handle_of(comm)
    state = working(handle)
    if state.interface.served is None:
        return comm
    new = state.groups.talks.from_rank_0(lambda: _changed(state.interface))
    if new is None:
        return comm
    made: Handle = bare(type(handle), plain(handle).Dup())
    lineage_of(made).owned = True
    begin(made, new)
    if state.executor.has_order:
        state_of(made).executor.shared[FORMER] = state.executor.shared[ORDER]
    return made


def _changed(view: TopologyInterface) -> TopologyInterface | None:
    """The view of the same ranks with the service's present routes; None if they have not changed."""
    from ...topology import reread  # imported here, because only rank 0 needs the readers of sources

    return None if view.served is None or view.served.is_current() else reread(view)


def choice_of(comm: MPI.Intracomm, method: str, nbytes: int) -> Choice | None:
    """The algorithm chosen for calls of a size, and the reason; None if none is chosen yet. No communication.

    :param comm: a communicator, of topompi's class or mpi4py's.
    :param method: mpi4py's name of the call, for example ``Alltoall``.
    :param nbytes: size of the call in bytes, as rules count it (docs/rules.md).
    """
    state = attached(comm)
    return None if state is None else state.choice_of(method, nbytes)


def mapping_report(comm: MPI.Intracomm) -> MappingReport | None:
    """The report on the search for the order of a communicator's ranks; None if they were not re-ordered.

    :param comm: a communicator that ``remap`` returned, or a method with ``reorder=True``.
    """
    return cast("MappingReport | None", lineage_of(comm).report) if isinstance(comm, Handle) else None


def sub_communicators(comm: MPI.Intracomm) -> dict[str, MPI.Intracomm]:
    """The sub-communicators that this rank is in, by name, outermost first; collective at its first use.

    Level by level (for example leaf switches, then hosts), the lowest rank of each cluster is its leader. One
    sub-communicator has the leaders of all clusters of the outermost level, the next one the leaders of the
    clusters inside one of these, and so on; the last one has all ranks of one innermost cluster. A rank that is no
    leader is in the last one only. They belong to the communicator: do not free them.

    :param comm: a communicator, of topompi's class or mpi4py's.
    """
    state = state_of(handle_of(comm))
    if not state.groups.divided:
        return {}
    names = [f"leaders {level.name}" for level in state.interface.levels] + ["ranks"]
    return {names[level - 1]: part for level, part in sorted(state.groups.levels.parts.items())}
