"""A snapshot of Slurm in the terms of the simulator: nodes by their numbers, and jobs as requests and held nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...inputs.hostlist import HostNames, compress, expand
from ..jobs.queueing import Queue
from .controller import Move
from .mark import Mark
from .mirror import HeldNodes, Mirror, Request
from .snapshot import SlurmJob, SlurmSnapshot

__all__ = ["BridgeRules", "PlannerView"]

FOREVER = 365 * 86_400  # seconds that a job without a time limit counts as
# Reasons of a job that has its nodes, but waits for a limit of its user, its time or another job: no fault of ours.
_LIMITED = ("Assoc", "QOS", "MaxJobs", "Licenses", "JobArrayTaskLimit", "PartitionTimeLimit", "AccountNotAllowed")
_NOT_YET = ("BeginTime", "Dependency", "JobHeld", "Prolog", "Reservation")
_REFUSED = ("BadConstraints", "ReqNodeNotAvail", "PartitionNodeLimit", "NodeDown")
_WAITING_FOR_NODES = ("None", "Resources", "Priority")
SETTLING = 3  # seconds after which Slurm's reason is about the nodes that it was given, and not left over


@dataclass(frozen=True)
class BridgeRules:
    """The rules of the bridge.

    :param allocator: allocator that names nodes.
    :param queue: queue discipline; EASY backfilling by default.
    :param door: partition in which users' jobs wait; it is down while the bridge runs.
    :param run: partition in which the bridge's jobs run, with a higher tier than all others on its nodes.
    :param usual: partition of the jobs that are left to Slurm.
    :param patience: seconds within which a job that was given nodes has to start.
    :param tries: number of times that a job may be given nodes in vain; then it is left to Slurm.
    :param retry: seconds until a job that waits for a limit of its user is tried again.
    :param starving: seconds for which enough nodes may be free for the first waiting job of Slurm's own, before the
        bridge stops to start jobs.
    """

    allocator: str = "isolated"
    queue: Queue | str | None = None
    door: str = "door"
    run: str = "run"
    usual: str = "all"
    patience: int = 10
    tries: int = 3
    retry: int = 30
    starving: int = 60


class PlannerView:
    """A snapshot as the planner sees it: nodes by their numbers, jobs by what the bridge does with them.

    :param snapshot: Slurm's present state.
    :param policy: the rules.
    :param names: names of the cluster's nodes.
    :param known: the same names, to find the number of a node.
    """

    def __init__(self, snapshot: SlurmSnapshot, policy: BridgeRules, names: Sequence[str], known: HostNames) -> None:
        self.snapshot, self.policy, self.names = snapshot, policy, names
        self._find = known.find
        self.jobs: Mapping[str, SlurmJob] = {job.id: job for job in snapshot.jobs}

    @cached_property
    def ours(self) -> list[bool]:
        """Whether each node of the cluster is one of the partition in which the bridge's jobs run."""
        members = self.snapshot.members.get(self.policy.run, frozenset())
        return [name in members for name in self.names]

    @cached_property
    def closed(self) -> NDArray[np.bool_]:
        """Whether each node takes no job of the bridge, now or after its job."""
        shut = self.snapshot.closed
        return np.array([not mine or name in shut for mine, name in zip(self.ours, self.names, strict=True)])

    @cached_property
    def held(self) -> list[HeldNodes]:
        """The jobs with nodes: those that hold some, those that were given some, and nodes that no known job holds."""
        found, taken = list[HeldNodes](), set[int]()
        for job in self.snapshot.jobs:
            if job.holds:
                found += self._holding(job, job.hosts, taken)
        for job in self.snapshot.jobs:
            if self._is_moved(job):
                found += self._holding(job, expand(job.wanted), taken)
        unknown = tuple(sorted({self._find(name) for name in self.snapshot.busy} - taken - {-1}))
        if unknown:  # a job has begun or ended between the commands
            found.append(HeldNodes(Request("", len(unknown), 1), unknown, self.snapshot.now + 1, False))
        return found

    def _holding(self, job: SlurmJob, hosts: Sequence[str], taken: set[int]) -> Iterator[HeldNodes]:
        nodes = sorted({self._find(name) for name in hosts} - taken - {-1})
        if nodes:
            taken.update(nodes)
            since = job.start if job.holds else job.mark.moved
            seconds = FOREVER if job.limit is None else job.limit
            end = self.snapshot.now + 1 if "COMPLETING" in job.state else since + seconds
            yield HeldNodes(Request(job.id, len(nodes), seconds), tuple(nodes), end, job.is_placed)

    def _is_moved(self, job: SlurmJob) -> bool:
        """Return whether a job was given nodes and has not started yet."""
        return job.state == "PENDING" and job.partition == self.policy.run and job.mark.moved > 0 and bool(job.wanted)

    def pulled_back(self) -> Iterator[Move]:
        """Yield a move for each job that was given nodes and cannot start on them."""
        policy, now = self.policy, self.snapshot.now
        for job in filter(self._is_moved, self.snapshot.jobs):
            limited, not_yet = job.reason.startswith(_LIMITED), job.reason.startswith(_NOT_YET)
            in_vain = limited or not_yet or job.reason.startswith(_REFUSED)
            if now - job.mark.moved < (min(SETTLING, policy.patience) if in_vain else policy.patience):
                continue
            tries = job.mark.tries + (not limited and not not_yet)
            mark = replace(job.mark, moved=0, tries=tries, until=now + policy.retry if limited else 0)
            release = job.reason.startswith("BadConstraints")
            if tries >= policy.tries:
                yield self._leave(replace(job, mark=mark), "tries", release)
            else:
                why = f"did not start on {job.wanted}: {job.reason}"
                yield Move(job.id, mark, policy.door, hosts="", release=release, why=why)

    def _leave(self, job: SlurmJob, reason: str, release: bool = False) -> Move:
        mark = replace(job.mark, left=reason, promise="")
        return Move(
            job.id, mark, self.policy.usual, hosts="" if reason == "tries" else None, release=release, why=reason
        )

    def sorted_out(self, mirror: Mirror) -> tuple[list[Move], list[int]]:
        """Return moves for jobs that are to be left to Slurm, and the mirror's numbers of all waiting jobs in order.

        :param mirror: the machine's state, which knows the jobs that can never run.
        """
        leaving, queue, spare = list[Move](), list[tuple[tuple[int, int, int, int], int]](), self._spare_tasks()
        for job in self.snapshot.jobs:
            if not job.waits or job.mark.until > self.snapshot.now or (request := self._request(job)) is None:
                continue
            number = mirror.number(request)
            if job.partition == self.policy.door:
                if reason := _wish(job) or ("" if mirror.can_ever_run(number) else "size"):
                    leaving.append(self._leave(job, reason))
                    continue
                spare[job.array] -= bool(job.array)
                if spare[job.array] < 0 or not mirror.can_run(number):
                    continue
            queue.append((_order(job), number))
        return leaving, [number for _, number in sorted(queue)]

    def _spare_tasks(self) -> Counter[str]:
        """Return for each array the number of tasks that may start: by its throttle, and at most one per node."""
        most = {job.array: job.throttle for job in self.snapshot.jobs if job.array and job.throttle}
        spare = Counter({job.array: most.get(job.array, len(self.names)) for job in self.snapshot.jobs if job.array})
        for job in self.snapshot.jobs:
            if job.array in most and (job.holds or self._is_moved(job)):
                spare[job.array] -= 1
        return spare

    def _request(self, job: SlurmJob) -> Request | None:
        """Return a waiting job's request; None if it waits for other nodes than ours, or is about to start."""
        seconds = FOREVER if job.limit is None else job.limit
        if job.partition == self.policy.door:
            return Request(job.id, job.nodes, seconds)
        if self._is_moved(job) or not job.reason.startswith(_WAITING_FOR_NODES):
            return None
        among = self._usable(job)
        return Request(job.id, job.nodes, seconds, among) if len(among) >= job.nodes else None

    def _usable(self, job: SlurmJob) -> tuple[int, ...]:
        """Return the numbers of the open nodes on which Slurm may place a job."""
        members = self.snapshot.members
        names = {name for partition in job.partition.split(",") for name in members.get(partition, ())}
        names = set(expand(job.wanted)) if job.wanted else names
        nodes = {self._find(name) for name in names} - {-1}
        return tuple(sorted(node for node in nodes if not self.closed[node]))

    def promised(self, request: Request) -> list[int]:
        """Return the numbers of the nodes that a job was promised; empty if there are none, or they are not known."""
        job = self.jobs[request.id]
        nodes = [self._find(name) for name in expand(job.mark.promise)] if job.mark.promise else []
        return [] if -1 in nodes or len(set(nodes)) != request.size else sorted(nodes)

    def start(self, request: Request, hosts: Sequence[str]) -> Move:
        """Return the move that gives a job its nodes."""
        job = self.jobs[request.id]
        others = Mark(moved=self.snapshot.now, tries=job.mark.tries, throttle=job.throttle, others=job.mark.others)
        return Move(job.id, others, self.policy.run, compress(hosts), len(hosts), why=f"starts on {compress(hosts)}")


def _order(job: SlurmJob) -> tuple[int, int, int, int]:
    """Return the place of a job in Slurm's order: by priority, submission and number."""
    number, _, task = job.id.partition("_")
    return -job.priority, job.submit, int(number), int(task or 0)


def _wish(job: SlurmJob) -> str:
    """Return the wish for which the bridge cannot place a job, in one word; empty if it has none."""
    if not (job.wanted or job.excluded or job.features or job.resources or job.reservation or job.together):
        return ""
    given = {
        "together": job.together,
        "nodelist": job.wanted,
        "exclude": job.excluded,
        "features": job.features,
        "resources": job.resources,
        "reservation": job.reservation,
    }
    return next(word for word, is_given in given.items() if is_given)
