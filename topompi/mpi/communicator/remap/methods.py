"""The methods that make communicators with ranks re-ordered for the network: ``remap``, ``Create_cart`` and so on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import stderr
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ...dispatch.counters import counters
from ...execution.native import NativeIntracomm
from ...execution.rankzero import from_rank_0
from .. import agreement
from ..agreement import AgreementError
from ..derived import adopt
from ..handle import Handle, is_null, lineage_of
from ..state import working

if TYPE_CHECKING:
    from ....mapping.graph import CommunicationGraph
    from ....topology import TopologyInterface
    from ...dispatch.common import Common
    from ...dispatch.state import State
    from .order import Aim, MappingReport, Solution

__all__ = ["Reordering", "remap"]

# ``mapping`` and ``order`` are imported at their first use, because few communicators are re-ordered.


def remap(
    comm: Any,
    graph: Any,
    *,
    objective: str = "hop-bytes",
    threshold: float | None = None,
    quality: float | None = None,
    seed: int = 0,
    report: bool = False,
) -> Any:
    """A communicator of the same processes, re-ordered so that messages travel short routes; collective.

    The process that becomes rank r must send the messages that the graph has for rank r. Only rank 0's arguments
    and environment count; the other ranks may pass None. The new order is never worse by the objective;
    ``topompi.mapping_report`` of the result describes it. The caller frees the result, even if the order did not
    change.

    :param comm: the communicator.
    :param graph: the bytes that each rank sends to each other: a ``mapping.graph.CommunicationGraph``, a networkx
        graph, a matrix (row sends to column), or the name of a file in any format that ``topompi map`` reads.
    :param objective: the number to minimise: ``hop-bytes``, each message's bytes times its hops, summed; or
        ``busiest link``, bytes over capacity on the link where this is greatest.
    :param threshold: least fraction of the objective that a new order must save to be taken; 0.03 if it is None.
    :param quality: fraction of the given order's objective at which the search stops; if it is None,
        ``TOPOMPI_MAP_QUALITY``, or 0 if that is not set.
    :param seed: seed of the search; the same seed gives the same order.
    :param report: True to print the report to rank 0's standard error.
    :raises RemapError: if the graph has another number of ranks, or an argument is out of range; the same on all
        ranks.

    Cost: the search on rank 0, one broadcast of 8 bytes per rank, one allreduce of 24 bytes, one split.
    """
    from .order import THRESHOLD, Aim, communication_graph

    plain = working(comm).comm
    with agreement.checked(comm, "remap", ()):
        pass

    def ask() -> tuple[CommunicationGraph, Aim]:
        aim = Aim(objective, THRESHOLD if threshold is None else threshold, quality, seed)
        return communication_graph(graph, plain.Get_size()), aim

    solution = _solved(plain, "remap", working(comm).common, ask)
    made = _in_order(plain, solution.new_rank)
    if report and plain.Get_rank() == 0:
        print(f"topompi: remap: {solution.report.describe()}", file=stderr, flush=True)
    return _reported(comm, "remap", made, solution.report)


class Reordering(Handle):
    """A communicator with the methods that make a communicator whose ranks may be re-ordered for the network."""

    __slots__ = ()

    def Create_cart(self, dims: Sequence[int], periods: Sequence[bool] | None = None, reorder: bool = False) -> Any:
        """A communicator with a Cartesian topology; with ``reorder`` its ranks are re-ordered for the network.

        The order is sought for equal messages between nearest neighbours in the grid. If the grid is smaller than the
        communicator, the other processes get ``MPI.COMM_NULL``; with ``reorder`` these may be any processes, not only
        the last ones.
        """
        if not reorder or is_null(self):
            return super().Create_cart(dims, periods, reorder)
        return _create_shared(self, "Create_cart", (dims, periods))

    def Create_graph(self, index: Sequence[int], edges: Sequence[int], reorder: bool = False) -> Any:
        """A communicator with a graph topology; with ``reorder`` its ranks are re-ordered for the network.

        If the graph is smaller than the communicator, the other processes get ``MPI.COMM_NULL``; with ``reorder`` these
        may be any processes, not only the last ones.
        """
        if not reorder or is_null(self):
            return super().Create_graph(index, edges, reorder)
        return _create_shared(self, "Create_graph", (index, edges))

    def Create_dist_graph_adjacent(
        self,
        sources: Sequence[int],
        destinations: Sequence[int],
        sourceweights: Sequence[int] | None = None,
        destweights: Sequence[int] | None = None,
        info: MPI.Info = MPI.INFO_NULL,
        reorder: bool = False,
    ) -> Any:
        """A communicator with a distributed graph topology, in which each rank specifies its own neighbours.

        With ``reorder`` the ranks are re-ordered for the network by the weights of the edges to their destinations,
        which stand for bytes; if topompi joins small blocks between hosts, by the messages that this leaves.
        Rank r of the result has the neighbours and weights that rank r of this communicator specified, in that order.

        :raises RemapError: with ``reorder``, if a rank's lists contradict each other; the same on all ranks.
        """
        given = (sources, destinations, sourceweights, destweights)
        if not reorder or is_null(self):
            return super().Create_dist_graph_adjacent(*given, info, reorder)
        return _create_distributed(self, "Create_dist_graph_adjacent", given, info)

    def Create_dist_graph(
        self,
        sources: Sequence[int],
        degrees: Sequence[int],
        destinations: Sequence[int],
        weights: Sequence[int] | None = None,
        info: MPI.Info = MPI.INFO_NULL,
        reorder: bool = False,
    ) -> Any:
        """A communicator with a distributed graph topology, in which each rank specifies any edges.

        With ``reorder`` the ranks are re-ordered for the network; the numbers in the edges are ranks of the result.

        :raises RemapError: with ``reorder``, if a rank's lists contradict each other; the same on all ranks.
        """
        given = (sources, degrees, destinations, weights)
        if not reorder or is_null(self):
            return super().Create_dist_graph(*given, info, reorder)
        return _create_distributed(self, "Create_dist_graph", given, info)


def _create_shared(comm: Handle, name: str, given: tuple[object, ...]) -> Any:
    """The communicator made by a method whose arguments are the same on all ranks."""
    from .neighbourhoods import SHARED

    plain, interface, form = working(comm).comm, working(comm).interface, SHARED[name]
    if interface.num_hosts == 1:
        return _reported(comm, name, getattr(NativeIntracomm, name)(plain, *given, False), _one_host(interface))
    try:
        understood = form.understand(given, plain.Get_size())
    except (TypeError, ValueError):
        understood = ()
    if not _agreed(plain, repr(understood).encode()):
        raise AgreementError(f"{name}: expecting the same arguments on all ranks, got different ones")
    if not understood:
        return getattr(NativeIntracomm, name)(plain, *given, True)  # raises the MPI library's error
    solution = _solved(plain, name, working(comm).common, lambda: _aimed(form.graph(understood), working(comm)))
    return _made_on(comm, plain, name, solution, lambda on: getattr(on, name)(*given, False))


def _create_distributed(comm: Handle, name: str, given: tuple[object, ...], info: MPI.Info) -> Any:
    """The communicator made by a method whose arguments differ by rank; new rank r takes old rank r's arguments.

    Cost in addition to ``remap``'s: one gather of all arguments, one message per rank.
    """
    from .neighbourhoods import DISTRIBUTED
    from .order import RemapError

    plain, interface, form = working(comm).comm, working(comm).interface, DISTRIBUTED[name]
    if interface.num_hosts == 1:
        return _reported(comm, name, getattr(NativeIntracomm, name)(plain, *given, info, False), _one_host(interface))
    understood, problem = None, None
    try:
        understood = form.understand(given, plain.Get_size())
    except Exception as error:  # any error, because all ranks must learn of it
        problem = f"{error}"
    told = plain.gather((understood, problem)) or []

    def ask() -> tuple[CommunicationGraph, Aim]:
        for rank, (_, wrong) in enumerate(told):
            if wrong is not None:
                raise RemapError(f"rank {rank}: {wrong}")
        return _aimed(form.graph([said for said, _ in told]), working(comm))

    solution = _solved(plain, name, working(comm).common, ask)

    def make(on: MPI.Intracomm) -> Any:
        said: Any = understood
        if solution.new_rank is not None:
            of_my_rank = int(solution.new_rank[on.Get_rank()])
            said = on.sendrecv(understood, dest=plain.Get_rank(), source=of_my_rank)
        return getattr(on, name)(*said, info, False)

    return _made_on(comm, plain, name, solution, make)


def _made_on(
    comm: Handle, plain: MPI.Intracomm, name: str, solution: Solution, make: Callable[[MPI.Intracomm], MPI.Comm]
) -> Any:
    """The communicator that ``make`` makes from a re-ordered one, or from ``plain`` if the order stays.

    :param plain: communicator of the ranks, an instance of mpi4py's own class.
    :param name: name of the method, for messages.
    :param solution: the order of the ranks, and the report of the search, which is attached to the result.
    :param make: function that makes a communicator from a given one.
    """
    if solution.new_rank is None:
        return _reported(comm, name, make(plain), solution.report)
    ordered = _in_order(plain, solution.new_rank)
    made = make(ordered)
    ordered.Free()
    return _reported(comm, name, made, solution.report)


def _reported(comm: Handle, name: str, made: MPI.Comm, report: MappingReport) -> Any:
    """The given communicator as an object of topompi's class, to which the report is attached."""
    child = adopt(made, comm)
    lineage_of(child).report = report
    if counters.enabled:
        counters.count(name, 0, report.algorithm, report.describe())
    return child


