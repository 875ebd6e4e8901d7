"""A Slurm that is not there, with jobs in simulated time, for tests of the bridge."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from topompi.errors import SourceError
from topompi.inputs.hostlist import expand
from topompi.machine.slurm.controller import Move
from topompi.machine.slurm.snapshot import SlurmJob, SlurmSnapshot

__all__ = ["FakeSlurm"]


@dataclass
class FakeSlurm:
    """Slurm as the bridge sees it: a door, a partition to run in, and a usual one, all with the same nodes.

    A job with a list of nodes starts in ``run`` as soon as these are free; in ``all``, and in a door that is up, a job
    starts on the first free nodes, in the order of priorities.

    :param hosts: names of the nodes.
    :param runs: seconds that each job runs, by its id.
    :param failures: number of the next commands that fail.
    """

    hosts: Sequence[str]
    runs: dict[str, int] = field(default_factory=dict)
    failures: int = 0
    now: int = 1_000_000
    closed: set[str] = field(default_factory=set)
    up: dict[str, bool] = field(default_factory=lambda: {"door": True, "run": True, "all": True})
    jobs: dict[str, SlurmJob] = field(default_factory=dict)
    ended: dict[str, SlurmJob] = field(default_factory=dict)
    applied: list[Move] = field(default_factory=list)

    def submit(self, job: SlurmJob, run: int) -> None:
        """Add a job to the queue that runs for ``run`` seconds once it has started."""
        self.jobs[job.id] = replace(job, submit=self.now)
        self.runs[job.id] = run

    def snapshot(self) -> SlurmSnapshot:
        """Return the present state."""
        self._may_fail("squeue")
        busy = self.busy
        states = {
            host: frozenset({"allocated" if host in busy else "idle", *(["drained"] if host in self.closed else [])})
            for host in self.hosts
        }
        members = {name: frozenset(self.hosts) for name in self.up}
        return SlurmSnapshot(self.now, tuple(self.jobs.values()), states, dict(self.up), members)

    def apply(self, moves: Sequence[Move]) -> list[str]:
        """Carry out moves, as scontrol would; return a complaint per job that is not there or runs."""
        complaints = []
        for move in moves:
            self._may_fail("scontrol")
            job = self.jobs.get(move.job)
            if job is None or job.hosts:
                complaints.append(f"{move.job}: no such waiting job")
                continue
            self.applied.append(move)
            self.jobs[move.job] = replace(
                job,
                mark=move.mark,
                partition=move.partition or job.partition,
                wanted=job.wanted if move.hosts is None else move.hosts,
                nodes=move.nodes or job.nodes,
                priority=job.priority or 1 if move.release else job.priority,
                reason="None" if move.partition else job.reason,
            )
        return complaints

    def set_up(self, partition: str, up: bool) -> None:
        """Set a partition up or down."""
        self._may_fail("scontrol")
        self.up[partition] = up

    @property
    def busy(self) -> set[str]:
        """The nodes that jobs hold."""
        return {host for job in self.jobs.values() for host in job.hosts}

    def schedule(self) -> None:
        """Start all jobs that Slurm itself starts now."""
        for job in sorted(self.jobs.values(), key=lambda job: (job.partition != "run", -job.priority, job.submit)):
            if job.state != "PENDING" or not self.up[job.partition] or not job.priority:
                continue
            busy = self.busy
            free = [host for host in self.hosts if host not in busy | self.closed]
            chosen = [host for host in expand(job.wanted) if host in free] if job.wanted else free
            if len(chosen) >= job.nodes:
                hosts = tuple(chosen[: job.nodes])
                self.jobs[job.id] = replace(job, state="RUNNING", hosts=hosts, start=self.now, reason="None")
            else:
                self.jobs[job.id] = replace(job, reason="Resources")

    def pass_to(self, now: int) -> None:
        """Let time pass, and jobs end."""
        self.now = now
        for job in list(self.jobs.values()):
            if job.hosts and job.start + self.runs[job.id] <= now:
                self.ended[job.id] = self.jobs.pop(job.id)

    def next_end(self) -> int:
        """Return the time of the next end of a running job."""
        return min((job.start + self.runs[job.id] for job in self.jobs.values() if job.hosts), default=2**60)

    def _may_fail(self, command: str) -> None:
        if self.failures:
            self.failures -= 1
            raise SourceError(f"{command}: expecting its output, got none")
