"""The loop of the bridge: it reads Slurm's state, decides and tells Slurm, and steps aside whenever it cannot."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ...errors import SettingError, SourceError, TopompiError
from ..daemon.counters import counter, prometheus
from ..daemon.notify import notify
from .bridge import PassDecision, Planner
from .controller import Move
from .snapshot import SlurmSnapshot

__all__ = ["Bridge", "BridgeCounters", "Controller", "Pace"]

log = logging.getLogger("topompi.machine.slurm")
RECENT = 1_000  # number of passes whose times are kept


class Controller(Protocol):
    """The interface to a Slurm."""

    def snapshot(self) -> SlurmSnapshot:
        """Return the present state."""
        ...

    def apply(self, moves: Sequence[Move]) -> list[str]:
        """Carry out moves; return complaints about moves that were refused."""
        ...

    def set_up(self, partition: str, up: bool) -> None:
        """Set a partition up or down."""
        ...


@dataclass
class BridgeCounters:
    """Counters of events since the bridge started."""

    passes: int = counter("Passes over the queue")
    failed_passes: int = counter("Passes that failed, because Slurm did not answer")
    placed: int = counter("Jobs that were given nodes")
    pulled_back: int = counter("Jobs that were given nodes and did not start")
    left: int = counter("Jobs that were left to Slurm's own placement")
    refused_moves: int = counter("Moves that Slurm refused")
    renewals: int = counter("Times that the routes were read again")
    stepped_aside: int = counter("Times that the door was opened, so that Slurm itself places all jobs")


@dataclass(frozen=True)
class Pace:
    """The times of the loop.

    :param seconds: seconds between the starts of two passes.
    :param failures: number of failed passes in sequence after which the bridge opens the door.
    :param dry: True to log moves and change nothing.
    """

    seconds: float = 1.0
    failures: int = 5
    dry: bool = False


class Bridge:
    """The loop.

    :param controller: interface to Slurm.
    :param planner: maker of the decisions.
    :param pace: times of the loop.
    :param renewed: function that is called before each pass; it returns a planner with the new routes if the topology
        has changed, else None.
    :ivar decision: result of the last pass.
    """

    def __init__(
        self,
        controller: Controller,
        planner: Planner,
        pace: Pace | None = None,
        renewed: Callable[[], Planner | None] = lambda: None,
    ) -> None:
        self._controller, self._planner, self._pace, self._renewed = controller, planner, pace or Pace(), renewed
        self.counters, self.decision = BridgeCounters(), PassDecision()
        self._door, self._failed, self._aside = planner.policy.door, 0, True
        self._times: deque[float] = deque(maxlen=RECENT)
        self._told: tuple[int, int] = 0, 0

    def run(self, stop: threading.Event) -> None:
        """Make passes until the event is set, then open the door; also if an error ends the loop.

        :param stop: event that ends the loop.
        :raises SettingError: if Slurm does not have the three partitions.
        """
        self.check_partitions()
        try:
            while not stop.is_set():
                begin = time.monotonic()
                self.make_pass()
                notify("READY=1\nWATCHDOG=1")
                stop.wait(max(0.0, self._pace.seconds - (time.monotonic() - begin)))
        finally:
            notify("STOPPING=1")
            self.step_aside("the bridge ends")

    def check_partitions(self) -> None:
        """Check that Slurm has the partitions that the bridge needs.

        :raises SettingError: if one is missing.
        :raises SourceError: if Slurm does not answer.
        """
        policy, found = self._planner.policy, self._controller.snapshot().up
        if missing := [name for name in (policy.door, policy.run, policy.usual) if name not in found]:
            hint = "topompi slurm bridge --setup prints the lines for slurm.conf"
            raise SettingError(f"bridge: expecting the partitions {', '.join(missing)} in Slurm, got none: {hint}")

    def make_pass(self) -> None:
        """Read the state, decide, and tell Slurm; after several failures in sequence, open the door."""
        begin = time.monotonic()
        self._renew()
        try:
            snapshot = self._controller.snapshot()
            if snapshot.up.get(self._door) and not self._pace.dry:
                self._controller.set_up(self._door, False)  # also after a restart of slurmctld, which opens it
                log.info("door closed")
            self.decision = self._planner.decide(snapshot)
            self._tell(self.decision.moves)
        except TopompiError as error:
            self.counters.failed_passes += 1
            self._failed += 1
            log.warning("pass failed", extra={"fields": {"error": str(error), "in_sequence": self._failed}})
            if self._failed >= self._pace.failures and not self._aside:
                self.step_aside(f"{self._failed} passes failed")
            return
        self._failed, self._aside = 0, False
        self.counters.passes += 1
        self._times.append(time.monotonic() - begin)
        self._report()

    def _renew(self) -> None:
        """Take new routes if there are some; if they cannot be read, the old ones stay."""
        try:
            planner = self._renewed()
        except TopompiError as error:
            log.warning("routes not renewed", extra={"fields": {"error": str(error)}})
            return
        if planner is not None:
            self._planner = planner
            self.counters.renewals += 1
            log.info("routes renewed", extra={"fields": {"cluster": planner.cluster.name}})

    def _tell(self, moves: Sequence[Move]) -> None:
        policy = self._planner.policy
        for move in moves:
            kind = {policy.run: "placed", policy.door: "pulled back", policy.usual: "left to Slurm"}
            event = kind.get(move.partition, "noted")
            log.info(event, extra={"fields": {"job": move.job, "why": move.why}})
            self.counters.placed += event == "placed"
            self.counters.pulled_back += event == "pulled back"
            self.counters.left += event == "left to Slurm"
        for complaint in [] if self._pace.dry else self._controller.apply(moves):
            self.counters.refused_moves += 1
            log.warning("refused", extra={"fields": {"by": "Slurm", "words": complaint}})

    def _report(self) -> None:
        """Log pairs of jobs that share links, if there are others than before."""
        found = self.decision.shared, self.decision.broken
        if (len(found[0]), found[1]) != self._told:
            self._told = len(found[0]), found[1]
            fields = {"pairs": len(found[0]), "of_ours": found[1], "first": found[0][:10]}
            log.info("jobs share links", extra={"fields": fields})

    def step_aside(self, why: str) -> None:
        """Open the door, and give jobs that have not started on their nodes back to Slurm.

        :param why: reason, in words.
        """
        self._aside = True
        if self._pace.dry:
            return
        self.counters.stepped_aside += 1
        policy = self._planner.policy
        try:
            self._controller.set_up(self._door, True)
            moved = [
                Move(job.id, replace(job.mark, moved=0, promise=""), policy.door, hosts="", why=why)
                for job in self._controller.snapshot().jobs
                if job.state == "PENDING" and job.partition == policy.run and job.mark.moved
            ]
            self._controller.apply(moved)
        except TopompiError as error:
            log.exception("could not step aside", extra={"fields": {"why": why, "error": str(error)}})
            return
        log.warning("stepped aside", extra={"fields": {"why": why, "given_back": [move.job for move in moved]}})

    def health(self) -> str:
        """Return ``ok``.

        :raises SourceError: if the last pass failed.
        """
        if self._failed:
            raise SourceError(f"expecting an answer of Slurm, got none in {self._failed} passes")
        return "ok\n"

    def metrics(self) -> str:
        """Return counters and present numbers in Prometheus' text format."""
        times, decision = sorted(self._times), self.decision
        gauges = {
            "waiting_jobs": decision.waiting,
            "running_jobs": decision.running,
            "placed_running_jobs": decision.ours,
            "left_waiting_jobs": decision.left,
            "pairs_that_share_links": len(decision.shared),
            "placed_pairs_that_share_links": decision.broken,
            "aside": float(self._aside),
            "pass_seconds_median": times[len(times) // 2] if times else 0.0,
            "pass_seconds_max": times[-1] if times else 0.0,
        }
        return prometheus("topompi_bridge", self.counters, gauges)