def _aimed(graph: CommunicationGraph, state: State) -> tuple[CommunicationGraph, Aim]:
    """The graph of a topology, and the aim of the search for an order of its ranks; not collective.

    If topompi may join the messages of neighbourhood collectives between hosts, the order is sought for those messages.

    :param graph: the edges with their weights, which stand for bytes.
    :param state: topompi's state of the communicator.
    """
    from ...prediction.joining import joining_of
    from .order import Aim

    native = state.only is not None and not state.common.policy.neighbours
    joining = None if native else joining_of(state.interface, state.common.policy.neighbours, graph)
    return graph, Aim(joining=joining)


def _one_host(interface: TopologyInterface) -> MappingReport:
    from .order import MappingReport

    return MappingReport(False, "one host", virtual=interface.virtual)


def _in_order(plain: MPI.Intracomm, new_rank: NDArray[np.int64] | None) -> MPI.Intracomm:
    """A new communicator of the same processes, with new ranks, or the same ranks if they are None; collective."""
    rank = plain.Get_rank()
    return NativeIntracomm(plain.Split(0, rank if new_rank is None else int(new_rank[rank])))


def _solved(
    plain: MPI.Intracomm, name: str, common: Common, ask: Callable[[], tuple[CommunicationGraph, Aim]]
) -> Solution:
    """Search on rank 0 for an order of the ranks, and return it on all ranks; collective.

    :param plain: communicator of the ranks, an instance of mpi4py's own class.
    :param name: name of the method, for messages.
    :param common: the placement of the ranks, and the cache of orders found before.
    :param ask: function called on rank 0, which returns the communication graph and the aim of the search.
    :raises RemapError: if the search fails on rank 0; the same on all ranks.
    :raises AgreementError: if the ranks did not all receive the same permutation; the same on all ranks.
    """
    from .order import RemapError, held_or_solved

    def search() -> Solution:
        try:
            graph, aim = ask()
            return held_or_solved(common.orders, graph, common.interface, aim)
        except ValueError as error:
            raise RemapError(f"{name}: {error}") from error

    solution = from_rank_0(plain, search)
    order = np.arange(plain.Get_size()) if solution.new_rank is None else solution.new_rank
    valid = np.array_equal(np.sort(order), np.arange(plain.Get_size()))
    if not _agreed(plain, order.tobytes() if valid else None):
        raise AgreementError(f"{name}: expecting one permutation of {plain.Get_size()} ranks, the same on all of them")
    return solution


def _agreed(plain: MPI.Intracomm, value: bytes | None) -> bool:
    """Whether all ranks have the same value, and none has None; collective: one allreduce of 24 bytes."""
    from hashlib import blake2b  # imports OpenSSL, which few programs need

    number = int.from_bytes(blake2b(value or b"", digest_size=7).digest(), "big")
    ends = np.array([number, -number, value is None], dtype=np.int64)
    plain.Allreduce(MPI.IN_PLACE, ends, MPI.MAX)
    return bool(ends[0] == -ends[1] and not ends[2])
