"""The decisions of the bridge: the moves that a Slurm in a given state needs, as the simulator would decide them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...inputs.hostlist import HostNames, compress
from ..jobs import AllocationError, Cluster
from ..jobs.allocation import find_allocator, within_parts
from ..jobs.now import node_names, shared_links
from ..jobs.queueing import Promise, find_queue
from .controller import Move
from .mirror import HeldNodes, Mirror, Request
from .snapshot import SlurmSnapshot
from .view import BridgeRules, PlannerView

__all__ = ["BridgeRules", "PassDecision", "Planner"]


@dataclass(frozen=True)
class PassDecision:
    """The result of a pass.

    :param moves: changes of jobs, in the order in which they are to be made.
    :param waiting: number of jobs that could start if there were nodes.
    :param running: number of jobs that hold nodes.
    :param ours: number of jobs among these that the bridge placed.
    :param left: number of waiting jobs that Slurm itself places.
    :param shared: names of two jobs that can use the same link, for each pair.
    :param broken: number of these pairs of which the bridge placed both.
    """

    moves: tuple[Move, ...] = ()
    waiting: int = 0
    running: int = 0
    ours: int = 0
    left: int = 0
    shared: tuple[tuple[str, str], ...] = ()
    broken: int = 0


class Planner:
    """The maker of decisions, which keeps the simulator's situation between passes only to save time.

    A new planner decides the same as one that has seen all former snapshots.

    :param cluster: the machine.
    :param policy: the rules.
    :raises AllocationError: if the allocator only counts nodes, or gives slots of nodes.
    """

    def __init__(self, cluster: Cluster, policy: BridgeRules) -> None:
        allocator = within_parts(find_allocator(policy.allocator), cluster)
        if not allocator.names_nodes or allocator.heeds:
            raise AllocationError(f"bridge: expecting a policy that names whole nodes, got {policy.allocator}")
        self.cluster, self.policy = cluster, policy
        self.names, self.queue = node_names(cluster), find_queue(policy.queue)
        self._known = HostNames(self.names)
        self._mirror = Mirror(cluster, allocator)
        self._fits_since: dict[str, int] = {}  # jobs of Slurm's own, since when enough nodes have been free
        self._shared: tuple[frozenset[HeldNodes], tuple[tuple[str, str], ...]] = frozenset(), ()

    def decide(self, snapshot: SlurmSnapshot) -> PassDecision:
        """Return the moves that this state needs.

        :param snapshot: Slurm's present state.
        """
        view = PlannerView(snapshot, self.policy, self.names, self._known)
        held = view.held
        self._mirror.follow(snapshot.now, held, view.closed)
        back = [*view.pulled_back()]
        leaving, queue = view.sorted_out(self._mirror)
        starts = [*self._pass(view, queue)]
        shared = self._sharing(held)
        ours = {job.id for job in snapshot.jobs if job.holds and job.is_placed}
        return PassDecision(
            (*back, *leaving, *starts),
            waiting=len(queue),
            running=sum(job.holds for job in snapshot.jobs),
            ours=len(ours),
            left=sum(self._mirror.requests[number].among is not None for number in queue) + len(leaving),
            shared=shared,
            broken=sum(set(pair) <= ours for pair in shared),
        )

    def _pass(self, view: PlannerView, queue: Sequence[int]) -> Iterator[Move]:
        mirror, situation = self._mirror, self._mirror.situation
        mirror.wait(queue)
        if queue and (nodes := view.promised(mirror.requests[queue[0]])):
            placement = mirror.allocator.resume(situation.job(queue[0]), np.array(nodes), self.cluster)
            situation.promise = Promise(queue[0], view.snapshot.now, placement)
        if queue and not self._must_wait(mirror.requests[queue[0]], view.snapshot.now):
            self.queue.start_jobs(situation)
        for request, chosen in mirror.started:
            if request.among is None:
                yield view.start(request, [self.names[node] for node in chosen])
        yield from self._promises(view)

    def _promises(self, view: PlannerView) -> Iterator[Move]:
        """Yield a move for each waiting job whose note names other promised nodes than it is promised now.

        Only promises of named nodes are kept, which allocators make that may find none after other jobs have ended.
        """
        mirror, promise = self._mirror, self._mirror.situation.promise
        kept = promise if promise is not None and not mirror.allocator.monotone else None
        for number in mirror.situation.waiting:
            request = mirror.requests[number]
            promised, mark = "", view.jobs[request.id].mark
            if kept is not None and kept.placement is not None and kept.number == number:
                promised = self._listed(kept.placement.nodes[: request.size]) if request.among is None else ""
            if mark.promise != promised:
                why = f"promised {promised}" if promised else "no longer first"
                yield Move(request.id, replace(mark, promise=promised), why=why)

    def _listed(self, nodes: NDArray[np.integer]) -> str:
        return compress([self.names[node] for node in sorted(nodes.tolist())])

    def _must_wait(self, head: Request, now: int) -> bool:
        """Return whether a job that Slurm itself places would starve if the bridge went on starting jobs.

        Enough nodes are free for it, but perhaps not those that it needs, which the bridge's jobs could always take.
        """
        state = self._mirror.situation.state
        fits = head.among is not None and int((state.busy[np.array(head.among)] == 0).sum()) >= head.size
        self._fits_since = {head.id: self._fits_since.get(head.id, now)} if fits else {}
        return fits and now - self._fits_since[head.id] > self.policy.starving

    def _sharing(self, held: Sequence[HeldNodes]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of running jobs that can use the same link; computed only if the running jobs changed."""
        key = frozenset(one._replace(end=0) for one in held)
        if key != self._shared[0]:
            known = [one for one in held if one.request.id]
            found = shared_links([np.array(one.nodes) for one in known], self.cluster)
            self._shared = key, tuple((known[a].request.id, known[b].request.id) for a, b in found.pairs)
        return self._shared[1]
